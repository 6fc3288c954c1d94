"""Equivalent spellings of a classic profile: other writers and spreadsheets change the text, not the answer."""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from every_kind import NAMES, texts, write_every_kind

import stepscope
from asking import answers, tables

Rows = list[list[str]]
CSV_KINDS = tuple(kind for kind, name in NAMES.items() if name.endswith(".csv"))
BY_NAME = ("step_trace", "pynative_operators", "operator_memory")
"""Kinds with columns that only their headers tell, as the calls of a step trace, or whose order is not known."""


def parsed(text: bytes) -> Rows:
    return list(csv.reader(io.StringIO(text.decode())))


def printed(rows: Rows, **options: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", **options).writerows(rows)
    return text.getvalue().encode()


def shuffled(rows: Rows) -> Rows:
    order = list(range(len(rows[0])))
    random.Random(1).shuffle(order)
    return [[row[at] if at < len(row) else "" for at in order] for row in rows]


def camel(header: str) -> str:
    """`step_num` as `step Num`; the names of calls are no words."""
    return header if header.startswith("stream_") else re.sub(r"_([a-z])", lambda word: " " + word[1].upper(), header)


def spaced(rows: Rows) -> Rows:
    return [rows[0], *([f" {cell}" if re.fullmatch(r"[\d.]+", cell) else cell for cell in row] for row in rows[1:])]


SPELLINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "ends of lines": lambda text: text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "no end of the last line": lambda text: text.rstrip(b"\r\n"),
    "blank lines at the end": lambda text: text + b"\n\n",
    "everything in quotes": lambda text: printed(parsed(text), quoting=csv.QUOTE_ALL),
    "trailing commas": lambda text: printed([[*row, ""] for row in parsed(text)]),
    "a column more": lambda text: printed(
        [[*row, "7" if at else "found_later"] for at, row in enumerate(parsed(text))]
    ),
    "numbered rows": lambda text: printed([[str(at) if at else "", *row] for at, row in enumerate(parsed(text))]),
    "other order of columns": lambda text: printed(shuffled(parsed(text))),
    "other case of headers": lambda text: printed([list(map(camel, parsed(text)[0])), *parsed(text)[1:]]),
    "spaces before headers": lambda text: printed([[f" {name}" for name in parsed(text)[0]], *parsed(text)[1:]]),
    "spaces before numbers": lambda text: printed(spaced(parsed(text))),
}


def told(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Every table but that of issues, as the files are read."""
    with TemporaryDirectory() as directory:
        run = stepscope.open_run(write_every_kind(Path(directory), files), use_store=False)
        return {name: rows for name, rows in tables(run).items() if not name.startswith("issues")}


@cache
def as_written() -> dict[str, Any]:
    return told(texts())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_tables_do_not_depend_on_how_a_file_is_spelled(spelling: str) -> None:
    changed = {kind: SPELLINGS[spelling](text) if kind in CSV_KINDS else text for kind, text in texts().items()}

    assert told(changed) == as_written()


def test_columns_in_a_known_order_need_no_header() -> None:
    bare = [kind for kind in CSV_KINDS if kind not in BY_NAME]
    changed = {kind: printed(parsed(text)[1:]) if kind in bare else text for kind, text in texts().items()}

    assert told(changed) == as_written()


@pytest.mark.parametrize("rank", [7, 10, 128, 4095])
def test_the_number_in_the_names_is_the_rank_whatever_its_length(tmp_path: Path, rank: int) -> None:
    def renamed(name: str) -> str:
        return name if name.startswith("PROF_") else re.sub(r"_0(?=[_./]|$)", f"_{rank}", name)

    files = {kind: text for kind, text in texts().items() if kind not in ("profiler_info", "recommendation")}
    first, other = tmp_path / "first", tmp_path / "other"
    for directory, place in ((first, str), (other, renamed)):
        for kind, text in files.items():
            path = directory / place(NAMES[kind])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.replace(b'"rank_id": "0", ', b"") if kind == "device_info" else text)

    asked = answers(stepscope.open_run(first, use_store=False)), answers(stepscope.open_run(other, use_store=False))

    for question in ("step_trace", "operator_types", "breakdown", "input_queues", "memory_peak", "host_time"):
        expected, found = (without_rank(one[question]) for one in asked)
        assert (question, found) == (question, expected)


def without_rank(rows: Any) -> Any:
    return [{**row, "rank": None} for row in rows] if isinstance(rows, list) else rows
