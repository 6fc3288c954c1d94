"""What a rank's slow kernels have in common: all are slower by one factor, those of one unit, or some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column, schema_of

PATTERNS = ("alike", "matrix", "vector", "some", "calls", "shapes", "only", "none")
"""All kernels are slower by about one factor (clock, power, temperature); all of the matrix unit, or all others, are;
some are; there are more calls; calls have other shapes; only this rank runs them; none takes noticeably longer."""

MOST_NAMED = 3

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """When kernels count as slower, and as equally slow."""

    factor: float = limit(1.015, "times the peers' time for the same calls", "chosen by us: above the noise of means")
    alike_ratio: float = limit(0.35, "of the excess of all", "chosen by us: kernels this close are equally slow")
    alike_share_ratio: float = limit(0.85, "of the time", "chosen by us: in kernels that are equally slow")
    excess_ratio: float = limit(0.005, "of the peers' time", "chosen by us: less needs no cause")
    further_calls: float = limit(0.5, "calls in a step, more than on peers", "chosen by us: one in every second step")
    named_ratio: float = limit(0.8, "of the excess", "chosen by us: what is named explains most of it")


LIMITS = Limits()

COLUMNS = columns(
    "rank",
    Column("kind", "string", "Kind of work.", values=("compute", "memory")),
    Column("pattern", "string", "What its slow kernels have in common.", values=PATTERNS),
    Column(
        "factor",
        "float64",
        "How many times as long as on the peers the kernels take that the pattern is about; null if it is not about "
        "equal calls.",
    ),
    Column("names", "list[string]", "The classes that explain most of the excess, largest first; none if all do."),
    Column("cores", "list[string]", "Cores of these classes, if recorded."),
    Column("named_ns", "int64", "Excess of these classes, or of all, in a step."),
    Column("excess_ns", "int64", "Time of all kernels in a step beyond the median peer's."),
    meaning("total_ns", "Time of all kernels in a step."),
    nulls="factor",
)


@analysis("job", COLUMNS, whole_job=True)
def kernel_patterns(rank_kernels: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """Summarise `rank_kernels`: one row per rank and kind of work."""
    return patterns_of(rank_kernels, limits)


def patterns_of(rows: pl.DataFrame, limits: Limits = LIMITS) -> pl.DataFrame:
    """`kernel_patterns` of rows as of `rank_kernels`."""
    parts = rows.partition_by("rank", "kind", as_dict=True, maintain_order=True)
    found = [(rank, kind, *_pattern(part.rows(named=True), limits)) for (rank, kind), part in parts.items()]
    return pl.DataFrame(found, schema=schema_of(COLUMNS), orient="row").sort("rank", "kind")


def _pattern(classes: Sequence[Row], limits: Limits) -> tuple[Any, ...]:
    """The columns from `pattern` on."""
    total, typical = (sum(row[name] for row in classes) for name in ("total_ns", "typical_ns"))
    excess = total - typical
    if excess <= limits.excess_ratio * typical:
        return ("none", None, [], [], 0, excess, total)
    lonely = [row for row in classes if not row["peers"]]
    shared = [row for row in classes if row["peers"]]
    parts = {
        "only": sum(row["excess_ns"] for row in lonely) + sum(row["excess_ns"] for row in shared if not row["calls"]),
        "slower": sum(row["slower_ns"] for row in shared),
        "calls": sum(row["calls_ns"] for row in shared if row["calls"]),
        "shapes": sum(row["shapes_ns"] for row in shared if row["calls"]),
    }
    largest = max(parts, key=lambda part: parts[part])
    # Calls of other shapes beside those that the peers make as well are further calls, not larger batches.
    further = [row for row in shared if row["calls"] - row["typical_calls"] >= limits.further_calls]
    if largest == "shapes" and sum(row["shapes_ns"] for row in further) >= limits.named_ratio * parts["shapes"]:
        extra = [{**row, "further_ns": row["calls_ns"] + row["shapes_ns"]} for row in further]
        named = _named(extra, "further_ns", limits)
        return ("calls", None, *_names(named), sum(row["further_ns"] for row in named), excess, total)
    if largest != "slower":
        part = "excess_ns" if largest == "only" else f"{largest}_ns"
        named = _named(lonely if largest == "only" else shared, part, limits)
        return (largest, None, *_names(named), sum(row[part] for row in named), excess, total)
    timed = [row for row in shared if row["factor"] is not None]
    if (factor := _one_factor(timed, limits)) is not None:
        return ("alike", factor, [], [], parts["slower"], excess, total)
    for unit in ("matrix", "vector"):
        own = [row for row in timed if row["unit"] == unit]
        slower = sum(row["slower_ns"] for row in own)
        if slower >= limits.named_ratio * parts["slower"] and (factor := _one_factor(own, limits)) is not None:
            named = _named(own, "slower_ns", limits)
            return (unit, factor, *_names(named), slower, excess, total)
    named = _named(timed, "slower_ns", limits)
    return ("some", _factor(named), *_names(named), sum(row["slower_ns"] for row in named), excess, total)


def _one_factor(classes: Sequence[Row], limits: Limits) -> float | None:
    """The factor by which all are slower; None if they differ, or are one class only, or not slower."""
    factor = _factor(classes)
    if factor is None or factor < limits.factor or len(classes) < 2:
        return None
    near = max(limits.factor - 1, limits.alike_ratio * (factor - 1))
    alike = [row for row in classes if abs(row["factor"] - factor) <= near]
    time = sum(row["total_ns"] for row in classes)
    others = len(classes) - len(alike)
    is_most = sum(row["total_ns"] for row in alike) >= limits.alike_share_ratio * time
    return factor if len(alike) > 1 and is_most and others < len(alike) else None


def _factor(classes: Sequence[Row]) -> float | None:
    """How many times as long as on the peers the calls of these classes take."""
    own = sum(row["total_ns"] for row in classes)
    usual = own - sum(row["slower_ns"] for row in classes)
    return own / usual if usual > 0 else None


def _named(classes: Sequence[Row], part: str, limits: Limits) -> list[Row]:
    """The classes that explain most of a part of the excess, at most `MOST_NAMED`."""
    ordered = sorted((row for row in classes if row[part] > 0), key=lambda row: (-row[part], row["name"]))
    whole, found = sum(row[part] for row in ordered), 0
    for place, row in enumerate(ordered[:MOST_NAMED]):
        found += row[part]
        if found >= limits.named_ratio * whole:
            return ordered[: place + 1]
    return ordered[:MOST_NAMED]


def _names(classes: Sequence[Row]) -> tuple[list[str], list[str]]:
    """The classes' names, and their cores."""
    names = dict.fromkeys(row["name"] for row in classes)
    return [*names], sorted({row["core"] for row in classes if row["core"] is not None})
