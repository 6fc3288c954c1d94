"""Why data or answers are missing, in words for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from stepscope.advice.units import Unit, unit_of
from stepscope.analysis.registry import find_analysis
from stepscope.present import listed
from stepscope.selection import describe_numbers
from stepscope.tables import ISSUES, RANKS, SLICES, STACKS, TABLES

if TYPE_CHECKING:
    from stepscope.run import Rank, Run

NOUNS = {
    "groups": "process groups",
    "steps": "steps",
    "slices": "timed ranges",
    "operators": "framework operators",
    "kernels": "accelerator work",
    "kernel_counters": "hardware counters of kernels",
    "collectives": "communication calls",
    "links": "link figures",
    "transports": "transport figures",
    "memory_curve": "memory curve",
    "host_usage": "samples of host usage",
    "input_pipeline": "batches and queues of the input pipeline",
    "pipeline_operators": "operators of a dataset pipeline",
    "host_events": "ranges that the framework marks on the host",
}
"""What a table holds; its name without underscores where nothing else stands here."""

_PYTORCH = "PyTorch traces hold none"
_MEMORY = "recorded without profile_memory=True"
_LEVEL_0 = "one device only, or recorded at profiler level 0"
_NOT_RECORDED = "the recorder has them of Ascend devices only"
_NO_WINDOW = "recorded without op_time, or stopped before the first window was finished"
_DATASET = "only MindSpore's dataset profiling writes them"
_TOTALS_ONLY = "MindSpore's own profiler kept totals of them, or none"
_CLASSIC_NONE = "MindSpore's own profiler records none"
_NO_RANGES = "the runtime profiler marks ranges of the host only"

_UNKNOWN = "the recording holds none"

WHY: dict[str, dict[str, str]] = {
    "groups": {
        "kineto": "one process only, or written by an old PyTorch",
        "ascend": _LEVEL_0,
        "recording": "one process only",
    },
    "operators": {"": "recorded without CPU activities", "recording": _NO_WINDOW, "classic": _TOTALS_ONLY},
    "kernels": {
        "recording": f"a CPU-only job, or {_NO_WINDOW}",
        "kineto": "a CPU-only job, or recorded without accelerator activities",
        "ascend": "recorded without NPU activities",
        "classic": _TOTALS_ONLY,
        "runtime": _NO_RANGES,
    },
    "kernel_counters": {
        "kineto": _PYTORCH,
        "ascend": "recorded without aic_metrics",
        "recording": _NOT_RECORDED,
    },
    "collectives": {
        "kineto": "one process only, or recorded between two calls",
        "ascend": _LEVEL_0,
        "recording": "one process only, or recorded between two calls",
    },
    "links": {
        "recording": _NOT_RECORDED,
        "kineto": _PYTORCH,
        "ascend_text": "communication_matrix.json is missing or empty",
        "ascend_db": "the database has no communication matrix",
    },
    "transports": {
        "recording": _NOT_RECORDED,
        "kineto": _PYTORCH,
        "ascend_text": "communication.json is missing or empty",
        "ascend_db": "the database has no bandwidth table",
    },
    "allocations": {"": _MEMORY, "classic": "older versions plan the memory of graphs instead", "runtime": _NO_RANGES},
    "memory_curve": {"": _MEMORY, "classic": "older versions plan the memory of graphs instead", "runtime": _NO_RANGES},
    "flows": {"": "no arrows between forward and backward work were recorded", "classic": _CLASSIC_NONE},
    "counters": {
        "kineto": _PYTORCH,
        "ascend": "no frequencies were recorded",
        "recording": "no GPU, or no nvidia-ml-py to ask it",
    },
    "stacks": {"": "recorded without with_stack=True", "classic": _CLASSIC_NONE, "runtime": _NO_RANGES},
    "pipeline_operators": {"recording": _DATASET},
    "input_pipeline": {
        "kineto": _PYTORCH,
        "ascend": _DATASET,
        "recording": "no batch came from a data loader that the recorder knows",
    },
    "host_usage": {
        "kineto": _PYTORCH,
        "ascend": "no samples of the host were recorded",
        "recording": "no samples of the host were recorded; they need psutil",
    },
}
"""Table to format (or the word before its underscore; empty for any) to the usual reason why there are no rows."""

NO_BLOCKS = "changes of memory were recorded, but not the blocks that they belong to"
"""Why there are no `allocations` although there is a `memory_curve`."""

ONLY_OF = {
    **dict.fromkeys(
        ("graphs", "graph_nodes", "graph_tensors", "flop_scopes", "communication_totals", "operator_steps", "stated"),
        ("classic",),
    ),
    "host_events": ("classic", "runtime"),
    "pipeline_operators": ("classic", "recording"),
}
"""Tables that only these formats have (the word before the underscore); nobody misses them in others."""

INSTEAD_OF = {"step_totals": "steps", "operator_totals": "operators"}
"""Totals that sources write who have no events; nobody misses them where the events are."""

ANSWERS = {
    "breakdown": "time by step",
    "idle": "causes of idle time",
    "kernel_totals": "kernels",
    "operator_summary": "operators",
    "arrival": "arrival times",
}
"""What an analysis gives; its name without underscores where nothing else stands here."""

_LACKING = re.compile(r"(?:\. )?\w+ needs `(\w+)`: rank ([\d,-]+) lacks `\1` \(read as [^)]*\)")
"""How an analysis reports that some of the ranks lack a table."""


def explain(run: Run, question: str, reason: str) -> str:
    """Why a run cannot answer a question.

    Args:
        run: The run.
        question: Name of the analysis.
        reason: What the analysis itself said; used where no data is missing.
    """
    table = _missing_table(run, question)
    if table is None:
        told = _LACKING.sub(lambda match: f"; rank {match[2]} has no {_noun(match[1])}", reason)
        unit: Unit = run.analyse(unit_of, otherwise="step")
        return unit.words(told.removeprefix("; ").rstrip("."))
    return "; ".join([f"the recording has no {_noun(table)}", *(why for why in _why(run, table) if why != _UNKNOWN)])


def unanswered(unavailable: dict[str, str]) -> list[str]:
    """A sentence for each reason, with all the answers that are missing because of it."""
    names: dict[str, list[str]] = {}
    for question, reason in unavailable.items():
        names.setdefault(reason, []).append(ANSWERS.get(question, question.replace("_", " ")))
    return [f"No {listed(answers, 'or')}: {reason}." for reason, answers in names.items()]


def missing_data(run: Run) -> list[str]:
    """A line for each reason why kinds of data are missing: the kinds, on which ranks, and the reason."""
    kinds: dict[str, list[str]] = {}
    for table in TABLES:
        lacking = [rank.rank for rank in run.ranks if not rank.has(table)]
        needless = table in (RANKS.name, ISSUES.name) or (table in INSTEAD_OF and run.has(INSTEAD_OF[table]))
        formats = {_family(rank) for rank in run.ranks if rank.rank in lacking}
        needless |= table == STACKS.name and _has_functions(run)
        if needless or not lacking or (table in ONLY_OF and formats.isdisjoint(ONLY_OF[table])):
            continue
        some = f" (rank {describe_numbers(lacking)})" if len(lacking) < len(run.ranks) else ""
        kinds.setdefault("; ".join(_why(run, table)), []).append(table + some)
    return [f"{', '.join(tables)}: {reason}" for reason, tables in kinds.items()]


def _has_functions(run: Run) -> bool:
    """Whether Python functions were recorded: they are `slices`, and their nesting says what stacks would."""
    if not run.has(SLICES.name):
        return False
    functions = run.table(SLICES.name).filter(pl.col("category") == "python").select("category")
    return not functions.head(1).collect().is_empty()


def _missing_table(run: Run, question: str) -> str | None:
    """The table that is missing first among those that an analysis, and those before it, cannot do without."""
    for name, required in find_analysis(question).needs.items():
        if not required:
            continue
        if name not in TABLES:
            found = _missing_table(run, name)
            if found is not None:
                return found
        elif name != ISSUES.name and not run.has(name):
            return name
    return None


def _why(run: Run, table: str) -> list[str]:
    """What the import said about the table; else the usual reason of each format that lacks it."""
    lacking = [rank for rank in run.ranks if not rank.has(table)]
    told = run.issues.filter(pl.col("place") == table, pl.col("rank").is_in([rank.rank for rank in lacking]))
    if told.height:
        return told["problem"].unique(maintain_order=True).to_list()
    if table == "allocations" and run.has("memory_curve"):
        return [NO_BLOCKS]
    reasons = WHY.get(table, {})
    formats = [_format(rank) for rank in lacking]
    found = (reasons.get(f) or reasons.get(f.partition("_")[0]) or reasons.get("") for f in formats)
    return list(dict.fromkeys(reason or _UNKNOWN for reason in found))


def _format(rank: Rank) -> str:
    return str(rank.facts["format"] or rank.recording.source)


def _family(rank: Rank) -> str:
    return _format(rank).partition("_")[0]


def _noun(table: str) -> str:
    return NOUNS.get(table, table.replace("_", " "))
