"""Directories of MindSpore's Profiler that both web servers show, made of a small job of four ranks."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

MADE_RANKS = 4
"""Ranks of the small job."""

_RANK = re.compile(r"(?<=_)(\d)(?=(?:_detail|_detail_time|_type)?\.(?:csv|json|txt)$)")
_CLUSTER = re.compile(r"(ascend_cluster_analyse_\w+(?:-\w+)*_\d+_)\d+(_\d\.csv)$")
_LINK = re.compile(r'(?<=")(\d)-(\d)(?=")')
_PERIOD_US = 200_000.0
"""How far apart copies of a timeline begin; the small job takes 158 ms."""

_DETAIL, _TYPES, _FRAMEWORK, _FLOPS, _DISPLAY, _KERNELS, _STEPS = (
    "aicore_intermediate_0_detail.csv",
    "aicore_intermediate_0_type.csv",
    "framework_raw_0.csv",
    "flops_0.txt",
    "ascend_timeline_display_0.json",
    "output_timeline_data_0.txt",
    "step_trace_raw_0_detail_time.csv",
)
_STEP_BARS = 100000
"""The thread of a timeline with its steps, which are named by their numbers."""


def small_job(generator: Path, directory: Path) -> Path:
    """The job of four ranks, complete; returns its directory, with `profiler/` in it."""
    made = directory / "made"
    subprocess.run([sys.executable, generator, made], check=True, stdout=subprocess.DEVNULL)
    return made / "dp4"


def cluster(small: Path, directory: Path, ranks: int) -> Path:
    """A job of so many ranks, each like one of the small job; links are those among four neighbours."""
    profiler = directory / "profiler"
    profiler.mkdir(parents=True)
    for file in sorted((small / "profiler").iterdir()):
        found = None if file.is_dir() else _RANK.search(file.name)
        if found is None:
            continue
        text = file.read_text()
        for rank in range(int(found[0]), ranks, MADE_RANKS):
            (profiler / _of_rank(file.name, rank, ranks)).write_text(_text_of_rank(file.name, text, rank, ranks))
    return directory


def _of_rank(name: str, rank: int, ranks: int) -> str:
    return _RANK.sub(str(rank), _CLUSTER.sub(rf"\g<1>{ranks}\g<2>", name))


def _text_of_rank(name: str, text: str, rank: int, ranks: int) -> str:
    if name.startswith("profiler_info"):
        return json.dumps({**json.loads(text), "rank_id": str(rank), "rank_size": ranks})
    if name.startswith("hccl_raw"):
        first = rank // MADE_RANKS * MADE_RANKS
        return _LINK.sub(lambda link: f"{first + int(link[1])}-{first + int(link[2])}", text)
    return text


def many_operators(small: Path, directory: Path, kernels: int) -> Path:
    """The small job with so many kernels on rank 0, with their FLOPs and shapes."""
    profiler = _copied(small, directory)
    _multiplied(profiler / _DETAIL, kernels, named=(0,))
    _multiplied(profiler / _FRAMEWORK, kernels, named=(3, 4, 5))
    _multiplied(profiler / _FLOPS, kernels, named=(0,))
    with (profiler / _FRAMEWORK).open(newline="") as stream:
        kinds = {row["full_kernel_name"]: row["kernel_type"] for row in csv.DictReader(stream)}
    totals: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    with (profiler / _DETAIL).open(newline="") as stream:
        for row in csv.DictReader(stream):
            count = int(row["execution_frequency"])
            total = totals[kinds[row["full_kernel_name"]]]
            total[0] += float(row["task_duration"]) * count
            total[1] += count
    every = sum(total for total, _ in totals.values())
    lines = [f"{kind},{total:.6f},{count:.0f},{total / every:.8f}" for kind, (total, count) in sorted(totals.items())]
    (profiler / _TYPES).write_text("\n".join(["kernel_type,total_time,execution_frequency,percent", *lines]) + "\n")
    return directory


def _multiplied(file: Path, rows: int, named: tuple[int, ...]) -> None:
    """Repeat the rows of a file until there are so many; the operators in some columns get numbers of their own."""
    with file.open(newline="") as stream:
        head, *known = csv.reader(stream)
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(head)
        for number in range(rows):
            row = [*known[number % len(known)]]
            for column in named:
                row[column] = re.sub(r"-op\d+$", f"-op{number}", row[column])
            writer.writerow(row)


def long_timeline(small: Path, directory: Path, events: int) -> Path:
    """The small job with so many events in the timeline of rank 0."""
    profiler = _copied(small, directory)
    for other in (_KERNELS, _STEPS):  # where these are, stepscope takes kernels and steps from them
        (profiler / other).unlink()
    file = profiler / _DISPLAY
    known = json.loads(file.read_bytes())
    timed, others = ([one for one in known if ("ts" in one) == has_time] for has_time in (True, False))
    lines = [json.dumps(one) for one in others]
    steps = sum(one["tid"] == _STEP_BARS for one in timed)
    for number in range(max(events - len(others), 0)):
        copy, one = number // len(timed), timed[number % len(timed)]
        name = str(int(one["name"]) + copy * steps) if one["tid"] == _STEP_BARS else one["name"]
        lines.append(json.dumps({**one, "name": name, "ts": one["ts"] + copy * _PERIOD_US}))
    file.write_text("[" + ",\n".join(lines) + "]")
    return directory


def _copied(small: Path, directory: Path) -> Path:
    """A copy of the small job without raw data; returns its `profiler/`."""
    profiler = directory / "profiler"
    profiler.mkdir(parents=True)
    for file in (small / "profiler").iterdir():
        if file.is_file():
            (profiler / file.name).write_bytes(file.read_bytes())
    return profiler


def many_runs(small: Path, directory: Path, runs: int) -> list[Path]:
    """So many copies of the small job, each in a directory of its own."""
    made = []
    for number in range(runs):
        _copied(small, directory / f"run{number:02}")
        made.append(directory / f"run{number:02}")
    return made
