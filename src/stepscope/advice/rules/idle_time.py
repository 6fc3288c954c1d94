"""All ranks are idle for the same reason, in every step or in some."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import (
    CPU,
    CUDA,
    PYTORCH,
    ROCM,
    Confidence,
    Finding,
    Platform,
    per_of,
    platform_of,
    widened,
)
from stepscope.advice.messages import Text
from stepscope.advice.occurrence import Limits as OccurrenceLimits
from stepscope.advice.occurrence import is_stalling, occurrence, occurrence_facts
from stepscope.advice.registry import Claim, Turn, rule
from stepscope.advice.rules.data_loader import loader_facts, loader_key, loader_parameters
from stepscope.advice.rules.idle_gaps import DEPENDENCY, dependencies, gap_parameters, gap_span
from stepscope.advice.rules.idle_gaps import Limits as GapLimits
from stepscope.advice.rules.idle_time_words import MESSAGES
from stepscope.analysis.input.loader import HOST_CPU
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.step.lost_time import UNSEEN
from stepscope.analysis.step.processor_waits import waits_ratio
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits(OccurrenceLimits, GapLimits):
    """When idle time is worth a finding."""

    idle_ratio: float = limit(0.10, "of the recording, median rank", "chosen by us: less is not worth a finding")
    data_ratio: float = limit(0.05, "of the recording, for data loading", "the PyTorch profiler's own advice")
    paused_ratio: float = limit(
        0.20, "of the recording, for pauses in Python code and unknown causes", "chosen by us: some runs in every step"
    )
    unexplained_ratio: float = limit(
        0.50, "of the recording, for Python code and unknown causes", "chosen by us: some between operators is normal"
    )
    short_ratio: float = limit(
        0.25, "of the kernels, shorter than their launch, to be told", "chosen by us: fewer are usual"
    )
    function_ratio: float = limit(
        0.10, "of a cause's idle time, for a Python function to be named", "chosen by us: only the largest few matter"
    )
    operator_ns: int = limit(
        1000, "ns of the host to record an operator", "measured: PyTorch's profiler takes 1 to 4 us"
    )
    call_ns: int = limit(200, "ns of the host to record a call of Python", "measured: PyTorch's profiler takes 0.2 us")
    compiled_ratio: float = limit(
        0.1, "of the recording, in compiled code of the forward pass", "chosen by us: with less, a part is compiled"
    )
    waits_ratio: float = limit(
        0.25, "of the steps, waiting for processors", "as for `long-step`: on such a host any step may stall by chance"
    )
    recording_ratio: float = limit(
        0.1, "of late launches, in recording, to be reported", "chosen by us: less does not matter"
    )


CAUSES = (
    "data_loading",
    "dispatch",
    "synchronisation",
    "python",
    "other",
    NOT_RECORDED := "not_recorded",
)
"""Causes of idle time that this rule reports. If only the device was recorded, the remedy is unknown, so no saving is
claimed."""

UNEXPLAINED = ("python", "other")
"""Causes that every healthy job has between its operators. They are reported only for pauses, stalled steps or a very
large share."""

OF_DEVICES = ("dispatch", "synchronisation", DEPENDENCY, NOT_RECORDED)
"""Causes that exist only with a device: on a CPU, nothing is launched or synchronised."""


_CONFIDENCE: dict[str, Confidence] = {
    **dict.fromkeys(("data_loading", "garbage_collection", NOT_RECORDED), "certain"),
    **dict.fromkeys(UNEXPLAINED, "possible"),
}
"""Causes that are marked as such, and those that have several explanations; the others follow from launches."""

_SHARED = ("lost", "paused", "stalled")
"""Times whose share of the recording is in `lost_time`."""

FEW = 0.5
"""Share of the later steps up to which stops of the host count as single ones, chosen by us."""

NAMED = 3
"""Number of functions that are named."""

_FUNCTION = re.compile(r"^<built-in function (.*)>$")
_METHOD = re.compile(r"^<built-in method (\S*) ?of (.*) object>$")
_MODULES = {"sleep": "time.sleep"}
"""Built-in functions are recorded without their module; these names are unambiguous."""


KNOWN_CALLS = ("memory-calls", "host-stall", "launch-wait", "sync-batch-norm")
"""Rules that name the calls of the host which cost idle time."""


@rule(
    "idle-time",
    MESSAGES,
    claim=Claim(Turn.SEEN_IDLE, time_in="cause", after=KNOWN_CALLS),
    dimension="schedule",
    computed=Text(
        "Sums the idle time of each cause over all steps but the first and takes the median rank, so "
        "that slow ranks do not count. The saving is that total averaged over the steps, at most what a "
        "replay of the job without this kind of time saves; of Python code and unknown causes only what "
        "steps that stall have more.",
        "对除首步外的所有步按原因累加空闲时间，取中位 rank，使慢 rank 不计入。节省为该总和在各步上的平均，"
        "且不超过去掉这类时间后重放作业所得；对 Python 代码和未知原因，只计停顿步多出的部分。",
    ),
    shows=("lost_time", "recurring_gaps", "idle_functions"),
)
def idle_time(
    lost_time: pl.DataFrame,
    breakdown: pl.DataFrame,
    loader: pl.DataFrame | None,
    idle_functions: pl.DataFrame | None,
    recurring_gaps: pl.DataFrame | None = None,
    ranks: pl.LazyFrame | None = None,
    host_syncs: pl.DataFrame | None = None,
    host_stalls: pl.DataFrame | None = None,
    launch_summary: pl.DataFrame | None = None,
    compiled_regions: pl.DataFrame | None = None,
    processor_waits: pl.DataFrame | None = None,
    slices: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report a cause of idle time that costs the median rank much, in every step or in some.

    A rank that is slower than the others is left to `slow-rank`; this rule uses the median over ranks of the time lost
    in all steps but the first. The saving is that total averaged over the steps; for Python code and unknown causes, if
    some steps stall, only their excess over ordinary steps. If only the device was recorded, the finding asks to record
    the host and claims nothing. Gaps before work that was launched in time are reported on any rank; what ends them is
    unknown, so the saving may be nothing. Late launches of GPUs may save less by what recording takes. Waits for GPUs
    whose callers are known are left to `host-synchronisation`. On a host without free processors, stalls of single
    steps are remarks.
    What light tracing leaves unmarked is not idle time.
    For data loading, the action depends on the workers of the loader with the longest wait.
    """
    slowest = None if loader is None else loader.sort("wait_ns", descending=True).row(0, named=True)
    per, platform = per_of(breakdown), platform_of(ranks)
    device, placed = platform.device, platform.framework == PYTORCH and host_syncs is not None
    # a rank that is never idle has no rows in `lost_time`
    known_ranks = len({*lost_time["rank"], *(breakdown["rank"] if breakdown.width else ())})
    job_ranks = known_ranks if ranks is None else ranks.select(pl.len()).collect().item()
    if known_ranks < job_ranks:
        job_ranks = max(job_ranks, 3)  # nothing is known of both
    if device != CPU:
        yield from dependencies(lost_time, recurring_gaps, known_ranks, per, limits)
    crowded = waits_ratio(processor_waits) >= limits.waits_ratio
    if crowded and slowest is not None and slowest["workers"] and slowest["limited_by"] is None:
        slowest = {**slowest, "limited_by": HOST_CPU}  # its workers wait for processors, too
    for cause in CAUSES:
        if (device == CPU and cause in OF_DEVICES) or (cause == "synchronisation" and placed):
            continue
        row = _typical(lost_time, cause, known_ranks)
        if row is None or not _is_worth_it(row, cause, limits):
            continue
        loading = cause == "data_loading"
        in_loop = cause in UNEXPLAINED or (loading and slowest is not None and not slowest["workers"])
        ran = _functions(idle_functions, row["rank"], cause, limits.function_ratio) if in_loop else []
        lost_ns = _claimed(row, cause, limits)
        saved_ns = 0 if cause == NOT_RECORDED else lost_ns
        every = breakdown.filter(pl.col("rank") == row["rank"]).height if breakdown.width else 0
        row["once_ns"] = _once(host_stalls, row["rank"], cause, every)
        saving = _of_all_steps(row, saved_ns, every)
        much = _how_much(row, lost_ns, every, limits)
        late = _late(row, platform, launch_summary, slices, limits) if cause == "dispatch" else {}
        bounds = _range(row, round(saving))
        recording = late.get("recording_ns")
        if recording:
            bounds["saving_low_ns"] = max(bounds.get("saving_low_ns", round(saving)) - round(recording), 0)
        yield Finding(
            rule="idle-time",
            message=_message(cause, slowest, idle_functions, _compiled(compiled_regions, row, limits)),
            parameters={
                "job_ranks": job_ranks,
                **much,
                "functions": None if much["idle_ns"] else ran,
                "functions_each": _each(ran, max(every, row["steps"])) if much["idle_ns"] else None,
                **gap_parameters(recurring_gaps, row["rank"], cause, row["mean_ns"], limits.gap_ratio),
                **(loader_parameters(slowest) if loading else {}),
                **late,
            },
            saving_ns=round(saving),
            saving_ratio=saving / _of_all_steps(row, row["recorded_ns"], every),
            **bounds,
            per=per,
            evidence={
                "cause": cause,
                "idle_ns": row["mean_ns"],
                "window_ns": round(row["recorded_ns"] / row["steps"]),
                **occurrence_facts(row),
                **(loader_facts(slowest) if loading else {}),
            },
            least="medium" if cause == NOT_RECORDED else "low",
            most="low" if crowded and cause in UNSEEN and _is_chance(row, limits) else "high",
            where={"steps": row["stalled_steps"]} if much["lost_ns"] and row["stalled_steps"] else {},
            confidence=_CONFIDENCE.get(cause, "likely"),
            span_ns=gap_span(recurring_gaps, row["rank"], cause),
            span_rank=row["rank"],
        )


