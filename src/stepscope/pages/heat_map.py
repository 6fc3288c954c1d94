"""Where a job loses time: ranks by steps, as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.replayed import other_pages, unknowns
from stepscope.selection import describe_numbers, named_numbers
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

BLOCKS = "·░▒▓█"
"""Cells of the map, from what is usual to what is far above it."""

FROM = (0.02, 0.05, 0.1, 0.25)
"""Excess over typical time from which on a cell is the next block."""

CELLS = 40
"""Blocks in a row; of more steps, each stands for several."""

ALONE = 16
"""Ranks with rows of their own; of more, those that are never slow share one."""

_COLUMNS = (
    Column("ranks", "string", ""),
    Column("by_step", "string", "", title="by {step}"),
    Column("excess_ns", "int64", "", title="excess", importance=90),
    Column("excess_ratio", "float64", "", title="excess %", importance=80),
    Column("kind", "string", "", title="mostly", importance=85),
)


def _map(run: Run, cells: pl.DataFrame) -> Derived:
    """One row for each rank, those that are never slow together if there are many; steps as blocks."""
    import polars as pl

    from stepscope.pages.answering import per_of

    steps = cells["step"].unique().sort().to_list()
    each = -(-len(steps) // CELLS)
    columns = {step: number // each for number, step in enumerate(steps)}
    level = pl.lit(0)
    for number, ratio in enumerate(FROM, 1):
        level = pl.when(pl.col("clear_ratio") >= ratio).then(number).otherwise(level)
    known = cells.with_columns(
        column=pl.col("step").replace_strict(columns, return_dtype=pl.Int64),
        level=pl.when(pl.col("excess_ns").is_null()).then(-1).otherwise(level),
    )
    highest = known.group_by("rank").agg(pl.col("level").max(), pl.col("clear_ns").sum())
    ranks = highest["rank"].sort().to_list()
    slow = highest.filter(pl.col("level") > 0).sort("clear_ns", "rank", descending=[True, False])["rank"].to_list()
    alone = ranks if len(ranks) <= ALONE else sorted(slow[:ALONE])
    rest = [rank for rank in ranks if rank not in set(alone)]
    groups = [[rank] for rank in alone] + ([rest] if rest else [])
    rows = [_row(known.filter(pl.col("rank").is_in(group)), group, len(set(columns.values()))) for group in groups]
    per = per_of(run)
    which = f", {_named(steps, per)}"
    block = f", {each} {per}s a block" if each > 1 else ""
    return Derived(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), which + block, columns=_COLUMNS)


_SCHEMA = ["ranks", "by_step", "excess_ns", "excess_ratio", "kind"]


def _named(steps: Sequence[int], per: str) -> str:
    """Which steps these are."""
    named = describe_numbers(steps)
    if per == "recording":
        return "whole recording"
    if "," in named:
        return f"{len(steps)} {per}s from {steps[0]} to {steps[-1]}"
    return f"{per}{'s' * (len(steps) > 1)} {named}"


def _row(cells: pl.DataFrame, ranks: Sequence[int], width: int) -> tuple[object, ...]:
    """A row of the map: of several ranks and steps, the block of the slowest; figures are what is beyond noise, as the
    blocks."""
    import polars as pl

    levels = dict(cells.group_by("column").agg(pl.col("level").max()).iter_rows())
    blocks = "".join(_block(levels.get(column)) for column in range(width))
    mean, typical = cells["clear_ns"].mean(), cells["typical_ns"].mean()
    worst = cells.filter(pl.col("level") > 0).group_by("kind").agg(pl.col("clear_ns").sum())
    kinds = worst.sort("clear_ns", "kind", descending=[True, False])["kind"].drop_nulls()
    ratio = mean / typical if isinstance(mean, float) and isinstance(typical, float) and typical > 0 else None
    excess = round(mean) if isinstance(mean, float) else None
    return describe_numbers(ranks), blocks, excess, ratio, kinds[0] if len(kinds) else None


def _block(level: int | None) -> str:
    """The block of a level; a blank if nothing is known."""
    return " " if level is None or level < 0 else BLOCKS[level]


def _legend(cells: pl.DataFrame) -> Iterator[str]:
    limits = ", ".join(f"{block} from {ratio:.0%}" for block, ratio in zip(BLOCKS[1:], FROM, strict=True))
    yield (
        f"{BLOCKS[0]} usual, {limits} above what comparable ranks take for their own work. What is within their noise "
        "is not counted; the excess is the mean of the {steps}."
    )
    if (cells["clear_ratio"].fill_null(0.0) < FROM[0]).all():
        compared = cells.filter(cells["excess_ns"].is_not_null())["rank"].n_unique() == cells["rank"].n_unique()
        yield f"No {'' if compared else 'compared '}rank is slower than its peers in any {{step}}."


def _notes(run: Run, cells: pl.DataFrame) -> Iterator[str]:
    yield from _unreported(run, cells)
    compared = set(cells.filter(cells["excess_ns"].is_not_null())["rank"])
    if rest := sorted(set(cells["rank"]) - compared):
        yield (
            f"{_sentence(named_numbers('rank', rest))} could not be compared: steps or calls are missing, e.g. because "
            "the recording was cut off, or no other rank does the same work."
        )
    yield from unknowns(run, replayed=False)


def _unreported(run: Run, cells: pl.DataFrame) -> Iterator[str]:
    """Which ranks are marked although they are not among the slow ranks, and why that may be."""
    from stepscope.errors import Unavailable

    marked = set(cells.filter(cells["clear_ratio"] >= FROM[0])["rank"])
    try:
        slow = run.whole.analyse("slow_ranks")["ranks"].to_list()
    except Unavailable:
        return
    rest = sorted(marked.difference(int(rank) for ranks in slow for rank in ranks.split(", ")))
    if not rest:
        return
    is_one = len(rest) == 1
    steps = run.whole.analyse("heat_map")["step"].n_unique()
    why = "one {step} cannot rule out chance" if steps == 1 else "that may be chance"
    yield (
        f"{_sentence(named_numbers('rank', rest))} {'is' if is_one else 'are'} marked but not among the slow ranks of "
        f"`analyze`: {why}, or it costs the job next to nothing."
    )


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


PAGE = Page(
    "heat-map",
    "Show in which steps which ranks take longer for their own work than comparable ranks.",
    [
        Section(
            "heat_map",
            "Own work above that of peers",
            derived=_map,
            drawn="by_step",
            sentences=_legend,
            notes=_notes,
            rows=ALONE + 1,
        )
    ],
    more="Each row is a rank, each block a step, or several if there are many; of many ranks, those that are never "
    "slow share a row. Waiting for other ranks is not counted. «--json» has each rank and step.",
    scope="job",
    instead=partial(other_pages, of_ranks="«`stepscope what-if`»"),
)
