"""Marks on their way to disk: every text comes back as it was."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from recorded import rows

from stepscope.record.marks import MarkBuffer

ODD = ["plain", "", "a,b", 'said "so"', "two\nlines", "two\r\nlines", '{"group": "0", "size_bytes": 4}', " ä "]


@pytest.mark.parametrize("text", ODD)
def test_texts_are_read_as_they_were(text: str, tmp_path: Path) -> None:
    marks = MarkBuffer()
    for _ in range(2):
        marks.add(("range", text, 1, 3, 7, threading.get_ident(), text))
        marks.add_batch((2, text, 4, 7, 5, None, 8, 0))
    marks.flush(tmp_path)
    for row in rows(tmp_path):
        assert (row["kind"], row["name"], row["step"], row["detail"]) == ("range", text, "7", text)
        assert int(row["end_ns"]) - int(row["start_ns"]) == 2
        assert int(row["thread"]) == threading.get_native_id()
    for row in rows(tmp_path, "batches.csv"):
        assert (row["pipeline"], row["batch"], row["step"], row["wait_ns"]) == (text, "4", "7", "5")
        assert (row["queue_size"], row["queue_capacity"], row["workers"]) == ("", "8", "0")


def test_many_come_in_their_order(tmp_path: Path) -> None:
    marks = MarkBuffer()
    for i in range(2500):
        marks.add(("step", str(i), i, i + 1, i, 1, ""))
    marks.flush(tmp_path)
    assert [row["name"] for row in rows(tmp_path)] == [str(i) for i in range(2500)]
