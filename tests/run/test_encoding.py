"""Answers as bytes: long frames are packed, and come back as they were."""

from __future__ import annotations

import math

import polars as pl
from polars.testing import assert_frame_equal

from stepscope.run import encoding
from stepscope.run.encoding import decoded, encoded

ROWS = {
    "number": [2**63 - 1, -(2**63), 0, None],
    "part": [1.5, None, -0.0, math.inf],
    "name": ["", None, "é", "a\0b"],
    "flag": [True, None, False, True],
    "nothing": [None] * 4,
}


def test_a_long_frame_is_packed_and_comes_back_as_it_was() -> None:
    long = pl.concat([pl.DataFrame(ROWS, schema_overrides={"nothing": pl.Int32})] * (encoding._PACKED_ROWS // 4))
    content = encoded(long)

    assert b"PAR1" in content
    assert_frame_equal(decoded(content), long, check_exact=True)
    assert [repr(value) for value in decoded(content)["part"][:4]] == [repr(value) for value in ROWS["part"]]


def test_what_cannot_be_packed_comes_back_as_well() -> None:
    lists = pl.DataFrame({"ranks": [[0, 1], [], None]}).sample(encoding._PACKED_ROWS, with_replacement=True, seed=1)

    assert_frame_equal(decoded(encoded(lists)), lists, check_exact=True)
