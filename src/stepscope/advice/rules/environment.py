"""Environment variables that slow training down, or that would speed it up where the recording shows the need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.advice.finding import CPU, CUDA, NPU, ROCM, Confidence, Finding, Severity
from stepscope.advice.registry import rule
from stepscope.advice.rules.environment_words import COMPUTED, MESSAGES
from stepscope.analysis.memory.memory_hints import FRAGMENTATION
from stepscope.analysis.methods.statistics import median
from stepscope.analysis.rank_lists import listed
from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """What the advice about variables rests on."""

    least_log_level: int = limit(
        2, "of 0 (debug) to 4 (none)", "the advisor's guide: 2, warnings; its rules: 3, errors"
    )
    least_cached_operators: int = limit(10_000, "operators", "the Ascend advisor's limit")
    idle_ratio: float = limit(0.1, "of the step, idle, of the median rank", "chosen by us: less is no bottleneck")
    exposed_ratio: float = limit(0.1, "of the step, communication that nothing hides", "as of exposed-communication")
    allocation_ns: int = limit(10_000_000, "ns, in one kind of call on a rank", "the Ascend advisor's limit")
    blocking_ratio: float = limit(0.5, "waits for the device per launch", "the Ascend advisor's limit")


@dataclass(frozen=True)
class Evidence:
    """What the recording shows of the need for a setting; None if unknown.

    Args:
        idle_ratio: Share of the step in which the device of the median rank is idle.
        exposed_ratio: Share of the step with communication that nothing hides, of the median rank.
        dynamic: Kernels with dynamic shapes.
        fragmented: Memory is fragmented, or memory calls of the device take long.
        waits_per_launch: Waits of the host for its device per launch of a kernel.
    """

    idle_ratio: float | None
    exposed_ratio: float | None
    dynamic: int
    fragmented: bool
    waits_per_launch: float | None


Answer = tuple[str, str | None, Severity, Confidence]
"""Message, the value to set (None: unset the variable), least severity, confidence."""

Judge = Callable[[str | None, Evidence, Limits], Answer | None]

EXPANDABLE = "expandable_segments:True"


def _log_level(value: str | None, _: Evidence, limits: Limits) -> Answer | None:
    level = _number(value)
    found = level is not None and 0 <= level < limits.least_log_level
    return ("log_level", str(limits.least_log_level), "low", "certain") if found else None


def _unneeded(value: str | None, *_: object) -> Answer | None:
    return ("unneeded", None, "low", "likely") if value else None


def _cached_operators(value: str | None, evidence: Evidence, limits: Limits) -> Answer | None:
    number = 0 if value is None else _number(value)
    few = number is not None and number < limits.least_cached_operators
    idle = evidence.idle_ratio is not None and evidence.idle_ratio >= limits.idle_ratio
    return ("operator_cache", "100000", "low", "possible") if few and idle else None


def _cached_shapes(value: str | None, evidence: Evidence, _: Limits) -> Answer | None:
    unset = value is None or _number(value) == 0
    return ("shape_cache", "20", "low", "possible") if unset and evidence.dynamic else None


def _enhance(value: str | None, evidence: Evidence, limits: Limits) -> Answer | None:
    exposed = evidence.exposed_ratio is not None and evidence.exposed_ratio >= limits.exposed_ratio
    return ("enhance", "1", "low", "possible") if value != "1" and exposed else None


def _allocator(value: str | None, evidence: Evidence, _: Limits) -> Answer | None:
    if EXPANDABLE.lower() in (value or "").lower() or not evidence.fragmented:
        return None
    kept = [part for part in (value or "").split(",") if part and not part.startswith(("expandable", "max_split"))]
    return "allocator", ",".join([*kept, EXPANDABLE]), "low", "likely"


def _blocking(value: str | None, evidence: Evidence, limits: Limits) -> Answer | None:
    if value is None or value.lower() in ("0", "false"):
        return None
    waits = evidence.waits_per_launch
    is_busy = evidence.idle_ratio is not None and evidence.idle_ratio < limits.idle_ratio
    if waits is not None and waits < limits.blocking_ratio and (is_busy or evidence.idle_ratio is None):
        return "blocking_unseen", None, "low", "possible"
    return ("blocking_busy", None, "low", "certain") if is_busy else ("blocking", None, "medium", "certain")


def _is(message: str, *values: str) -> Judge:
    """The advice to unset a variable that has one of some values."""

    def judge(value: str | None, *_: object) -> Answer | None:
        return (message, None, "low", "likely") if value is not None and value.upper() in values else None

    return judge


ON = ("1", "TRUE", "YES", "ON")

JUDGES: dict[str, tuple[tuple[str, ...], Judge]] = {
    "ASCEND_LAUNCH_BLOCKING": ((NPU,), _blocking),
    "ASCEND_GLOBAL_LOG_LEVEL": ((NPU,), _log_level),
    "HCCL_RDMA_TC": ((NPU,), _unneeded),
    "HCCL_RDMA_SL": ((NPU,), _unneeded),
    "HCCL_ALGO": ((NPU,), _unneeded),
    "ACLNN_CACHE_LIMIT": ((NPU,), _cached_operators),
    "HOST_CACHE_CAPACITY": ((NPU,), _cached_shapes),
    "ASCEND_ENHANCE_ENABLE": ((NPU,), _enhance),
    "PYTORCH_NPU_ALLOC_CONF": ((NPU,), _allocator),
    "CUDA_LAUNCH_BLOCKING": ((CUDA,), _blocking),
    "HIP_LAUNCH_BLOCKING": ((ROCM,), _blocking),
    "AMD_SERIALIZE_KERNEL": ((ROCM,), _is("serialized", "1", "2", "3")),
    "NCCL_DEBUG": ((CUDA, ROCM), _is("library_log", "INFO", "TRACE")),
    "NCCL_P2P_DISABLE": ((CUDA, ROCM), _is("transport_off", *ON)),
    "NCCL_IB_DISABLE": ((CUDA, ROCM), _is("transport_off", *ON)),
    "NCCL_SHM_DISABLE": ((CUDA, ROCM), _is("transport_off", *ON)),
    "TORCH_DISTRIBUTED_DEBUG": ((CPU, CUDA, ROCM, NPU), _is("checks", "DETAIL")),
    "OMP_NUM_THREADS": ((CPU,), _is("one_thread", "1")),
}
"""Variables, the kinds of devices that they matter to, and what decides. Only those that a recording names count."""


@rule(
    "environment",
    MESSAGES,
    dimension="overall",
    computed=COMPUTED,
    shows=("environment_variables",),
)
def environment(
    environment_variables: pl.DataFrame,
    breakdown: pl.DataFrame | None = None,
    dynamic_operators: pl.DataFrame | None = None,
    memory_hints: pl.DataFrame | None = None,
    api_totals: pl.DataFrame | None = None,
    limits: Limits = Limits(),
) -> Iterator[Finding]:
    """Report environment variables whose values are known to cost time, those whose values differ between ranks, and
    those that would help against what the recording shows (idle time, dynamic shapes, fragmented memory)."""
    evidence = _evidence(breakdown, dynamic_operators, memory_hints, api_totals, limits)
    told: set[str] = set()
    for name, (devices, judge) in JUDGES.items():
        rows = environment_variables.filter(pl.col("name") == name)
        fitting = rows.filter(pl.col("device_kind").fill_null(devices[0]).is_in(devices))
        for (value,), own in fitting.partition_by("value", as_dict=True, maintain_order=True).items():
            if (answer := judge(value, evidence, limits)) is not None:
                told.add(name)
                ranks = sorted({rank for text in own["ranks"] for rank in listed(text)})
                yield _finding(name, value, answer, ranks, evidence)
    yield from _differing(environment_variables, told)


def _finding(name: str, value: str | None, answer: Answer, ranks: list[int], evidence: Evidence) -> Finding:
    message, setting, least, confidence = answer
    line = f"unset {name}" if setting is None else f"export {name}={setting}"
    facts: dict[str, Any] = {"variable": name, "value": value, "line": line}
    parameters: dict[str, Any] = {"setting": None if value is None else f"{name}={value}", "line": line, "ranks": ranks}
    if setting is not None and message != "log_level":
        parameters["unset"] = name if value is None else None
    if message == "operator_cache":
        parameters["idle_ratio"] = facts["idle_ratio"] = evidence.idle_ratio
    if message == "shape_cache":
        parameters["dynamic"] = facts["dynamic_operators"] = evidence.dynamic
    if message == "enhance":
        parameters["exposed_ratio"] = facts["exposed_ratio"] = evidence.exposed_ratio
    if message.startswith("blocking"):
        parameters["waits"] = facts["waits_per_launch"] = evidence.waits_per_launch
    return Finding(
        rule="environment",
        message=message,
        parameters=parameters,
        where={"ranks": ranks},
        evidence=facts,
        least=least,
        confidence=confidence,
    )


def _differing(variables: pl.DataFrame, told: set[str]) -> Iterator[Finding]:
    """Variables that this rule knows, with different values on different ranks."""
    rows = variables.filter(pl.col("differs") & pl.col("name").is_in([*JUDGES]) & ~pl.col("name").is_in(sorted(told)))
    for (name,), own in rows.partition_by("name", as_dict=True, maintain_order=True).items():
        held: Mapping[str | None, list[int]] = {
            value: sorted({rank for text in part["ranks"] for rank in listed(text)})
            for (value,), part in own.partition_by("value", as_dict=True, maintain_order=True).items()
        }
        few = min(held.values(), key=lambda ranks: (len(ranks), ranks))
        values = [value or '""' for value in held]
        yield Finding(
            rule="environment",
            message="differs",
            parameters={"variable": name, "values": values, "ranks": few},
            where={"ranks": few},
            evidence={"variable": name, "values": {value or "": ranks for value, ranks in held.items()}},
            confidence="certain",
        )


def _evidence(
    breakdown: pl.DataFrame | None,
    dynamic: pl.DataFrame | None,
    hints: pl.DataFrame | None,
    calls: pl.DataFrame | None,
    limits: Limits,
) -> Evidence:
    idle = exposed = None
    if breakdown is not None and breakdown.height:
        step = pl.col("window_ns").clip(lower_bound=1)
        idle = median(breakdown, pl.col("free_ns") / step)
        exposed = median(breakdown, pl.col("communication_not_overlapped_ns") / step)
    return Evidence(
        idle_ratio=idle,
        exposed_ratio=exposed,
        dynamic=0 if dynamic is None else dynamic.filter(pl.col("dynamic") > 0).height,
        fragmented=_fragmented(hints, calls, limits),
        waits_per_launch=_waits_per_launch(calls),
    )


_ALLOCATING = r"(?i)aclMallocMem|aclrtMalloc|aclrtFree"
_WAITING = r"(?i)(stream|device)_?Synchronize|Synchronize(Stream|Device)"
_LAUNCHING = r"(?i)^launch$|Node@launch|Launch\w*Kernel|KernelLaunch"


def _fragmented(hints: pl.DataFrame | None, calls: pl.DataFrame | None, limits: Limits) -> bool:
    if hints is not None and (hints["kind"] == FRAGMENTATION).any():
        return True
    if calls is None:
        return False
    long = calls.filter(pl.col("name").str.contains(_ALLOCATING) & (pl.col("total_ns") >= limits.allocation_ns))
    return long.height > 0


def _waits_per_launch(calls: pl.DataFrame | None) -> float | None:
    """Of the rank with most, as one variable concerns all ranks that have it; None if no launches were recorded."""
    if calls is None:
        return None
    name, count = pl.col("name"), pl.col("count")
    sums = calls.group_by("rank").agg(
        waits=count.filter(name.str.contains(_WAITING)).sum(),
        launches=count.filter(name.str.contains(_LAUNCHING)).sum(),
    )
    known = sums.filter(pl.col("launches") > 0)
    return None if known.is_empty() else float(known.select((pl.col("waits") / pl.col("launches")).max()).item())


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
