"""What answers about all ranks should be, worked out from the files themselves and from nothing of ours."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from asked import Asked
from differing import MISSING, Difference

from stepscope.run import Run

_TICKS_OF_US = 100
_LENGTHS = ("iteration_interval", "fp_and_bp", "tail", "total")
Spans = dict[str, dict[str, float]]


def folder(run: Run) -> Path:
    """The directory of the profile."""
    return run.ranks[0].path


@cache
def step_rows(path: Path, rank: int) -> list[dict[str, str]]:
    """The lines of the file of steps, the average row last."""
    with (path / f"step_trace_raw_{rank}_detail_time.csv").open() as lines:
        return list(csv.DictReader(lines))


def average(run: Run, asked: Asked, difference: Difference) -> Any:
    """A mean of lengths over the steps in the file, without the first one; means of moments are nothing."""
    device, _, column = difference.place.split("/")
    if column not in _LENGTHS:
        return MISSING
    steps = [row for row in step_rows(folder(run), _rank(device)) if row["step_num"] != "-"]
    return fmean(float(row[column]) for row in steps[1:])


def is_average(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs stands in the average row of the file."""
    assert run is not None
    device, _, column = difference.place.split("/")
    rows = step_rows(folder(run), _rank(device))
    return rows[-1]["step_num"] == "-" and float(rows[-1][column]) == difference.theirs


def _rank(device: str) -> int:
    return int(device.removeprefix("device"))


@cache
def _kernels(path: Path, rank: int) -> dict[str, list[tuple[float, float]]]:
    """Start and length of all executions of each operator, in us, by the file of kernels."""
    file = path / f"output_timeline_data_{rank}.txt"
    found: dict[str, list[tuple[float, float]]] = {}
    if file.is_file():
        with file.open() as lines:
            for row in csv.DictReader(lines):
                name = row["kernel_name"].rsplit("/", 1)[-1]
                found.setdefault(name, []).append((float(row["start_time(us)"]), float(row["duration(ms)"]) * 1e3))
    return {name: sorted(runs) for name, runs in found.items()}


@cache
def spans(path: Path, rank: int, step: int) -> Spans:
    """When each operator runs in a step, in us since the first one: kernels are executed once in each step, calls are
    in the file of steps."""
    times = {name: runs[step - 1] for name, runs in _kernels(path, rank).items() if len(runs) >= step}
    file = path / f"step_trace_raw_{rank}_detail_time.csv"
    row = step_rows(path, rank)[step - 1] if file.is_file() else {}
    for column, value in row.items():
        if column.endswith("_start_point") and column.startswith("stream_") and value:
            call = column.removesuffix("_start_point")
            name = call.rsplit("_", 1)[-1]
            start, length = float(value) / _TICKS_OF_US, float(row[call]) / _TICKS_OF_US
            times[name] = (start, length)
    first = min((start for start, _ in times.values()), default=0.0)
    return {
        name: {"st": start - first, "ed": start - first + length, "dur": length}
        for name, (start, length) in times.items()
    }


def _begins(path: Path, rank: int, step: int) -> float:
    """The first start of a step, in us: of a kernel, or of a call."""
    kernels = [runs[step - 1][0] for runs in _kernels(path, rank).values() if len(runs) >= step]
    file = path / f"step_trace_raw_{rank}_detail_time.csv"
    row = step_rows(path, rank)[step - 1] if file.is_file() else {}
    calls = [float(row[name]) / _TICKS_OF_US for name in row if name.startswith("stream_") and name[-6:] == "_point"]
    return min([*kernels, *calls])