def _is_chance(row: dict[str, Any], limits: Limits) -> bool:
    """Whether most of a cost lies in some steps without a pattern."""
    return row["period"] is None and is_stalling(row, limits)


def _late(
    row: dict[str, Any],
    platform: Platform,
    launches: pl.DataFrame | None,
    slices: pl.LazyFrame | None,
    limits: Limits,
) -> dict[str, float | None]:
    """What is told of late launches: short kernels, and what recording the host takes of a step on GPUs."""
    told = {**_short(launches, row["rank"], limits), "recording_ns": None}
    if slices is None or platform.framework != PYTORCH or platform.device not in (CUDA, ROCM):
        return told
    kind = pl.col("category")
    own = slices.filter((pl.col("rank") == row["rank"]) & pl.col("step").is_not_null())
    counts = own.select((kind == "operator").sum().alias("operators"), (kind == "python").sum().alias("calls"),
                        pl.col("step").n_unique().alias("steps")).collect(engine="streaming")  # fmt: skip
    operators, calls, steps = counts.row(0)
    spent = (operators * limits.operator_ns + calls * limits.call_ns) / max(steps, 1)
    return {**told, "recording_ns": spent if spent >= limits.recording_ratio * row["mean_ns"] else None}


def _compiled(regions: pl.DataFrame | None, row: dict[str, Any], limits: Limits) -> bool:
    """Whether much of a rank's steps runs code that torch.compile compiled."""
    if regions is None:
        return False
    own = regions.filter((pl.col("rank") == row["rank"]) & pl.col("function").is_not_null())
    return bool(own["total_ns"].sum() >= limits.compiled_ratio * row["recorded_ns"])


