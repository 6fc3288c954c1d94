"""What the pages about all ranks should say, worked out from the files of a job and from nothing of ours."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from asked import Asked
from requested_ranks import link_answer, step, step_answer, who

from stepscope.run import Run

_TICKS_OF_MS = 1e5
_ROUNDING_MS = 2e-4


@dataclass(frozen=True)
class Member:
    """A rank and its files.

    Args:
        rank: Its number in the job.
        folder: Where its files are.
        number: The number in their names.
        host: Number of its host, in the layout of old clusters.
    """

    rank: int
    folder: Path
    number: int
    host: str | None = None

    def file(self, name: str) -> Path:
        """A file, by its name without the number."""
        return self.folder / name.replace("*", str(self.number))


@cache
def members(folder: Path) -> list[Member]:
    """The ranks of the job that a folder belongs to, in order."""
    top = folder.parent
    if not (top / "hccl.json").is_file():
        found = (re.fullmatch(r"\D+_(\d+)(_\D+)?\.\w+", file.name) for file in folder.iterdir())
        return [Member(rank, folder, rank) for rank in sorted({int(match[1]) for match in found if match})]
    seats = dict(line.split() for line in (top / "host_ips_mapping.txt").read_text().splitlines())
    return [
        Member(
            int(device["rank_id"]),
            top / "cluster_profiler" / seats[server["server_id"]] / "profiler",
            int(device["device_id"]),
            seats[server["server_id"]],
        )
        for server in json.loads((top / "hccl.json").read_text())["server_list"]
        for device in server["device"]
    ]


def job(run: Run) -> list[Member]:
    """The ranks of a job."""
    return members(run.ranks[0].path)


@cache
def shape(run: Run) -> tuple[str, int, int]:
    """How the job is parallel, its stages and ranks, by the name of a file."""
    for file in run.ranks[0].path.glob("ascend_cluster_analyse_*"):
        match = re.fullmatch(r"ascend_cluster_analyse_([a-z-]+)_(\d+)_(\d+)_\d+\.csv", file.name)
        assert match
        return match[1], int(match[2]), int(match[3])
    return "data-parallel", 1, len(job(run))


# ---------------------------------------------------------------- steps


def _table(file: Path) -> list[dict[str, str]]:
    with file.open() as lines:
        return list(csv.DictReader(lines))


def _average(steps: list[dict[str, float]], stated: dict[str, float] | None, *, with_first: bool) -> dict[str, float]:
    """The average of steps; as stated, if that is of other steps than these, with or without the first."""
    every = {name: mean(one[name] for one in steps) for name in steps[0]}
    later = {name: mean(one[name] for one in steps[1:] or steps) for name in steps[0]}
    if stated is not None and not any(
        all(abs(stated[name] - one[name]) <= _ROUNDING_MS for name in one) for one in (every, later)
    ):
        return stated
    return every if with_first else later


def _points(member: Member) -> tuple[list[dict[str, float]], dict[str, float] | None]:
    """Steps by their points, and the stated average, in ms."""
    names = {"interval": "iteration_interval", "forward_backward": "fp_and_bp", "tail": "tail", "step": "total"}
    rows = _table(member.file("step_trace_raw_*_detail_time.csv"))
    times = [{name: float(row[column]) / _TICKS_OF_MS for name, column in names.items()} for row in rows]
    steps = [one for row, one in zip(rows, times, strict=True) if row["step_num"] != "-"]
    return steps, next((one for row, one in zip(rows, times, strict=True) if row["step_num"] == "-"), None)


_PARTS = {
    "computing": "computation_time",
    "alone": "communication_alone_time",
    "stage_time": "stage_time",
    "receive": "receive_alone_time",
    "collective": "collective_communication_alone_time",
}


def _parts(run: Run, member: Member) -> tuple[list[dict[str, float]], dict[str, float] | None]:
    """Steps by what the rank does, and the stated average."""
    mode, stages, ranks = shape(run)
    file = member.folder / f"ascend_cluster_analyse_{mode}_{stages}_{ranks}_{member.number}.csv"
    if not file.is_file():
        return [], None
    rows = _table(file)
    times = [{name: float(row[column]) for name, column in _PARTS.items() if column in row} for row in rows]
    return times[:-1], times[-1]


def steps(run: Run, asked: Asked, *, with_first: bool = False) -> Any:
    """The page of steps.

    Args:
        run: The job.
        asked: The request.
        with_first: Average over all steps.
    """
    mode, stages, ranks = shape(run)
    number, rows = step(asked), []
    for member in job(run):
        row: dict[str, Any] = dict.fromkeys(("interval", "forward_backward", "tail", "step", *_PARTS))
        for known, stated in (_points(member), _parts(run, member)):
            if known:
                row |= known[number - 1] if number else _average(known, stated, with_first=with_first)
        stage = member.rank // (ranks // stages) if stages > 1 else None
        rows.append({**row, "rank": member.rank, "stage": stage, "host": member.host, "device": member.number})
    return step_answer(asked, rows, mode, stages, len(_points(job(run)[0])[0]))


def interval(run: Run, *, with_first: bool) -> dict[int, float]:
    """The average interval of each rank, in ms."""
    return {member.rank: _average(*_points(member), with_first=with_first)["interval"] for member in job(run)}


# ---------------------------------------------------------------- communication

Links = dict[str, dict[str, list[float]]]


@cache
def offset(run: Run, member: Member) -> int:
    """How far the numbers in a rank's links are from ranks of the job: they may count within their stage."""
    _, stages, ranks = shape(run)
    first = _table(member.file("hccl_raw_*.csv"))[0]
    ends = [set(map(int, pair.split("-"))) for pair in json.loads(first["link_info"])]
    if all(member.rank in pair for pair in ends) or stages < 2:
        return 0
    return member.rank - member.rank % (ranks // stages)


def _moved(cell: dict[str, Any], shift: int) -> Links:
    """Links as recorded, by ranks of the job, without bandwidths: time, size, and what was waited."""
    found: Links = {}
    for pair, transports in cell.items():
        ends = "-".join(str(int(end) + shift) for end in pair.split("-"))
        found[ends] = {kind: [values[0], values[1], *values[3:]] for kind, values in transports.items()}
    return found


def _mean_links(every: list[Links], count: int) -> Links:
    """The sums of links over a number of steps."""
    keys = dict.fromkeys((pair, kind) for links in every for pair, kinds in links.items() for kind in kinds)
    found: Links = {}
    for pair, kind in keys:
        values = [links[pair][kind] for links in every if kind in links.get(pair, {})]
        found.setdefault(pair, {})[kind] = [sum(column) / count for column in zip(*values, strict=True)]
    return found


def _with_rates(links: Links) -> dict[str, dict[str, list[float]]]:
    """Links with their bandwidth, bytes over time, in third place."""
    return {
        pair: {kind: [time, size, size / time * 1e3, *rest] for kind, (time, size, *rest) in kinds.items()}
        for pair, kinds in links.items()
    }


@cache
def _costs(run: Run) -> dict[int, dict[int, dict[str, Any]]]:
    """What communication cost each rank in each step, 0 for the average of all."""
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for member in job(run):
        shift = offset(run, member)
        rows = [row for row in _table(member.file("hccl_raw_*.csv")) if row["step_num"] != "-"]
        links = [_moved(json.loads(row["link_info"]), shift) for row in rows]
        calls = [json.loads(row["communication_operator_cost"]) for row in rows]
        of = found[member.rank] = {}
        for row, moved, called in zip(rows, links, calls, strict=True):
            operators = {
                name: [row["step_num"], cost, wait, _with_rates(_moved(moved_by, shift))]
                for name, (_, cost, wait, moved_by) in called.items()
            }
            of[int(row["step_num"])] = {
                **{"cost": float(row["communication_cost"]), "wait": float(row["wait_cost"])},
                **{"links": _with_rates(moved), "operators": operators},
            }
        averaged = {}
        for name in dict.fromkeys(name for called in calls for name in called):
            values = [called[name] for called in calls if name in called]
            moved_by = _mean_links([_moved(one[3], shift) for one in values], len(values))
            cost, wait = (mean(one[place] for one in values) for place in (1, 2))
            averaged[name] = ["-", cost, wait, _with_rates(moved_by)]
        of[0] = {
            **{key: mean(float(row[column]) for row in rows) for key, column in _COLUMNS.items()},
            **{"links": _with_rates(_mean_links(links, len(rows))), "operators": averaged},
        }
    return found


_COLUMNS = {"cost": "communication_cost", "wait": "wait_cost"}


def communication(run: Run, asked: Asked) -> Any:
    """The page of communication in a step."""
    number, costs, found = step(asked), _costs(run), []
    for member in job(run):
        one = costs[member.rank][number]
        parts = [one["cost"], one["wait"], one["links"], one["operators"]]
        place = {"rank": member.rank, "host": member.host, "device": member.number}
        found.append({**who(asked, place), "communication_info": parts if member.host is None else parts[:3]})
    count = max(len(of_steps) for of_steps in costs.values()) - 1
    return {"communication": found, "size": len(found), "total_step_num": count}


def all_communication(run: Run, asked: Asked) -> Any:
    """The page of communication in all steps."""
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
        for rank, of_steps in _costs(run).items()
    }


