"""Why data or answers are missing, in words for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import polars as pl

from stepscope.analysis.registry import PREPARED, find_analysis
from stepscope.compare import OneSide, Pair
from stepscope.errors import Unavailable
from stepscope.pages.words import sentence
from stepscope.present import Language, listed
from stepscope.run.supplements import described
from stepscope.selection import named_numbers
from stepscope.sources.base import PROFILER_REASONS, Source
from stepscope.sources.registry import all_sources, source_of
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
    "flows": "flows between forward and backward work",
    "stacks": "call stacks",
    "step_totals": "totals of steps",
    "operator_totals": "totals of operators",
    "communication_totals": "totals of communication",
    "operator_steps": "executions of operators by step",
    "graphs": "compiled graphs",
    "graph_nodes": "nodes of compiled graphs",
    "graph_tensors": "tensors of compiled graphs",
    "parallel_graphs": "graphs of the parallel strategy",
    "parallel_nodes": "nodes of the parallel strategy",
    "flop_scopes": "operations by scope",
    "rank_figures": "figures of the whole rank",
    "host_usage": "samples of host usage",
    "input_pipeline": "batches and queues of the input pipeline",
    "pipeline_operators": "operators of a dataset pipeline",
    "host_events": "ranges that the framework marks on the host",
}
"""What a table holds, if its name without underscores does not say it."""

_UNKNOWN = "the recording holds none"

NO_BLOCKS = "changes of memory were recorded, but not the blocks that they belong to"
"""Why there are no `allocations` although there is a `memory_curve`."""

INSTEAD_OF = {"step_totals": "steps", "operator_totals": "operators"}
"""Totals from sources without events; they are not missing if the events were recorded."""

DETAILS = (
    *("kernel_resources", "synchronizations", "threads"),
    *("operator_details", "collective_splits", "python_calls", "timelines"),
)
"""Tables of details, of which no page says that they are missing."""

ANSWERS = {
    "breakdown": "time by step",
    "idle": "causes of idle time",
    "kernel_totals": "kernels",
    "operator_summary": "operators",
    "kernel_type_statistics": "statistics of kernels by type",
    "kernel_type_totals": "statistics of kernels by type",
    "kernel_statistics": "statistics of kernels",
    "kernel_shape_totals": "statistics of kernels",
    "api_statistics": "statistics of calls of the runtime",
    "api_totals": "statistics of calls of the runtime",
    "arrival": "arrival times",
    "step_trace": "phases",
    "step_statistics": "statistics of phases",
    "step_reduces": "communication by stream",
    "step_reduce_statistics": "mean communication by stream",
    "step_slowdowns": "slowdowns of ranks",
    "loader": "data loader",
    "loader_steps": "batches of the data loader",
    "cpu_summary": "CPU usage",
    "cpu_utilization": "CPU usage over time",
    "model_flops": "operations of the model",
    "flop_tree": "operations by scope",
    "operator_flops": "operations by operator",
    "what_if": "replay",
}
"""What an analysis gives, if its name without underscores does not say it."""


def explain(run: Run, question: str, reason: Unavailable) -> str:
    """Why a run cannot answer a question: a table is missing on all ranks, or the reason that the analysis gives."""
    table = _missing_table(run, question)
    if table is None:
        return _distinct_reasons(reason).rstrip(".")
    return "; ".join([f"the recording has no {_noun(table)}", *(why for why in _why(run, table) if why != _UNKNOWN)])


def explain_pair(pair: Pair, reason: Unavailable) -> str:
    """Why a pair cannot answer a question: a side lacks a table, or the reason that a comparison gives."""
    text = reason.reason if isinstance(reason, OneSide) else reason.marked.rstrip(".")
    if reason.table:
        text = f"the recording has no {_noun(reason.table)}"
    if not isinstance(reason, OneSide) or not reason.side:
        return text
    return f"{pair.names[reason.side == 'new'].label}: {text}"


def _distinct_reasons(reason: Unavailable) -> str:
    """The reasons that an analysis gives, each once, naming the ranks that lack a table."""
    sentences: dict[str, str] = {}
    for cause in reason.causes or (reason,):
        if cause.ranks and cause.table:
            has, why = "has" if len(cause.ranks) == 1 else "have", f". {cause.why}" if cause.why else ""
            sentences.setdefault(f"{named_numbers('rank', cause.ranks)} {has} no {_noun(cause.table)}{why}", "; ")
        else:
            sentences.setdefault(cause.marked, ". ")
    first, *others = sentences
    return first + "".join(sentences[text] + text for text in others)


def by_reason(unavailable: dict[str, str]) -> dict[str, list[str]]:
    """The questions that have no answer, by the reason."""
    questions: dict[str, list[str]] = {}
    for question, reason in unavailable.items():
        questions.setdefault(reason, []).append(question)
    return questions


def unanswered(unavailable: dict[str, str]) -> list[str]:
    """A sentence for each reason, with all the answers that are missing because of it."""
    return [
        f"No {listed([ANSWERS.get(name, name.replace('_', ' ')) for name in questions], 'or')}: {reason}."
        for reason, questions in by_reason(unavailable).items()
    ]


@dataclass(frozen=True)
class Missing:
    """Kinds of data that are missing for one reason.

    Args:
        tables: The tables that would hold them, each with the ranks that lack it; none if all do.
        reason: Why, in English.
    """

    tables: Mapping[str, Sequence[int]]
    reason: str


def missing_data(run: Run) -> list[str]:
    """A line for each reason why kinds of data are missing: the kinds, on which ranks, and the reason."""
    return [
        f"{', '.join(name + _on(ranks) for name, ranks in each.tables.items())}: {each.reason}"
        for each in missing_kinds(run)
    ]


def missing_words(run: Run, language: Language) -> list[str]:
    """The same for people, in a language: what the tables hold in place of their names."""
    if language == "en":
        return [
            f"{', '.join(_noun(name) + _on(ranks) for name, ranks in each.tables.items())}: {each.reason}"
            for each in missing_kinds(run)
        ]
    nouns = import_module("stepscope.pages.chinese.reasons").NOUNS
    return [
        "、".join(
            nouns.get(name, name) + _on(ranks).replace(" (", "（").replace(")", "）")
            for name, ranks in each.tables.items()
        )
        + f"：{sentence(each.reason, language)}"
        for each in missing_kinds(run)
    ]


def _on(ranks: Sequence[int]) -> str:
    return f" ({named_numbers('rank', list(ranks))})" if ranks else ""


def missing_kinds(run: Run) -> list[Missing]:
    """The kinds of data that are missing, by reason."""
    kinds: dict[str, dict[str, list[int]]] = {}
    of_few = frozenset[str]().union(*(source.own_tables for source in all_sources()))
    for table in TABLES:
        lacking = [rank for rank in run.ranks if not rank.has(table)]
        needless = table in (RANKS.name, ISSUES.name) or (table in INSTEAD_OF and run.has(INSTEAD_OF[table]))
        needless |= table in DETAILS or (table == STACKS.name and lacking != [] and _has_functions(run))
        needless |= table in of_few and not any(one and table in one.own_tables for one in _readers(lacking))
        if needless or not lacking:
            continue
        some = [rank.rank for rank in lacking] if len(lacking) < len(run.ranks) else []
        kinds.setdefault("; ".join(_why(run, table)), {})[table] = some
    return [Missing(tables, reason) for reason, tables in kinds.items()]


def supplied_data(run: Run) -> list[str]:
    """A line for each directory that supplies tables which the ranks' own recordings lack."""
    found: dict[str, dict[str, list[int]]] = {}
    for rank in run.ranks:
        for table in () if rank.supplement is None else rank.supplement.tables:
            tables = found.setdefault(str(rank.recording_of(table).path), {})
            tables.setdefault(table, []).append(rank.rank)
    return [f"{described(tables)}: from {path}" for path, tables in found.items()]


