"""What the verdicts in a table of differences mean, in a sentence each, for those that it has."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import TYPE_CHECKING

from stepscope.errors import Unavailable
from stepscope.pages.compared_basis import has_names

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair


def explained(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    """What the verdicts of some rows mean; empty if there are none to explain."""
    from stepscope.compare.noise import LIMITS, NAME  # noqa: PLC0415 - a command line reads this before any data

    limits = pair.new.limits.get(NAME, LIMITS)
    words = set(rows["verdict"])
    if words & {"more", "less", "noise"}:
        yield (
            "p: how often chance alone gives such a difference between the {steps} of both sides (Mann-Whitney test, "
            f"adjusted for the number of rows); the verdict is more or less if p is at most {limits.level:.1%}."
        )
    if "noise" in words:
        yield "noise: {steps} of one side differ as much from one another."
    if "too few" in words:
        yield from _too_few(pair, rows, limits.steps, limits.level)
    if "same" in words:
        yield f"same: less than {limits.same_ratio:.1%} of difference."
    if "small" in words:
        yield f"small: less than {limits.small_ratio:.1%} of the whole on both sides, so not tested."
    if words & {"added", "removed"} and not has_names(pair):
        yield "added, removed: on one side only."
    if "untested" in words:
        yield "untested: one figure for each side, none by {step}, so there is no test."


def _too_few(pair: Pair, rows: pl.DataFrame, least: int, level: float) -> Iterator[str]:
    """How many steps a test needs."""
    try:
        base, new = pair.analyse("compared_sides")["steps"]
    except Unavailable:
        return
    if min(base, new) < least:
        yield (
            f"too few: all {{steps}} of one side are above those of the other, but a test needs at least {least} "
            f"{{steps}} on each side, here are {base} and {new}; these differences are shown untested."
        )
        return
    tested = rows["probability_ratio"].count()
    enough = next((steps for steps in range(least, 100) if 2 * tested / comb(2 * steps, steps) <= level), 100)
    if min(base, new) < enough:
        yield (
            f"too few: all {{steps}} of one side are above those of the other, but to be sure of one of {tested} rows "
            f"the test needs {enough} {{steps}} on each side, here are {base} and {new}."
        )
    else:
        yield (
            "too few: all {steps} of one side are above those of the other, but {steps} that follow one another "
            f"resemble each other, so that {base} and {new} of them tell too little."
        )
