"""Texts of a database by their numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from ascend_files import make_database

from stepscope.sources.ascend.database import TEXT_ID, open_database
from stepscope.sources.sinks import SilentSink

NUMBERS = [None, -(2**63), -1, 0, 1, 2, 3, 4, 100, 101, 2**63 - 1]
APART = list(range(0, 60, 3))


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ([], {}),
        ([(1, "a"), (2, "N/A"), (3, None), (4, "")], {1: "a"}),
        (
            [(2, "b"), (1, "first"), (1, "again"), (None, "x"), (100, "c"), (101, "d")],
            {1: "first", 2: "b", 100: "c", 101: "d"},
        ),
        ([(-(2**63), "least"), (2**63 - 1, "most")], {-(2**63): "least", 2**63 - 1: "most"}),
        ([(number, str(number)) for number in APART], {0: "0", 3: "3"}),
    ],
    ids=["none", "unknown", "runs", "far apart", "many runs"],
)
def test_numbers_are_replaced_by_their_texts(
    tmp_path: Path, texts: list[tuple[int | None, str | None]], found: dict[int, str]
) -> None:
    tables = {"STRING_IDS": ("id, value", texts), "NAMES": ("a, b", [(number, number) for number in NUMBERS])}
    path = make_database(tmp_path / "any.db", tables)

    with open_database(path, SilentSink()) as database:
        rows = database.read("NAMES", {"a": "a", "b": "b"}, {"a": TEXT_ID, "b": TEXT_ID})

    expected = [None if number is None else found.get(number) for number in NUMBERS]
    assert rows["a"].to_list() == rows["b"].to_list() == expected