def _has_functions(run: Run) -> bool:
    """Whether Python functions were recorded: they are `slices`, and their nesting says what stacks would."""
    if not run.has(SLICES.name):
        return False
    functions = run.table(SLICES.name).filter(pl.col("category") == "python").select("category")
    return not functions.head(1).collect().is_empty()


def _missing_table(run: Run, question: str) -> str | None:
    """The table that is missing first among those that an analysis, and those before it, cannot do without."""
    asked = PREPARED.get(question) or find_analysis(question)
    for name, required in asked.needs.items():
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
    issues = run.issues.filter(pl.col("place") == table, pl.col("rank").is_in([rank.rank for rank in lacking]))
    if issues.height:
        return issues["problem"].unique(maintain_order=True).to_list()
    if table == "allocations" and run.has("memory_curve"):
        return [NO_BLOCKS]
    reasons = (reader.reasons if reader else PROFILER_REASONS for reader in _readers(lacking))
    return list(dict.fromkeys(known.get(table, _UNKNOWN) for known in reasons))


def _readers(ranks: Sequence[Rank]) -> list[Source | None]:
    """The sources that read the formats of some ranks, each once, in the order of the ranks."""
    formats = dict.fromkeys(str(rank.facts["format"] or rank.recording.source) for rank in ranks)
    return [source_of(each) for each in formats]


def _noun(table: str) -> str:
    return NOUNS.get(table, table.replace("_", " "))
