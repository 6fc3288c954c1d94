"""A small recording with known figures, as rows in memory and raw files on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.run import Run, open_run

BASE = 1_795_228_828_000_000_000
US, MS = 1_000, 1_000_000


def steps(count: int = 3) -> pl.DataFrame:
    """Steps of 10 ms: forward from 2 ms on, backward until 9 ms; the first has number 4."""
    starts = [BASE + 10 * MS * n for n in range(count)]
    return pl.DataFrame(
        {
            "step": [4 + n for n in range(count)],
            "start_ns": starts,
            "end_ns": [start + 10 * MS for start in starts],
            "window_start_ns": starts,
            "window_end_ns": [start + 10 * MS for start in starts],
            "window": ["host"] * count,
            "forward_start_ns": [start + 2 * MS for start in starts],
            "backward_end_ns": [start + 9 * MS for start in starts],
        },
        schema_overrides={"step": pl.Int32},
    )


def torch_slices(count: int = 3) -> pl.DataFrame:
    """In each step a module, `aten::linear` with `aten::addmm` in it, and backward `aten::mm` below the engine."""
    rows = []
    for n in range(count):
        start, slice_ = BASE + 10 * MS * n, 10 * n
        for number, (offset, length, own, category, name, parent, depth) in enumerate(
            (
                (2000, 3000, 500, "python", "nn.Module: Net_0", None, 0),
                (2100, 2500, 500, "operator", "aten::linear", 0, 1),
                (2200, 2000, 2000, "operator", "aten::addmm", 1, 2),
                (6000, 2000, 500, "operator", "autograd::engine::evaluate_function: AddmmBackward0", None, 0),
                (6200, 1500, 1500, "operator", "aten::mm", 3, 1),
            )
        ):
            rows.append(
                {
                    "slice": slice_ + number,
                    "start_ns": start + offset * US,
                    "duration_ns": length * US,
                    "self_ns": own * US,
                    "category": category,
                    "name": name,
                    "process": "77",
                    "thread": "77",
                    "parent": None if parent is None else slice_ + parent,
                    "depth": depth,
                    "step": 4 + n,
                }
            )
    return pl.DataFrame(rows, schema_overrides={"parent": pl.Int64, "step": pl.Int32, "depth": pl.Int32})


SHAPES = {
    "aten::linear": "[[8, 16], [32, 16], [32]]",
    "aten::addmm": "[[32], [8, 16], [16, 32], [], []]",
    "aten::mm": "[[32, 8], [8, 16]]",
}
TYPES = {"aten::addmm": '["float", "float", "float", "Scalar", "Scalar"]'}


def operators(slices: pl.DataFrame) -> pl.DataFrame:
    """The operators among slices."""
    columns = ("slice", "start_ns", "duration_ns", "self_ns", "name", "thread", "step")
    return (
        slices.filter(pl.col("category") == "operator")
        .select(columns)
        .with_columns(
            input_shapes=pl.col("name").replace_strict(SHAPES, default=None),
            input_types=pl.col("name").replace_strict(TYPES, default=None, return_dtype=pl.String),
            external_id=pl.col("slice"),
        )
    )


def collectives(count: int = 3) -> pl.DataFrame:
    """One all-reduce of 1 ms at 7 ms in each step."""
    return pl.DataFrame(
        {
            "collective": list(range(count)),
            "group": ["0"] * count,
            "sequence": list(range(count)),
            "operation": ["all_reduce"] * count,
            "name": ["gloo:all_reduce"] * count,
            "start_ns": [BASE + 10 * MS * n + 7 * MS for n in range(count)],
            "duration_ns": [MS] * count,
            "on_device": [False] * count,
            "step": [4 + n for n in range(count)],
        },
        schema_overrides={"step": pl.Int32},
    )


def torch_frames(count: int = 3) -> dict[str, pl.DataFrame]:
    """A CPU recording of PyTorch."""
    slices = torch_slices(count)
    return {
        "steps": steps(count),
        "slices": slices,
        "operators": operators(slices),
        "collectives": collectives(count),
        "ranks": pl.DataFrame({"framework": ["pytorch"], "device_kind": ["cpu"], "process": [77], "world_size": [2]}),
    }


ABOUT: dict[str, Any] = {
    "format": "stepscope-recording",
    "version": 1,
    "state": "stopped",
    "rank": 1,
    "world_size": 2,
    "pid": 77,
    "framework": "pytorch",
    "framework_version": "2.13.0",
    "device_kind": "cpu",
    "mode": "eager",
    "parallel": {},
    "options": {"profile_framework": "all"},
    "environment": {},
    "spans": [[BASE, BASE + 30 * MS]],
    "started_ns": BASE,
    "updated_ns": BASE + 30 * MS,
}

MARKS = "kind,name,start_ns,end_ns,step,thread,detail\n"
HOST = (
    "time_ns,scope,pid,name,user_ns,system_ns,idle_ns,io_wait_ns,rss_bytes,uss_bytes,available_bytes,total_bytes,"
    "read_bytes,written_bytes,threads,context_switches,runnable,processors\n"
)
BATCHES = "time_ns,pipeline,batch,step,wait_ns,queue_size,queue_capacity,workers\n"


def raw_files(count: int = 3) -> dict[str, str]:
    """Marks of all phases, five host samples 5 ms apart and a batch each step; a line of marks was cut off."""
    marks, host, batches = MARKS, HOST, BATCHES
    for n in range(count):
        at, step = BASE + 10 * MS * n, 4 + n
        for kind, name, start, end in (
            ("data", "_SingleProcessDataLoaderIter", 0, 2),
            ("forward", "Net", 2, 5),
            ("backward", "", 5, 9),
            ("optimizer", "SGD", 9, 10),
            ("step", str(step), 0, 10),
        ):
            marks += f"{kind},{name},{at + start * MS},{at + end * MS},{step},77,\n"
        batches += f"{at + 2 * MS},loader,{n},{step},{2 * MS},{n % 2},4,2\n"
    for n in range(5):
        at, wall = BASE + 5 * MS * n, 5 * MS * n
        host += f"{at},host,,,{wall},{wall // 2},{wall // 2},0,,,6000000000,8000000000,,,,{100 * n},3,2\n"
        host += f"{at},process,77,python,{wall // 2},{wall // 10},,,{(100 + n) << 20},,,,0,0,4,{n},,\n"
        host += f"{at},worker,80,worker0,{wall // 5},0,,,{10 << 20},,,,0,0,1,{n},,\n"
    return {"marks.csv": f"{marks}forward,Net,{BASE}", "host.csv": host, "batches.csv": batches}


def make_recording(
    root: Path, *, stamp: str = "20261121100000000", about: Mapping[str, Any] | None = None, count: int = 3
) -> Path:
    """Write the raw files of rank 1 below `root/profiler/recording`."""
    recording = root / "profiler" / "recording" / f"rank-1_here-77_{stamp}"
    recording.mkdir(parents=True)
    (recording / "recording.json").write_text(json.dumps({**ABOUT, **(about or {})}))
    for name, text in raw_files(count).items():
        (recording / name).write_text(text)
    return recording


def sampled(recording: Path) -> dict[str, pl.DataFrame]:
    """The tables of samples and batches, as they are read from the raw files."""
    rank = open_run(recording, use_store=False).ranks[0]
    names = ("host_usage", "input_pipeline", "counters")
    return {name: rank.table(name).collect().drop("rank") for name in names if rank.has(name)}


def make_export(
    root: Path,
    frames: Mapping[str, pl.DataFrame] | None = None,
    *,
    raw: Mapping[str, str | None] | None = None,
    **about: Any,
) -> RankExport:
    """An export of rank 1, of which `recording.json` and `ranks` state the same.

    Args:
        root: Where to write its recording.
        frames: Its tables, without those of samples.
        raw: Raw files that differ from those of `raw_files`, by name; None for a missing one.
        about: Entries of `recording.json` that differ.
    """
    recording = make_recording(root, about=about)
    for name, text in (raw or {}).items():
        (recording / name).unlink(missing_ok=True)
        if text is not None:
            (recording / name).write_text(text)
    frames = {**(torch_frames() if frames is None else frames), **sampled(recording)}
    stated = {name: about[name] for name in ("framework", "world_size", "device_kind", "mode") if name in about}
    if "environment" in about:
        stated["environment"] = json.dumps(about["environment"])
    frames["ranks"] = frames["ranks"].with_columns(pl.lit(value).alias(name) for name, value in stated.items())
    return RankExport(Run.from_frames({1: frames}), 1, recording, {**ABOUT, **about}, root / "profiler")


def exported(export: RankExport, *writers: Callable[[RankExport], None]) -> RankExport:
    """The export after some exporters have run."""
    for write in writers:
        write(export)
    return export


def read(export: RankExport, name: str) -> str:
    """What was written."""
    assert name in export.written, export.left_out
    return (export.directory / name).read_text()


def lines(export: RankExport, name: str) -> list[str]:
    """Likewise, line by line."""
    return read(export, name).splitlines()
