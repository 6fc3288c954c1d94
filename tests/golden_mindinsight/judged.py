"""Each request, put to our functions: equal, better by a known fault of the other tool, or unexplained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pages_flops
import pages_pipeline
from asked import Asked
from differing import Difference, differences
from requested import ordered

from stepscope import open_run
from stepscope.errors import StepscopeError
from stepscope.run import Run

Page = Callable[[Run, Asked], Any]


@dataclass(frozen=True)
class Judged:
    """What became of a request.

    Args:
        asked: The request.
        faults: Names of the faults that explain differences; none where all is equal.
        unexplained: Differences that nothing explains.
    """

    asked: Asked
    faults: frozenset[str] = frozenset()
    unexplained: list[Difference] = field(default_factory=list)

    is_empty: bool = False
    """Neither side has anything to show."""

    @property
    def verdict(self) -> str:
        """`equal`, `better` or `unexplained`."""
        return "unexplained" if self.unexplained else "better" if self.faults else "equal"


Explain = Callable[[Asked, Difference, Run | None], str | None]


def judge(asked: Asked, data: Path, pages: Mapping[str, Page], explain: Explain) -> Judged:
    """Put one request to our functions and compare."""
    run = _asked(asked, data)
    said = ours(asked, data, pages)
    theirs = None if says_nothing(asked) else normal(asked)
    if said is not None:
        said = in_order(asked, said)
    if theirs is None or said is None:
        found = [] if theirs is said else [Difference("", theirs, said)]
    else:
        found = list(differences(theirs, said))
    faults, unexplained = set(), []
    for difference in found:
        fault = explain(asked, difference, run)
        if fault is None:
            unexplained.append(difference)
        else:
            faults.add(fault)
    return Judged(asked, frozenset(faults), unexplained, is_empty=theirs is None and said is None)


def ours(asked: Asked, data: Path, pages: Mapping[str, Page]) -> Any:
    """What our functions say; None where they have nothing to say."""
    run = _asked(asked, data)
    try:
        return None if run is None else pages[asked.kind](run, asked)
    except StepscopeError:
        return None


def normal(asked: Asked) -> Any:
    """Their answer, in an order that can be compared and without headings."""
    if asked.kind == "summary/propose":
        return {label: said for label, said in asked.answer.items() if said is not None} or None
    if asked.kind in pages_pipeline.NORMAL and not says_nothing(asked):
        return pages_pipeline.NORMAL[asked.kind](asked.answer)
    if asked.kind == "flops-scope" and not says_nothing(asked):
        return pages_flops.in_order(asked.answer)
    if asked.kind == "training-trace/graph" and not says_nothing(asked):
        layers = asked.answer["training_trace_graph"]
        return {**asked.answer, "training_trace_graph": [*layers[:2], *sorted(layers[2:], key=_stream)]}
    return in_order(asked, asked.answer)


def _stream(lane: list[Any]) -> int:
    """The stream of a lane by the name of its first call, `stream_<number>_...`; lanes without any come first."""
    names = [one["name"] for one in lane if one.get("name")]
    return int(names[0].split("_")[1]) if names else -1


def in_order(asked: Asked, answer: Any) -> Any:
    """An answer whose rows stand in the order of what names them, as far as no other was asked for."""
    if asked.kind == "search-cluster-link" and "sort_condition" not in asked.parameters and answer:
        ordered_links = sorted(answer["cluster_link_info"], key=lambda row: (round(row[3]), *row[:2]))
        return {**answer, "cluster_link_info": ordered_links}
    if not isinstance(answer, dict) or "object" not in answer:
        return answer
    if sort := asked.parameters.get("sort_condition"):
        return {**answer, "object": ordered(answer["col_name"], answer["object"], sort)}
    names = (int, str) if "op_id" in answer["col_name"] else (str,)
    rows = sorted(answer["object"], key=lambda row: [cell for cell in row if type(cell) in names][:2])
    return {**answer, "object": rows}


def says_nothing(asked: Asked) -> bool:
    """Whether the answer is an error or empty."""
    answer = asked.answer
    if asked.status != 200 or not answer or pages_pipeline.is_empty(asked):
        return True
    lists = ("object", "info", "communication", "cluster_link_info")
    return isinstance(answer, dict) and (any(answer.get(name) == [] for name in lists) or "is_heterogeneous" in answer)


@cache
def _run(path: Path) -> Run | None:
    try:
        return open_run(path, use_store=False)
    except StepscopeError:
        return None


def _asked(asked: Asked, data: Path) -> Run | None:
    """The rank, or the job, that was asked about."""
    return _run(data / asked.run) if asked.is_about_all else _rank(data / asked.run, asked.rank)


@cache
def _rank(path: Path, rank: int) -> Run | None:
    run = _run(path)
    if run is None or rank not in [one.rank for one in run.ranks]:
        return None
    return run.select(ranks=rank)
