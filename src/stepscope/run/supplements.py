"""Tables that another recording of the same rank and job supplies, where its own one lacks them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stepscope.selection import named_numbers
from stepscope.store.recording import Recording


@dataclass(frozen=True)
class Supplement:
    """Tables of a rank that come from another recording of it.

    Args:
        recording: The other recording.
        tables: Their names.
    """

    recording: Recording
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """Tables that are taken together or not at all, since their rows refer to one another.

    Args:
        tables: Their names. A recording that has any of them gets none.
        apart_from: Nor does one with any of these, whose rows the same answers read.
        reason: Why they fit another recording of the same rank.
    """

    tables: tuple[str, ...]
    apart_from: tuple[str, ...]
    reason: str


SUBJECTS: Sequence[Subject] = (
    Subject(
        ("graphs", "graph_nodes", "graph_tensors"),
        ("memory_curve", "allocations"),
        "The compiler's plan: its points are nodes, numbered within the graph. Not beside recorded memory, since an "
        "answer would have both.",
    ),
    Subject(
        ("parallel_graphs", "parallel_nodes"),
        (),
        "The compiled graph: nodes refer to nodes, groups are listed by their ranks, and stages are those of the job.",
    ),
    Subject(
        ("flop_scopes",),
        ("operators", "kernels", "operator_totals"),
        "FLOPs of the model's scopes as stated. Not beside operators, whose FLOPs make such a tree themselves.",
    ),
    Subject(
        ("pipeline_operators",),
        ("input_pipeline", "host_usage"),
        "The operators of the dataset and how they are set. Not beside samples, which name operators of their own.",
    ),
)
"""All that is taken from another recording, whose clock is unknown and which may cover other steps.

No table here has a time, a step, or what identifies rows of another subject. Left out for that reason are totals and
figures by operator or step (`operator_totals`, `step_totals`, `communication_totals`, `links`, `rank_figures`): answers
divide them by the steps of the recording, or compare them with its own."""


def tables_for(own: Recording, other: Recording) -> tuple[str, ...]:
    """The tables that a recording lacks and another one of the same rank supplies."""
    return tuple(
        name
        for subject in SUBJECTS
        if own.rows.keys().isdisjoint((*subject.tables, *subject.apart_from))
        for name in subject.tables
        if name in other.rows
    )


def described(tables: Mapping[str, Sequence[int]]) -> str:
    """Tables with the ranks for which they are supplied, in words.

    Examples:
        >>> described({"graphs": [0, 1], "graph_nodes": [0, 1], "flop_scopes": [1]})
        'graphs, graph_nodes of ranks 0-1; flop_scopes of rank 1'
    """
    by_ranks: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for name, ranks in tables.items():
        by_ranks[tuple(sorted(ranks))].append(name)
    return "; ".join(f"{', '.join(names)} of {named_numbers('rank', ranks)}" for ranks, names in by_ranks.items())
