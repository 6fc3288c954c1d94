"""What differs between two runs, two ranks of a run, or two parts of it, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import BASE_CHOOSING, Derived, Option, Page, Section, View
from stepscope.pages.compared_summary import opening
from stepscope.pages.verdicts import explained

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair

WORK, WAIT = "work", "wait"

BY = Option(
    "by",
    "text",
    "Compare kernels by type, name, shape, class (of work) or the operator that launched them. Default: the type, or "
    "what both sides have most in common.",
    "KIND",
)


def _indented(_: Pair, rows: pl.DataFrame) -> Derived:
    """Parts of parts with a dash in front of their names."""
    import polars as pl  # noqa: PLC0415 - a command line reads this page before any data

    dash = pl.when(pl.col("level") > 1).then(pl.lit("- ")).otherwise(pl.lit(""))
    return Derived(rows.with_columns(part=dash + pl.col("part").str.replace_all("_", " ")))


def _by(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    by = rows["compared_by"][0] if rows.height else "type"
    texts = {
        "class": "Kernels of both sides have hardly any name in common, so they are compared by class of work.",
        "operator": (
            "These are the operators that launched the kernels, with the kernels' time; «--by» type for kernels."
        ),
    }
    if by in texts:
        yield texts[by]
    yield from explained(pair, rows)


def _apart(_: Pair, rows: pl.DataFrame) -> Derived:
    """Rows with what divides them into two tables: calls that work, and calls that wait or communicate."""
    import polars as pl  # noqa: PLC0415 - a command line reads this page before any data

    is_work = pl.col("kind") == WORK
    return Derived(rows.with_columns(split=pl.when(is_work).then(pl.lit(WORK)).otherwise(pl.lit(WAIT))))


def _operators(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows.height:
        texts = {
            "device": "the time of the kernels that each launched itself",
            "host": "the own time of each on the host",
        }
        yield f"Compared is {texts[rows['measured'][0]]}."
    yield from _matched(rows)
    yield from _waits(pair, rows)
    yield from explained(pair, rows)


def _matched(rows: pl.DataFrame) -> Iterator[str]:
    """How many operators were found on both sides, if not all are at the same place."""
    counts = [rows.filter(rows["matched"] == how).height for how in ("path", "inner")]
    alone = rows.filter(rows["matched"].is_null()).height
    if counts[1] or alone:
        yield (
            f"Places in the tree of calls: {counts[0]} with the same path on both sides, {counts[1]} matched by the "
            f"inner part of the path (one side has other operators around it), {alone} on one side only."
        )


def _waits(_: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows.filter(rows["kind"] != WORK).height:
        yield (
            "Calls that wait or communicate last as long as what they wait for, which may be another rank: waiting "
            "less is no gain of a rank, and waiting more no fault of it."
        )


def _apis(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    yield from _waits(pair, rows)
    yield from explained(pair, rows)


def _modules(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows.height and rows["measured"][0] == "host":
        yield "Compared is the time of modules on the host, that of the modules in them as well."
    if rows.filter(rows["matched"] == "several").height:
        yield "`*`: one side has more modules of this class there, so all of them are compared together."
    yield from explained(pair, rows)


def _changed(_: Pair, rows: pl.DataFrame) -> Derived:
    """Rows without those that are the same."""
    return Derived(rows.filter(rows["verdict"] != "same"))


def _unchanged(rows: pl.DataFrame) -> Iterator[str]:
    if (same := rows.filter(rows["verdict"] == "same").height) and same == rows.height:
        yield f"Memory: all {same} figures are the same."


def _of_memory(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    yield from explained(pair, rows.filter(rows["verdict"] != "same"))


ROWS = 12
"""Rows of a table: there are many tables."""

PAGE = Page(
    "compare",
    "Compare two runs, or two ranks or parts of one: what got slower, by how much, and whether that is noise.",
    [
        Section(
            "time_differences",
            "Time of {a_step} by part",
            hidden=("of", "level"),
            derived=_indented,
            notes=explained,
        ),
        Section(
            "kernel_differences",
            "Kernels in {a_step}",
            takes={"by": "by"},
            hidden=("compared_by", "probability_ratio"),
            notes=_by,
            rows=ROWS,
        ),
        Section(
            "operator_differences",
            "Operators in {a_step}",
            hidden=("measured", "probability_ratio", "of_step_ratio", "matched", "new_path"),
            views=[
                View("Operators in {a_step}", split=WORK, without=["kind"]),
                View("Operators in {a_step} that wait or communicate", split=WAIT),
            ],
            derived=_apart,
            notes=_operators,
            rows=ROWS,
        ),
        Section(
            "module_differences",
            "Modules in {a_step}",
            hidden=("probability_ratio", "matched", "measured"),
            notes=_modules,
            rows=ROWS,
        ),
        Section(
            "api_differences",
            "Calls on the host in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            views=[
                View("Calls on the host in {a_step}", split=WORK, without=["kind", "base_wait_ns", "new_wait_ns"]),
                View("Calls on the host in {a_step} that wait or communicate", split=WAIT),
            ],
            derived=_apart,
            notes=_apis,
            rows=ROWS,
        ),
        Section(
            "communication_differences",
            "Communication in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            notes=explained,
            rows=ROWS,
        ),
        Section(
            "memory_differences",
            "Memory",
            hidden=("probability_ratio",),
            derived=_changed,
            sentences=_unchanged,
            notes=_of_memory,
            rows=ROWS,
        ),
        Section(
            "operator_type_differences",
            "Operators by type, whole recording",
            unless="kernel_differences",
            notes=explained,
        ),
        Section(
            "rank_differences",
            "Ranks",
            hidden=("probability_ratio", "share_ratio", "of_step_ratio"),
            notes=explained,
        ),
        Section("setting_differences", "What else differs"),
        Section("compared_sides", "Compared"),
        Section("own_work_difference"),
        Section("kernel_change"),
    ],
    options=[BY, *BASE_CHOOSING],
    more="NEW is measured against BASE. Of one run, the slowest rank is compared with a typical one, unless ranks or "
    "steps are chosen. Times are means of a step over the ranks of a side.",
    scope="pair",
    opening=opening,
)
