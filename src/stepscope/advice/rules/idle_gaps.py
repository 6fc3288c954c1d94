"""What `idle-time` states of recurring gaps, and gaps that only a dependency of the device explains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import Finding, Per
from stepscope.limits import limit

DEPENDENCY = "dependency"
"""Cause of idle time (of `idle`) before work that was launched in time."""

LONGEST_NAME = 60
"""Characters of a kernel's name in a sentence."""

_CALL = re.compile(r"\w+\(.*\)")
_ARGUMENTS = re.compile(r"^(?:void )?([^<(]+)")


@dataclass(frozen=True)
class Limits:
    """When gaps are worth naming."""

    gap_ratio: float = limit(
        0.25, "of a cause's idle time, for a recurring gap to be named", "chosen by us: only the largest ones matter"
    )
    dependency_ratio: float = limit(
        0.05, "of the step, in recurring gaps of a dependency", "as for findings of high severity"
    )


def gap_parameters(
    gaps: pl.DataFrame | None, rank: int, cause: str, idle_ns: float, least_ratio: float
) -> dict[str, Any]:
    """What a message says of the longest recurring gap of a cause on a rank; None where nothing is known.

    Args:
        gaps: `recurring_gaps`.
        rank: The rank.
        cause: The cause.
        idle_ns: The mean idle time of that cause in a step.
        least_ratio: Share of this time from which a gap is named.
    """
    place = longest_gap(gaps, rank, cause)
    if place is None or place["mean_ns"] < least_ratio * idle_ns:
        return dict.fromkeys(("gap_ns", "gap_next", "gap_during"))
    did = place["during"] or (place["mostly"] if (place["mostly_ratio"] or 0.0) >= least_ratio else None)
    return {
        "gap_ns": place["mean_ns"],
        "gap_next": short_name(place["next_name"]),
        "gap_during": None if did is None else short_name(did),
    }


def longest_gap(gaps: pl.DataFrame | None, rank: int, cause: str) -> dict[str, Any] | None:
    """The place with the most expensive recurring gaps of a cause on a rank."""
    if gaps is None:
        return None
    rows = gaps.filter((pl.col("rank") == rank) & (pl.col("cause") == cause))
    return None if rows.is_empty() else rows.row(0, named=True)


def gap_span(gaps: pl.DataFrame | None, rank: int, cause: str) -> tuple[int, int] | None:
    """Start and end of the longest recurring gap of a cause on a rank."""
    place = longest_gap(gaps, rank, cause)
    return None if place is None else (place["start_ns"], place["start_ns"] + place["longest_ns"])


def dependencies(lost: pl.DataFrame, gaps: pl.DataFrame | None, ranks: int, per: Per, limits: Any) -> Iterator[Finding]:
    """Report ranks whose device is idle although its next work was launched in time.

    What ends such gaps is unknown, so the saving may be nothing. Stalls of single steps are left to these.

    Args:
        lost: `lost_time`.
        gaps: `recurring_gaps`.
        ranks: Number of ranks of which idle time is known.
        per: What the windows are.
        limits: Those of `idle-time`.
    """
    rows = lost.filter(pl.col("cause") == DEPENDENCY)
    recurring = _in_gaps(gaps).filter(pl.col("gap_ratio") >= limits.dependency_ratio)
    held = recurring["rank"]
    steady = pl.col("lost_ratio") - pl.col("stalled_ratio")
    slow = rows.filter(pl.col("rank").is_in(held.implode()) | (steady >= limits.idle_ratio))
    if slow.is_empty():
        return
    worst = slow.sort(-pl.col("lost_ratio"), "rank").row(0, named=True)
    place = longest_gap(gaps, worst["rank"], DEPENDENCY) or {}
    known = {name: place.get(name) for name in ("ahead_ns", "waits_for")}
    neighbours = {f"gap_{end}": _short(place.get(f"{end}_name")) for end in ("before", "next")}
    numbers = sorted(slow["rank"])
    # Recurring gaps are known of all steps, of which the first may have the longest.
    in_gaps = recurring.filter(pl.col("rank") == worst["rank"])["mean_ns"].to_list()
    saving = in_gaps[0] if in_gaps else round((worst["lost_ns"] - worst["stalled_ns"]) / worst["steps"])
    finding = Finding(
        rule="idle-time",
        message=DEPENDENCY,
        parameters={
            **{"idle_ns": worst["mean_ns"], "step_ns": worst["recorded_ns"] / worst["steps"]},
            **{"ratio": worst["lost_ratio"], **known, **neighbours, "gap_ns": place.get("mean_ns")},
            "ranks": None if len(numbers) == ranks else numbers,
        },
        saving_ns=saving,
        saving_ratio=saving * worst["steps"] / worst["recorded_ns"],
        saving_low_ns=0,
        per=per,
        evidence={
            "cause": DEPENDENCY,
            **{"idle_ns": worst["mean_ns"], "window_ns": round(worst["recorded_ns"] / worst["steps"])},
            **{"ratio": worst["lost_ratio"], "gap_ns": place.get("mean_ns"), **known},
            **{name: place.get(name) for name in ("before_name", "next_name", "steps", "of_steps")},
        },
        least="medium",
        confidence="possible",
        span_ns=gap_span(gaps, worst["rank"], DEPENDENCY),
        span_rank=worst["rank"],
    )
    yield finding if len(numbers) == ranks else finding.on([worst["rank"], *numbers])


def _in_gaps(gaps: pl.DataFrame | None) -> pl.DataFrame:
    """Recurring gaps of a dependency on each rank: `rank`, `gap_ratio` of its steps, `mean_ns` in a step."""
    if gaps is None:
        return pl.DataFrame(schema={"rank": pl.Int32, "gap_ratio": pl.Float64, "mean_ns": pl.Int64})
    rows = gaps.filter(pl.col("cause") == DEPENDENCY)
    return rows.group_by("rank").agg(gap_ratio=pl.col("step_ratio").sum(), mean_ns=pl.col("mean_ns").sum()).sort("rank")


def short_name(name: str) -> str:
    """A name as a sentence states it: of a kernel without template arguments and parameters.

    Examples:
        >>> short_name("void at::native::(anonymous namespace)::cat<float, 1>(float*)"), short_name("aten::mm")
        ('at::native::cat', 'aten::mm')
        >>> short_name("train.py(40): step")
        'train.py(40): step'
    """
    if name.startswith("<") or re.search(r"\(\d+\): ", name):
        return name
    plain = name.replace("(anonymous namespace)::", "")
    is_code = plain.startswith("void ") or "::" in plain or _CALL.fullmatch(plain)
    found = _ARGUMENTS.match(plain) if is_code else None
    short = (plain if found is None else found[1]).strip()
    if len(short) <= LONGEST_NAME:
        return short
    in_scopes = "/" in short and "(" not in short  # of those, the end tells one from the next
    return f"...{short[-LONGEST_NAME:]}" if in_scopes else f"{short[:LONGEST_NAME]}..."


def _short(name: str | None) -> str | None:
    return None if name is None else short_name(name)