def _every_link(run: Run, number: int) -> Iterator[list[Any]]:
    for of_steps in _costs(run).values():
        for pair, kinds in of_steps[number]["links"].items():
            for kind, (time, size, rate, *_) in kinds.items():
                yield [*map(int, pair.split("-")), kind, time, size, rate]


def links(run: Run, asked: Asked) -> Any:
    """The page of links."""
    return link_answer(asked, _every_link(run, step(asked)))


# ---------------------------------------------------------------- operations, memory, advice


def _operations(member: Member) -> dict[str, float]:
    """Operations of a step and their rates, MFLOPs and GFLOPS: from the operators, else as stated."""
    if not member.file("flops_*.txt").is_file():
        stated: dict[str, float] = json.loads(member.file("flops_summary_*.json").read_text())
        return stated
    times = {
        row["full_kernel_name"]: float(row["task_duration"])
        for row in _table(member.file("aicore_intermediate_*_detail.csv"))
    }
    rows = [{key.strip(): value for key, value in row.items()} for row in _table(member.file("flops_*.txt"))]
    found, either = {}, set[str]()
    for unit, word in (("cube", "cube"), ("vec", "vector")):
        column = next(key for key in rows[0] if key.startswith("MFLOPs") and word in key)
        made = {row["full_kernel_name"]: float(row[column]) for row in rows if float(row[column]) > 0}
        either |= made.keys()
        found[f"{unit}_FLOPs"] = sum(made.values())
        found[f"{unit}_FLOPS"] = sum(made.values()) / sum(times[name] for name in made)
    found["FLOPs"] = found["cube_FLOPs"] + found["vec_FLOPs"]
    found["FLOPS"] = found["FLOPs"] / sum(times[name] for name in either)
    return found


