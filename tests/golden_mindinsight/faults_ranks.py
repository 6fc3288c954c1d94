"""What MindInsight gets wrong on its pages about all ranks; see `faults.py`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import raw_ranks
from asked import Asked
from differing import MISSING, Difference, differences
from fault import Fault
from faults import FAULTS as OF_A_RANK
from requested_ranks import step

from stepscope.run import Run

_COMMUNICATION = "search-cluster-communication|communication-data"
_NAMED = {fault.name: fault.reason for fault in OF_A_RANK}


def _at(value: Any, place: str) -> Any:
    """The value in a place; `MISSING` if there is none."""
    for key in filter(None, place.split("/")):
        if isinstance(value, dict):
            value = value.get(key, MISSING)
        elif isinstance(value, list) and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


@cache
def _page(run: Run, asked: str, with_first: bool) -> Any:
    one = _ASKED[asked]
    if with_first:
        return raw_ranks.steps(run, one, with_first=True)
    page = raw_ranks.PAGES[one.kind](run, one)
    if one.kind == "search-cluster-link" and "sort_condition" not in one.parameters:
        page["cluster_link_info"].sort(key=lambda row: (round(row[3]), *row[:2]))
    return page


_ASKED: dict[str, Asked] = {}
"""The requests by their names, so that their pages are worked out once."""


def right(run: Run, asked: Asked, difference: Difference, *, with_first: bool = False) -> Any:
    """What has to stand in the place of a difference, from the files."""
    _ASKED[asked.name] = asked
    return _at(_page(run, asked.name, with_first), difference.place)


def _said(asked: Asked, difference: Difference) -> str:
    """The place of the list in which a figure stands."""
    return difference.place.rpartition("/")[0]


def _is_no_quotient(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether a bandwidth is not that of the bytes and the time beside it."""
    values = _at(asked.answer, _said(asked, difference))
    time, size = values[-3:-1] if asked.kind == "search-cluster-link" else values[:2]
    return bool(list(differences(difference.theirs, size / time * 1e3)))


