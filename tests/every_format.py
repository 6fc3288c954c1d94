"""A small job in each format, with times that are equal where formats have them so: for what holds for any format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pynative_cpu
import test_agree
from every_kind import texts, write_every_kind

import operation_traces
from light_records import LightJob
from recordings import EPOCH_NS, MS, MindSporeRun, Raw, memory_curve, op
from traces import write_kineto


def _traces(write: Callable[[Path, test_agree.RankTrace], object], directory: Path) -> None:
    for trace in test_agree.job():
        write(directory, trace)


def _torch(directory: Path) -> None:
    """Two ranks with two steps each: marks, operators, batches, samples of host and device."""
    for rank in range(2):
        about = {"world_size": 2, "device_kind": "cuda"}
        raw = Raw(directory, rank, pid=100 + rank, about=about).steps((1, 0, 10 * MS), (2, 10 * MS, 20 * MS))
        shapes = {"Input Dims": [[8, 4], [4, 2]], "Input type": ["float", "float"]}
        operators = [
            op(name, 1000.0 + 10_000 * step, 500.0 * (1 + rank), **shapes)
            for step in range(2)
            for name in ("aten::linear", "aten::mm")
        ]
        raw.kineto(0, 0, 20 * MS, operators)
        for step in (1, 2):
            start_ns = (step - 1) * 10 * MS
            raw.mark("forward", "", start_ns + MS, start_ns + 4 * MS, step)
            raw.mark("backward", "", start_ns + 4 * MS, start_ns + 8 * MS, step)
            at_ns = EPOCH_NS + start_ns
            raw.add("batches", *([at_ns, loader, step, step, MS, 1, 4, 2] for loader in ("train", "other")))
            raw.add("device", *([at_ns, device, "memory_used_bytes", 5 * step] for device in (1, 0)))
            worker = [step * MS, step * MS, "", "", 4096, 4096, "", "", 0, 0, 2, 3, "", 4]
            raw.add("host", *([at_ns, "worker", pid, "loader", *worker] for pid in (9, 8)))


def _mindspore(directory: Path) -> None:
    """Two operators that start at one moment, and the allocator's curve with points of one moment."""
    raw = Raw(directory, about={"framework": "mindspore"}).steps((1, 0, 10 * MS), (2, 10 * MS, 20 * MS))
    names = ("Default/net/MatMul-op1", "Gradients/net/MatMul-op2", "Default/AllReduce-op3")
    runs = [MindSporeRun(name, at, MS, ("[8, 4]", "[4, 2]")) for at in (MS, 11 * MS) for name in names]
    raw.mindspore(0, 0, 20 * MS, runs, memory_curve((MS, 5), (MS, 9), (2 * MS, 9), (12 * MS, 7)))


FORMATS: Mapping[str, Callable[[Path], object]] = {
    "kineto": lambda directory: _traces(write_kineto, directory),
    "ascend_text": lambda directory: _traces(test_agree.write_text, directory),
    "ascend_db": lambda directory: _traces(test_agree.write_database, directory),
    "classic": lambda directory: write_every_kind(directory / "profiler", texts()),
    "classic_pynative": pynative_cpu.write,
    "recording_torch": _torch,
    "recording_mindspore": _mindspore,
    "operation_trace": operation_traces.write,
    "light": LightJob(ranks=2, steps=4, checkpoint=lambda rank, step: 2 * (step == 3)).write,
}
"""Name to what writes the job into a directory."""

SHARED = (
    *("mindspore/real_minddata_pipeline_variants", "mindspore/synthetic_dynamic1", "mindspore/synthetic_hetero1"),
    *("mindspore_profiles/2.10.0-runtime_profiler_graph", "mindspore_profiles/2.10.0-profile_pynative_cpu"),
)
"""Recordings beside the repository that are small and hold what these jobs do not."""