def _short(launches: pl.DataFrame | None, rank: int, limits: Limits) -> dict[str, float | None]:
    """Which share of a rank's kernels is shorter than their launch; None if it is small or unknown."""
    if launches is None:
        return {"short_ratio": None}
    rows = launches.filter((pl.col("rank") == rank) & (pl.col("kind") == "compute"))
    ratio = rows["short_ratio"][0] if rows.height else 0.0
    return {"short_ratio": ratio if ratio >= limits.short_ratio else None}


def _typical(lost: pl.DataFrame, cause: str, ranks: int) -> dict[str, Any] | None:
    """What a cause costs the median of some ranks (of two, the one with less) per step; None if it costs nothing.

    Shares are of the median rank's step: ranks that wait for each other lose the same time, but with few recorded
    steps, the windows of some ranks are far shorter than those of others.
    """
    rows = lost.filter(pl.col("cause") == cause).sort(pl.col("lost_ns") / pl.col("steps"), "rank")
    free = ranks - rows.height  # ranks without the cause come first
    place = (rows.height + free - 1) // 2 - free
    if place < 0 or not rows["lost_ns"][place]:
        return None
    row = rows.row(place, named=True)
    step_ns = median(lost.unique("rank"), pl.col("recorded_ns") / pl.col("steps"))
    recorded = max(round(step_ns * row["steps"]), 1)
    return {**row, "recorded_ns": recorded, **{f"{what}_ratio": row[f"{what}_ns"] / recorded for what in _SHARED}}


def _is_worth_it(row: dict[str, Any], cause: str, limits: Limits) -> bool:
    if cause == "data_loading":
        return bool(row["lost_ratio"] >= limits.data_ratio)
    if cause not in UNEXPLAINED:
        return bool(row["lost_ratio"] >= limits.idle_ratio)
    in_most = row["median_ns"] * row["steps"] / max(row["recorded_ns"], 1)
    return bool(
        row["lost_ratio"] >= limits.unexplained_ratio
        or row["stalled_ratio"] >= limits.idle_ratio
        or row["paused_ratio"] >= limits.paused_ratio
        or (cause == "python" and in_most >= limits.idle_ratio)
    )


def _claimed(row: dict[str, Any], cause: str, limits: Limits) -> int:
    """The idle time that can be saved; for unexplained causes, the excess of stalled steps, if there are any, unless
    the rest is much as well."""
    stalls = row["stalled_ratio"] >= limits.idle_ratio or is_stalling(row, limits)
    rest = {what: row[f"{what}_ratio"] - row["stalled_ratio"] for what in ("lost", "paused")}
    in_all = rest["lost"] >= limits.unexplained_ratio or rest["paused"] >= limits.paused_ratio
    ends = row["period"] != 1 and not in_all
    return int(row["stalled_ns"] if cause in UNEXPLAINED and stalls and ends else row["lost_ns"])


