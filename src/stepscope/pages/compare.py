"""What differs between two runs, two ranks of a run, or two parts of it, and whether that is more than noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import BASE_CHOOSING, Derived, Option, Page, Section
from stepscope.pages.compared_summary import opening
from stepscope.pages.verdicts import explained

if TYPE_CHECKING:
    import polars as pl

    from stepscope.compare import Pair

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
        "class": "Kernels of both sides have no names in common, so they are compared by class of work.",
        "operator": "These are the operators that launched the kernels, with the kernels' time; --by type for kernels.",
    }
    if by in texts:
        yield texts[by]
    yield from explained(pair, rows)


def _measured(pair: Pair, rows: pl.DataFrame) -> Iterator[str]:
    if rows.height:
        device = "the time of the kernels that each launched itself"
        yield f"Compared is {device if rows['measured'][0] == 'device' else 'the own time of each on the host'}."
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
            hidden=("measured", "probability_ratio", "of_step_ratio"),
            notes=_measured,
            rows=ROWS,
        ),
        Section("module_differences", "Modules in {a_step}", hidden=("probability_ratio",), notes=explained, rows=ROWS),
        Section(
            "api_differences",
            "Calls on the host in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            notes=explained,
            rows=ROWS,
        ),
        Section(
            "communication_differences",
            "Communication in {a_step}",
            hidden=("probability_ratio", "share_ratio"),
            notes=explained,
            rows=ROWS,
        ),
        Section("memory_differences", "Memory", derived=_changed, sentences=_unchanged, notes=_of_memory, rows=ROWS),
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