def flops(run: Run, asked: Asked) -> Any:
    """The page of operations, for ranks whose operators are known."""
    every = {member.rank: _operations(member) for member in job(run)}
    most = max(one["FLOPs"] for one in every.values())
    found = []
    for member, answer in zip(job(run), asked.answer, strict=True):
        place = {"rank": member.rank, "host": member.host, "device": member.number}
        one = {**every[member.rank], "FLOPs_norm": every[member.rank]["FLOPs"] / most}
        said = {key: one[key] for key in answer if key in one}
        found.append({**answer, **said, **who(asked, place)})
    return found


def memory(run: Run, asked: Asked) -> Any:
    """The page of memory."""
    found = []
    for member in job(run):
        stated = json.loads(member.file("memory_usage_summary_*.json").read_text())
        place = {"rank": member.rank, "host": member.host, "device": member.number}
        found.append({**who(asked, place), "capacity": stated["capacity"], "peak_mem": stated["peak_mem"]})
    return found


def advice(run: Run, asked: Asked) -> Any:
    """The advice, where MindInsight's figures are not of these files: interval, rates of ranks and of links."""
    said = dict(asked.answer)
    intervals = interval(run, with_first=False)
    rank = max(intervals, key=lambda one: intervals[one])
    off = intervals[rank] / mean(intervals.values()) - 1
    said["step_interval"] = {"rank_id": rank, "val": intervals[rank], "percent": off * 100}
    if "flops_per_second" in said:
        rates = [_operations(member)["FLOPS"] for member in job(run)]
        if min(rates) >= 0.8 * mean(rates):
            del said["flops_per_second"]
    slow = []
    for kind in {link["link_type"] for link in said["cluster_link"]}:
        apart = [one for one in _every_link(run, 0) if one[0] != one[1] and one[2] == kind]
        usual = mean(one[5] for one in apart)
        worst = min(apart, key=lambda one: one[5])
        percent = (1 - worst[5] / usual) * 100
        ends = {"src_rank": worst[0], "des_rank": worst[1], "link_type": kind}
        slow.append({**ends, "val": worst[5], "percent": percent})
    return {**said, "cluster_link": slow}


PAGES = {
    "cluster-step-trace-summary": steps,
    "search-cluster-communication": communication,
    "communication-data": all_communication,
    "search-cluster-link": links,
    "cluster-flops": flops,
    "cluster-peak-memory": memory,
    "summary/cluster-propose": advice,
}
