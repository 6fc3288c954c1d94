"""Raw recordings in the making, by docs/recording.md: what one rank's recorder leaves on disk."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.recording_format.rows import CSV_FILES

Event = dict[str, Any]

EPOCH_NS = 1_790_000_000_000_000_000
MS = 1_000_000
HEADERS = {file.name.removesuffix(".csv"): file.header for file in CSV_FILES}


@dataclass
class Raw:
    """One recording; times are ns after `EPOCH_NS`.

    Args:
        root: The output path, of which `profiler/recording` is made.
        about: Keys of `recording.json` that differ from the usual ones.
    """

    root: Path
    rank: int = 0
    pid: int = 100
    stamp: str = "20260101000000000"
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        name = f"rank-{self.rank}_host-{self.pid}_{self.stamp}"
        self.directory = self.root / "profiler" / "recording" / name
        self.directory.mkdir(parents=True)
        self.describe()

    def describe(self, **changes: Any) -> Raw:
        """Write `recording.json`."""
        self.about |= changes
        usual: dict[str, Any] = {
            "format": "stepscope-recording",
            "version": 1,
            "state": "stopped",
            "rank": self.rank,
            "world_size": 1,
            "host": "host",
            "pid": self.pid,
            "device_kind": "cpu",
            "framework": "torch",
            "framework_version": "2.13.0",
            "groups": [],
            "clock": None,
            "epoch_shift_ns": EPOCH_NS - 1_000 * MS,
            "options": {"op_time": True},
            "spans": [[EPOCH_NS, EPOCH_NS + 1_000 * MS]],
            "problems": [],
        }
        (self.directory / "recording.json").write_text(json.dumps(usual | self.about))
        return self

    def add(self, file: str, *rows: Sequence[Any]) -> Raw:
        """Add rows to a CSV file; their times are since the epoch."""
        path = self.directory / f"{file}.csv"
        new = not path.exists()
        with path.open("a", newline="") as out:
            if new:
                out.write(HEADERS[file] + "\n")
            csv.writer(out, lineterminator="\n").writerows(rows)
        return self

    def mark(
        self,
        kind: str,
        name: str,
        start_ns: int,
        end_ns: int,
        step: int | None = None,
        detail: dict[str, Any] | None = None,
        thread: int = 1,
    ) -> Raw:
        """Add a mark."""
        text = "" if detail is None else json.dumps(detail)
        return self.add("marks", [kind, name, EPOCH_NS + start_ns, EPOCH_NS + end_ns, step, thread, text])

    def steps(self, *bounds: tuple[int, int, int]) -> Raw:
        """Add steps: number, start, end."""
        for number, start_ns, end_ns in bounds:
            self.mark("step", str(number), start_ns, end_ns, number)
        return self

    def window(self, number: int, start_ns: int, end_ns: int, kind: str, files: dict[str, bytes], **row: Any) -> Raw:
        """Add a window with its files."""
        directory = self.directory / "windows" / f"{number:06d}"
        directory.mkdir(parents=True)
        for name, content in files.items():
            (directory / name).write_bytes(content)
        state = row.get("state", "complete")
        span = (EPOCH_NS + start_ns, EPOCH_NS + end_ns)
        return self.add("windows", [number, *span, 1, 1, kind, state, ";".join(files)])

    def kineto(self, number: int, start_ns: int, end_ns: int, events: Sequence[Event], base_ns: int = 0) -> Raw:
        """Add a window of torch.profiler; the times of `events` (us) are relative to `EPOCH_NS`.

        Args:
            base_ns: Time base of this trace, after `EPOCH_NS`; its times are written relative to it.
        """
        moved = [event | {"ts": event["ts"] - base_ns / 1000} if "ts" in event else event for event in events]
        content = {"schemaVersion": 1, "traceEvents": moved, "baseTimeNanoseconds": EPOCH_NS + base_ns}
        packed = gzip.compress(json.dumps(content).encode())
        return self.window(number, start_ns, end_ns, "kineto", {"trace.json.gz": packed})

    def mindspore(self, number: int, start_ns: int, end_ns: int, runs: Sequence[MindSporeRun], memory: str = "") -> Raw:
        """Add a window of MindSpore's CPU profiler."""
        lines: dict[str, list[str]] = {}
        for run in runs:
            stamp = f"{EPOCH_NS + run.start_ns},{run.duration_ns / 1e6:g},0"
            lines.setdefault(run.name, []).append(stamp)
        times = "".join(f"{name};HostCpuOps;{' '.join(stamps)} \n" for name, stamps in lines.items())
        launches = "".join(run.launch for run in sorted(runs, key=lambda run: run.start_ns))
        files = {
            f"cpu_op_execute_timestamp_{self.rank}.txt": times.encode(),
            f"cpu_framework_{self.rank}.txt": launches.encode(),
        }
        if memory:
            files[f"cpu_ms_memory_record_{self.rank}.txt"] = memory.encode()
        return self.window(number, start_ns, end_ns, "mindspore_cpu", files)


@dataclass(frozen=True)
class MindSporeRun:
    """An operator that ran."""

    name: str
    start_ns: int
    duration_ns: int
    shapes: Sequence[str] | None = ("[2, 3]",)
    """Shapes of its inputs as the profiler writes them; None for an operator whose launch has no name."""

    @property
    def launch(self) -> str:
        """Its line in `cpu_framework`."""
        if self.shapes is None:
            return ";;7;\n"
        short = self.name.rpartition("/")[2]
        inputs = "".join(f"input_{k}:{shape};" for k, shape in enumerate(self.shapes, start=1))
        return f"{short.partition('-')[0]};{short};7;{inputs}\n"


def op(name: str, start_us: float, duration_us: float, category: str = "cpu_op", thread: int = 1, **args: Any) -> Event:
    """A range of a Kineto trace."""
    place = {"pid": 100, "tid": thread}
    return {"ph": "X", "cat": category, "name": name, "ts": start_us, "dur": duration_us, "args": args, **place}


def memory_curve(*rows: tuple[int, int]) -> str:
    """The allocator's file: (time after `EPOCH_NS`, allocated bytes)."""
    header = "Timestamp(ns),Total Allocated(Byte),Total Reserved(Byte),Total Active(Byte)\n"
    return header + "".join(f"{EPOCH_NS + time},{size},1024,{size}\n" for time, size in rows)