def _is_summed(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether a bandwidth that advice is about stands on the page of links and is no quotient there."""
    assert run is not None
    link = asked.answer["cluster_link"][0]
    pages = asked.file.with_name("cluster_link_all.json")
    listed = json.loads(pages.read_bytes())["response"]["cluster_link_info"]
    return any(
        abs(rate - link["val"]) < 1e-4 and abs(rate - size / time * 1e3) > 1 for _, _, time, size, rate in listed
    )


def _is_of_later_stage(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether a difference is about links of a rank whose links count within its stage."""
    assert run is not None
    shifted = _shifted(run)
    if asked.kind == "search-cluster-link":
        return bool(shifted)
    parts = difference.place.split("/")
    place = int(parts[1] if parts[0] == "communication" else parts[0].removeprefix("device"))
    return place in shifted and MISSING in (difference.theirs, difference.ours)


@cache
def _shifted(run: Run) -> frozenset[int]:
    """The ranks whose links count within their stage."""
    return frozenset(member.rank for member in raw_ranks.job(run) if raw_ranks.offset(run, member))


def _counts_first(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is the average with the first step."""
    assert run is not None
    if asked.kind == "summary/cluster-propose":
        values = raw_ranks.interval(run, with_first=True)
        return abs(values[asked.answer["step_interval"]["rank_id"]] - difference.theirs) < 1e-4
    with_first = right(run, asked, difference, with_first=True)
    if isinstance(difference.theirs, str):
        return step(asked) == 0 and str(with_first) == difference.theirs
    return (
        step(asked) == 0 and isinstance(difference.theirs, (int, float)) and abs(with_first - difference.theirs) < 1e-4
    )


def _is_text(asked: Asked, difference: Difference, run: Run | None) -> bool:
    return isinstance(difference.theirs, str) and difference.theirs == str(difference.ours)


def _is_refused(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether it says that there is no such column to sort by."""
    return difference.theirs is None and asked.status == 400 and "does not exist" in asked.answer["error_msg"]


def _ignores_stage(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether a stage was asked for that the job does not have."""
    stage = (asked.parameters.get("filter_condition") or {}).get("stage_id", 0)
    return bool(stage > asked.answer.get("stage_num", stage))


def _is_of_last_rank(asked: Asked, difference: Difference, run: Run | None) -> bool:
    assert run is not None
    last = raw_ranks.all_communication(run, asked)[f"device{raw_ranks.job(run)[-1].rank}"]
    return bool(difference.theirs == len(last) - 1)


def _stated(run: Run, place: str) -> dict[str, float]:
    member = raw_ranks.job(run)[int(place.split("/", maxsplit=1)[0])]
    found = json.loads(member.file("flops_summary_*.json").read_text())
    return {"FLOPs": found.get("cube_FLOPs", 0) + found.get("vec_FLOPs", 0), **found}


def _is_stated(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is what the file of the rank states, or the share of that in the most."""
    assert run is not None
    key = difference.place.split("/")[1]
    value = _stated(run, difference.place)["FLOPs" if key == "FLOPs_norm" else key]
    if key == "FLOPs_norm":
        value /= max(_stated(run, str(place))["FLOPs"] for place in range(len(asked.answer)))
    return abs(value - difference.theirs) < 1e-6


def _is_of_stated_rates(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is the lowest of the rates that the files state, and ours is none."""
    assert run is not None
    stated = [_stated(run, str(place)) for place in range(len(raw_ranks.job(run)))]
    lowest = min(one["cube_FLOPS"] + one["vec_FLOPS"] for one in stated)
    return difference.ours is MISSING and abs(difference.theirs["val"] - lowest) < 1e-3


_WITHIN = (
    "Links of later pipeline stages are shown under numbers within the stage, as if they were those of the first; ours "
    "are ranks of the job."
)
_ADDED = (
    "The bandwidth of a step is the sum of those of its calls, that of an average the mean of those of the steps; ours "
    "is bytes over time."
)
_OLD = r"step_trace/\d+|communication/\d+|\d+"

FAULTS = (
    Fault(
        "number as text",
        "cluster-.*|search-cluster-.*",
        rf"total_step_num|({_OLD})/(rank_id|device_id)",
        _NAMED["number as text"],
        _is_text,
        right,
    ),
    Fault(
        "average with the first step",
        "cluster-step-trace-summary|summary/cluster-propose",
        r"(info|step_trace)/\d+/(step_trace_info/\d|rank_id|device_id|host_ip)|step_interval/val",
        _NAMED["average with the first step"],
        _counts_first,
        right,
    ),
    Fault(
        "rates added or averaged",
        f"{_COMMUNICATION}|search-cluster-link",
        r".*/(SDMA|RDMA)/2|cluster_link_info/\d+/4",
        _ADDED,
        _is_no_quotient,
        right,
    ),
    Fault(
        "rates added or averaged",
        "summary/cluster-propose",
        "cluster_link/0/(val|percent)",
        _ADDED,
        _is_summed,
        right,
    ),
    Fault(
        "ranks within their stage",
        _COMMUNICATION,
        r".*/\d+-\d+",
        _WITHIN,
        _is_of_later_stage,
        right,
    ),
    Fault(
        "ranks within their stage",
        "search-cluster-link",
        r"cluster_link_info(/\d+/0)?|size",
        _WITHIN,
        _is_of_later_stage,
        right,
    ),
    Fault(
        "steps of the last rank",
        "search-cluster-communication",
        "total_step_num",
        "The number of steps is that of the last rank, so steps that only others have cannot be chosen; ours is the "
        "most of any.",
        _is_of_last_rank,
        right,
    ),
    Fault(
        "sorting refused",
        "cluster-step-trace-summary",
        "",
        "Ranks cannot be sorted by columns of another parallel mode, nor by the length of the step; ours can.",
        _is_refused,
        right,
    ),
    Fault(
        "stage ignored",
        "cluster-step-trace-summary",
        "info|size",
        "Without a pipeline, the stage that was asked for is ignored; ours has no ranks of a stage that is not there.",
        _ignores_stage,
        right,
    ),
    Fault(
        "total of other operators",
        "cluster-flops",
        r"\d+/((cube_|vec_)?FLOPs|FLOPs_norm)",
        _NAMED["total of other operators"],
        _is_stated,
        right,
    ),
    Fault(
        "rate of rates",
        "cluster-flops",
        r"\d+/(cube_|vec_)?FLOPS",
        _NAMED["rate of rates"],
        _is_stated,
        right,
    ),
    Fault(
        "rate of rates",
        "summary/cluster-propose",
        "flops_per_second",
        _NAMED["rate of rates"],
        _is_of_stated_rates,
        right,
    ),
)