@cache
def _stages(path: Path, ranks: tuple[int, ...], every: tuple[int, ...], step: int) -> dict[str, Any]:
    """Operators of each stage over its ranks, in us since the first start of the step on any rank."""
    cluster = next(path.glob("ascend_cluster_analyse_*_0.csv"), None)
    _, count, size, _ = (cluster.stem if cluster else "x_1_1_0").rsplit("_", 3)
    each = int(size) // int(count)
    whole = {rank: spans(path, rank, step) for rank in ranks}
    starts = {rank: _begins(path, rank, step) - _clock(path, every)[rank] for rank in ranks}
    first = min(starts.values())
    found: dict[str, Any] = {}
    for rank in ranks:
        stage = found.setdefault(f"stage{rank // each}", {"data": {}, "devices": []})
        stage["devices"].append(f"device{rank}")
        for name, span in whole[rank].items():
            moved = [starts[rank] - first + span[key] for key in ("st", "ed")]
            stage["data"].setdefault(name, []).append(moved)
    for stage in found.values():
        stage["data"] = {name: _over_ranks(moments) for name, moments in stage["data"].items()}
    return found


def _over_ranks(moments: list[list[float]]) -> dict[str, float]:
    pairs = dict(zip(("st", "ed"), zip(*moments, strict=True), strict=True))
    sums = {"avg": fmean, "min": min, "max": max}
    values = {f"{key}_{which}": made(pairs[key]) for key in pairs for which, made in sums.items()}
    return {"n": len(moments), **values}


@cache
def _clock(path: Path, ranks: tuple[int, ...]) -> dict[int, float]:
    """How far clocks are ahead, in us: collectives of a group end together on its ranks. Below 0.1 ms is noise."""
    ends: dict[str, dict[int, float]] = {}
    for rank in ranks:
        file = path / f"step_trace_raw_{rank}_detail_time.csv"
        for row in step_rows(path, rank) if file.is_file() else ():
            for column, value in row.items():
                if "AllReduce" in column and column.endswith("_end_point") and value and row["step_num"] != "-":
                    name = f"{row['step_num']} {column.removesuffix('_end_point').rsplit('_', 1)[-1]}"
                    ends.setdefault(name, {})[rank] = float(value) / _TICKS_OF_US
    clock = dict.fromkeys(ranks, 0.0)
    for turn in range(9):
        middle = {name: median(end - clock[rank] for rank, end in seen.items()) for name, seen in ends.items()}
        off = {rank: [seen[rank] - middle[name] for name, seen in ends.items() if rank in seen] for rank in ranks}
        clock = {rank: median(values) if values else 0.0 for rank, values in off.items()}
        if not turn:  # the usual rank is right
            usual = median(clock.values())
            clock = {rank: value - usual for rank, value in clock.items()}
    return {rank: value if abs(value) >= 100 else 0.0 for rank, value in clock.items()}