def _of_all_steps(row: dict[str, Any], total_ns: int, every: int) -> float:
    """What a total of the counted steps is in the mean step of all.

    Stalls that do not recur regularly happened in the counted steps only, not as often in the first and last, which are
    not counted.
    """
    stalled = min(max(row["stalled_ns"], row["once_ns"]), total_ns) if row["period"] is None else 0
    steps: int = row["steps"]
    return (total_ns - stalled) / steps + stalled / max(every, steps)


def _once(stalls: pl.DataFrame | None, rank: int, cause: str, every: int) -> int:
    """Time of stops of the host with this cause that occur in few steps of a rank."""
    if stalls is None:
        return 0
    own = stalls.filter((pl.col("rank") == rank) & (pl.col("cause") == cause))
    return int(own["duration_ns"].sum()) if own["step"].n_unique() <= FEW * (every - 1) else 0


def _range(row: dict[str, Any], saving: int) -> dict[str, Any]:
    """The range of the saving: what the median step loses, and what the average step loses."""
    if not saving or row["steps"] == 1:
        return {}
    return widened(saving, row["median_ns"], row["mean_ns"])


def _how_much(row: dict[str, Any], lost_ns: int, every: int, limits: Limits) -> dict[str, Any]:
    """The time lost, as the saving states it: of the mean step, or of all steps and in which."""
    idle_ns, step_ns = (_of_all_steps(row, total, every) for total in (lost_ns, row["recorded_ns"]))
    steps = row["steps"] if row["period"] is not None else max(every, row["steps"])
    left_out = every - row["steps"]
    when = occurrence(row | {"lost_ns": lost_ns}, limits)
    is_all = lost_ns < row["lost_ns"]
    return {
        "idle_ns": None if when else idle_ns,
        "step_ns": None if when else step_ns,
        "lost_ns": idle_ns * steps if when else None,
        "recorded_ns": step_ns * steps if when else None,
        "ratio": idle_ns / step_ns,
        "left_out": left_out if left_out > 0 and not when else None,
        "when": when if is_all else None,
        "mostly": None if is_all else when,
    }


def _message(cause: str, loader: dict[str, Any] | None, functions: pl.DataFrame | None, compiled: bool) -> str:
    """The message to use; for unknown causes it depends on whether Python functions were recorded."""
    if cause == "data_loading":
        return f"{cause}/{loader_key(loader)}"
    if cause == "dispatch" and compiled:
        return f"{cause}/compiled"
    return f"{cause}/no function" if cause == "other" and functions is not None else cause


def _functions(functions: pl.DataFrame | None, rank: int, cause: str, least_ratio: float) -> list[dict[str, Any]]:
    """The functions that ran on a rank during idle time of a cause, longest first; empty if none is known.

    Those with less than a share of that time are left out. Each has its `name` (None of a C++ function without one),
    `idle_ns`, where it is (`file` and `line`), and `called_by`: for a built-in function, the caller, whose place it is.
    """
    if functions is None:
        return []
    rows = functions.filter((pl.col("rank") == rank) & (pl.col("cause") == cause))
    least = least_ratio * float(rows["idle_ns"].sum() or 0)
    return [_function(row) for row in rows.filter(pl.col("idle_ns") >= least).head(NAMED).iter_rows(named=True)]


def _function(row: dict[str, Any]) -> dict[str, Any]:
    known = {"name": row["function"], "idle_ns": row["idle_ns"], "file": row["file"], "line": row["line"]}
    if row["file"] is not None:
        return {**known, "called_by": None}
    caller, _, place = (row["called_by"] or "").removesuffix(")").rpartition(" (")
    file, _, line = place.rpartition(":")
    return {**known, "name": _built_in(row["function"]), "called_by": caller, "file": file, "line": line or None}


def _each(functions: list[dict[str, Any]], steps: int) -> list[dict[str, Any]]:
    """Functions with their time in the mean step."""
    return [{**one, "idle_ns": one["idle_ns"] / steps} for one in functions]


def _built_in(name: str) -> str | None:
    """A built-in function as written in Python; None for a C++ function without a name.

    Examples:
        >>> _built_in("<built-in function sleep>"), _built_in("<built-in method acquire of _thread.lock object>")
        ('time.sleep', '_thread.lock.acquire')
        >>> _built_in("<built-in method  of pybind11_builtins.pybind11_detail_function object>")
    """
    if match := _FUNCTION.match(name):
        return _MODULES.get(match[1], match[1])
    if match := _METHOD.match(name):
        method, owner = match[1], match[2]
        return (method or None) if "pybind11" in owner else f"{owner}.{method}"
    return name
