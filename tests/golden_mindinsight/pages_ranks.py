"""The pages about all ranks of a job: steps, communication, links, floating point operations, memory, advice."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import polars as pl
from asked import Asked
from differing import Figure
from requested_ranks import link_answer, step, step_answer, who
from said import Rows, rows

from stepscope.analysis.job import cluster_advice as advice
from stepscope.errors import StepscopeError
from stepscope.run import Run

TIMES = {
    "interval": "interval_ns",
    "forward_backward": "forward_backward_ns",
    "tail": "tail_ns",
    "step": "step_ns",
    "computing": "computing_and_free_ns",
    "alone": "communication_not_overlapped_ns",
    "stage_time": "stage_ns",
    "receive": "receiving_ns",
    "collective": "communication_not_overlapped_exclude_receive_ns",
}


def _check_cluster(run: Run) -> None:
    """Only several ranks are a cluster.

    Raises:
        StepscopeError: If there is one.
    """
    if len(run.ranks) < 2:
        raise StepscopeError("a single rank is no cluster")


def steps(run: Run, asked: Asked) -> Any:
    """One step of all ranks, or the average: that of the profile, if it is of more steps than its files hold."""
    _check_cluster(run)
    number, every = step(asked), rows(run, "rank_steps")
    stage = (asked.parameters.get("filter_condition") or {}).get("stage_id")
    options = {} if stage is None else {"stage": str(stage - 1)}
    if number:
        chosen = [row for row in rows(run, "rank_steps", **options) if row["step"] == number]
    else:
        means = rows(run, "rank_means", **options)
        chosen = [row for row in means if row["split"] == "stated"] or means
    if number and number not in {row["step"] for row in every}:
        raise StepscopeError(f"no step {number}")
    found = [
        {
            **{name: row[name] for name in ("rank", "stage", "host", "device")},
            **{
                name: None if row[column] is None else Figure(row[column] / 1e6, 4, 1e-5)
                for name, column in TIMES.items()
            },
        }
        for row in chosen
    ]
    text = run.table("ranks").collect()["parallelism"][0]
    known = json.loads(text) if text else {}
    mode = known.get("parallel_mode", "data_parallel").replace("_", "-")
    count = len({row["step"] for row in every})
    return step_answer(asked, found, mode, known.get("stage_num", 1), count)


def communication(run: Run, asked: Asked) -> Any:
    """Cost and waiting of each rank in a step, with its links and operators."""
    _check_cluster(run)
    number = step(asked)
    costs = _costs(run)
    found = [
        {**who(asked, _place(run, rank)), "communication_info": _info(asked, of_steps[number])}
        for rank, of_steps in sorted(costs.items())
        if number in of_steps
    ]
    if not found:
        raise StepscopeError(f"no step {number}")
    count = max(len(of_steps) for of_steps in costs.values()) - 1
    return {"communication": found, "size": len(found), "total_step_num": count}


def _info(asked: Asked, one: dict[str, Any]) -> list[Any]:
    parts = [one["cost"], one["wait"], one["links"]]
    return parts if asked.run == "synthetic_legacy_r13" else [*parts, one["operators"]]


def all_communication(run: Run, asked: Asked) -> Any:
    """The same of every step and of the average."""
    _check_cluster(run)
    return {
        f"device{rank}": [
            {
                "step_num": str(number) if number else "-",
                "communication_cost": of_steps[number]["cost"],
                "wait_cost": of_steps[number]["wait"],
                "link_info": of_steps[number]["links"],
                "communication_operator_cost": of_steps[number]["operators"],
            }
            for number in [*sorted(number for number in of_steps if number), 0]
        ]
        for rank, of_steps in sorted(_costs(run).items())
    }


def _place(run: Run, rank: int) -> dict[str, Any]:
    return run.table("ranks").collect().filter(rank=rank).select("rank", "host", "device").row(0, named=True)


def _costs(run: Run) -> dict[int, dict[int, dict[str, Any]]]:
    """What communication cost each rank in each step, 0 for the average."""
    found: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
    for by_step in (True, False):
        for row in rows(run, "rank_communication", by_step=by_step, with_first=True):
            found[row["rank"]][row["step"] or 0] = {
                **{"cost": row["transmit_ns"] / 1e6, "wait": row["wait_ns"] / 1e6},
                **{"links": {}, "operators": {}},
            }
        for row in rows(run, "rank_calls", by_step=by_step, with_first=True):
            number = row["step"] or 0
            figures = [str(number) if number else "-", row["transmit_ns"] / 1e6, row["wait_ns"] / 1e6, {}]
            found[row["rank"]][number]["operators"][row["name"]] = figures
        for row in rows(run, "call_links", by_step=by_step):
            operator = found[row["rank"]][row["step"] or 0]["operators"][row["name"]]
            operator[3].setdefault(_ends(row), {})[row["transport"]] = _moved(row)
    reported = run.table("links").filter(pl.col("name").is_null())
    of = reported.select("rank", "source", "destination", "transport").unique().sort(pl.all()).collect()
    for by_step in (True, False):
        totals = {
            (row["step"], row["source"], row["destination"], row["transport"]): row
            for row in rows(run, "link_totals", by_step=by_step)
        }
        for rank, source, destination, transport in of.iter_rows():
            for number, of_step in found[rank].items():
                row = totals.get((number or None, source, destination, transport))
                if row is not None:
                    of_step["links"].setdefault(f"{source}-{destination}", {})[transport] = _moved(row)
    return found


def _ends(row: dict[str, Any]) -> str:
    return f"{row['source']}-{row['destination']}"


def _moved(row: dict[str, Any]) -> list[Any]:
    """Time in ms, KB, KB/s, and for RDMA what was waited."""
    rate = row["bandwidth_bytes_per_s"]
    wait = [] if row["wait_ns"] is None else [row["wait_ns"] / 1e6]
    time, size = Figure(row["duration_ns"] / 1e6, 6), Figure(row["size_bytes"] / 1e3, 3)
    return [time, size, None if rate is None else rate / 1e3, *wait]


def links(run: Run, asked: Asked) -> Any:
    """The links of a step, or of the average."""
    _check_cluster(run)
    number = step(asked)
    found = [
        (row["source"], row["destination"], row["transport"], *_moved(row)[:3])
        for row in rows(run, "link_totals", by_step=bool(number))
        if (row["step"] or 0) == number
    ]
    return link_answer(asked, found)


def flops(run: Run, asked: Asked) -> Any:
    """Operations of each rank, their rate, and their share of the most."""
    _check_cluster(run)
    spread = {row["rank"]: row for row in rows(run, "rank_flops")}
    found = []
    for one in rows(run, "model_flops"):
        row = spread[one["rank"]]
        said = {**who(asked, row), "FLOPs_norm": row["of_most_ratio"], "FLOPs": Figure(row["step_flops"] / 1e6, 4)}
        if one["stated_flops"] is not None:
            said |= {
                "FLOPS": Figure(one["flops_per_s"] / 1e9, 4),
                "FLOPS_Utilization": row["stated_utilization_ratio"] * 100,
            }
        else:
            said |= {
                "cube_FLOPs": Figure(one["step_cube_flops"] / 1e6, 4),
                "vec_FLOPs": Figure(one["step_vector_flops"] / 1e6, 4),
                "cube_FLOPS": Figure(one["cube_flops_per_s"] / 1e9, 4),
                "vec_FLOPS": Figure(one["vector_flops_per_s"] / 1e9, 4),
            }
        found.append(said)
    return found


def memory(run: Run, asked: Asked) -> Any:
    """Capacity and peak of each rank, as stated."""
    _check_cluster(run)
    return [
        {**who(asked, row), "capacity": row["capacity_bytes"] / 2**30, "peak_mem": row["stated_peak_bytes"] / 2**30}
        for row in rows(run, "rank_memory")
    ]


def propose(run: Run, asked: Asked) -> Any:
    """The advice: of each kind what is farthest off."""
    _check_cluster(run)
    first: dict[str, Any] = {}
    for row in rows(run, "cluster_advice"):
        first.setdefault(row["advice"], row)
    said: dict[str, Any] = {}
    for kind, column, factor in ((advice.INTERVAL, "interval_ns", 1e6), (advice.RATE, "flops_per_s", 1e9)):
        if row := first.get(kind):
            said[kind] = {"rank_id": row["rank"], "val": Figure(row[column] / factor, 4), "percent": _percent(row)}
    of_links: Rows = [row for row in rows(run, "cluster_advice") if row["advice"] == advice.LINK]
    if of_links:
        worst = {row["transport"]: row for row in reversed(of_links)}
        said[advice.LINK] = [
            {
                **{"src_rank": row["source"], "des_rank": row["destination"], "link_type": row["transport"]},
                **{"val": Figure(row["bandwidth_bytes_per_s"] / 1e3, 4), "percent": _percent(row)},
            }
            for row in worst.values()
        ]
    shares = {
        kind: {"val": _percent(row), "threshold": row["limit_ratio"] * 100}
        for kind in (advice.DATA, advice.MODEL, advice.BETWEEN, advice.WITHIN)
        if (row := first.get(kind))
    }
    if advice.WITHIN in shares:
        shares[advice.WITHIN]["stage"] = first[advice.WITHIN]["stage"] + 1
    if row := first.get(advice.STAGE_FLOPS):
        shares[advice.STAGE_FLOPS] = {
            **{"stage": row["stage"] + 1, "val": Figure(row["step_flops"] / 1e6, 4), "percent": _percent(row)},
        }
    if not said and not shares:
        raise StepscopeError("no advice")
    return {**said, "parallel_strategy": shares} if shares else said


def _percent(row: dict[str, Any]) -> Figure:
    return Figure(row["off_ratio"] * 100, 2)


PAGES = {
    "cluster-step-trace-summary": steps,
    "search-cluster-communication": communication,
    "communication-data": all_communication,
    "search-cluster-link": links,
    "cluster-flops": flops,
    "cluster-peak-memory": memory,
    "summary/cluster-propose": propose,
}