def is_of_maps(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is over the ranks of what they show of each."""
    _, stage, _, name, what = difference.place.split("/")
    moment, _, which = what.partition("_")
    devices = asked.answer["stage_data"][stage]["devices"]
    shown = [asked.answer["maps"][device][name][moment] - asked.answer["minT"] for device in devices]
    made = {"avg": fmean, "min": min, "max": max}[which](shown)
    return abs(made - difference.theirs) < 0.05


def timeline(run: Run, asked: Asked, difference: Difference) -> Any:
    """The whole answer, or a value in it."""
    wanted = asked.parameters.get("device_list")
    there = [rank.rank for rank in run.ranks if rank.rank is not None]
    ranks = [rank for rank in map(int, wanted.split(",")) if rank in there] if wanted else there
    step = asked.parameters["step"]
    value: Any = {
        "maps": {f"device{rank}": spans(folder(run), rank, step) for rank in ranks},
        "stage_data": _stages(folder(run), tuple(ranks), tuple(there), step),
    }
    for key in filter(None, difference.place.split("/")):
        if key not in value:
            return MISSING
        value = value[key]
    return value


@cache
def _displayed(path: Path, rank: int) -> dict[str, list[tuple[float, float]]]:
    """Start and length of all that the file for display has, in us."""
    file = path / f"ascend_timeline_display_{rank}.json"
    found: dict[str, list[tuple[float, float]]] = {}
    for event in json.loads(file.read_bytes()) if file.is_file() else ():
        if event["ph"] == "X":
            found.setdefault(event["name"], []).append((float(event["ts"]), float(event["dur"])))
    return {name: sorted(runs) for name, runs in found.items()}


def is_last(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether theirs is the last execution in the file for display, whatever step was asked for."""
    assert run is not None
    _, device, name, what = difference.place.split("/")
    displayed = _displayed(folder(run), _rank(device))
    shown = asked.answer["maps"][device]
    first = min(span["st"] for span in shown.values())
    opened = next(one for one, span in shown.items() if span["st"] == first)
    start, length = displayed[name][-1]
    # Ranks are moved as a whole, so what lies between two operators stays.
    since = start - displayed[opened][-1][0]
    meant = {"st": since, "ed": since + length, "dur": length}[what]
    return abs(meant - difference.theirs) < 0.05


def is_displayed(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether an operator that they leave out is in their file."""
    assert run is not None
    device, name = difference.place.split("/")[1], difference.place.split("/")[-1]
    rank = int(device[-1]) if device.startswith("device") else 0
    return difference.theirs is MISSING and name in _displayed(folder(run), rank)


@cache
def _graph(path: Path, rank: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / f"parallel_strategy_{rank}.json").read_bytes())["graph"]
    return found


def parameter(run: Run, asked: Asked, difference: Difference) -> Any:
    """A parameter of the graph, in its place."""
    _, kind, name = difference.place.split("/", 2)
    stated = next((one for one in _graph(folder(run), 0)["parameters"] if one["name"] == name), None)
    if kind == "const_nodes" or stated is None:
        return MISSING
    tensor = stated.get("type", {}).get("tensorType", {})
    sizes = [one["size"] for one in tensor.get("shape", {}).get("dim", [])]
    return {
        "attr": {},
        "input": [],
        "instance_type": "",
        "name": name,
        "node_id": name,
        "output_data_type": f"DT_TENSOR[{tensor['elemType']}]" if tensor else "",
        "output_shape": sizes,
        "parallel_group": [],
        "parallel_group_rank": "",
        "parallel_shard": [],
        "scope": "",
        "type": "Parameter",
    }


def is_parameter(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether it is about a parameter of the graph that they list as a constant."""
    assert run is not None
    name = difference.place.split("/", 2)[2]
    named = {one["name"] for one in _graph(folder(run), 0)["parameters"]}
    listed = {one["node_id"] for one in asked.answer["data"]["const_nodes"]}
    return name in named & listed


def _attribute(run: Run, place: str, name: str) -> Any:
    """The value of an attribute of a node."""
    node = next(one for one in _graph(folder(run), 0)["node"] if one["name"] == place.split("/")[2])
    return next((one["value"] for one in node.get("attribute", []) if one["name"] == name), None)


def is_count(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether the group of a node is a number, as that of a convolution."""
    assert run is not None
    return "intVal" in (_attribute(run, difference.place, "group") or {})


def strategy(run: Run, asked: Asked, difference: Difference) -> Any:
    """The strategy that the compiler chose."""
    chosen = _numbers(_attribute(run, difference.place, "gen_strategy"))
    return str(chosen)


def _numbers(value: Any) -> Any:
    return [_numbers(one) for one in value["values"]] if "values" in value else int(value["intVal"])


def is_of_no_file(asked: Asked, difference: Difference, run: Run | None) -> bool:
    """Whether what they say stands in no file of the directory."""
    assert run is not None
    text = str(difference.theirs).encode()
    return not any(text in file.read_bytes() for file in folder(run).rglob("*") if file.is_file())


def mode(run: Run, asked: Asked, difference: Difference) -> Any:
    """The parallel mode by the names of files."""
    file = next(folder(run).glob("ascend_cluster_analyse_*.csv"))
    return file.name.removeprefix("ascend_cluster_analyse_").split("_")[0].replace("-", "_")
