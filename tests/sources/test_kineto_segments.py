"""A trace that is read in chunks gives the rows of the whole trace."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from comparable import comparable
from polars.testing import assert_frame_equal
from test_kineto import Tables

from stepscope.sources import flows, spool
from stepscope.sources.kineto import segments
from stepscope.sources.spool import Spool
from stepscope.tables import TABLES

Event = dict[str, Any]
HOST_CATEGORIES = ("cpu_op", "cpu_op", "python_function", "user_annotation", "cuda_runtime", "overhead")


def messy_events(seed: int, count: int = 600) -> list[Event]:
    """Ranges that nest, overlap and outlive many others, with device work, memory, arrows and calls among them."""
    rng = random.Random(seed)
    events: list[Event] = [
        _range("user_annotation", f"ProfilerStep#{n}", 1000 * n, 1000 if n != 3 else 1200, 1) for n in range(1, 6)
    ]
    addresses = [0x1000 * n for n in range(1, 9)]
    for number in range(1, count + 1):
        start = rng.randrange(0, 6000)
        thread = rng.choice((1, 1, 1, 2, 3))
        length = rng.choice((0, 1, 3, 10, 40, 200, 1500))
        category = rng.choice(HOST_CATEGORIES)
        name = rng.choice(("aten::mm", "aten::add", "c10d::allreduce_", f"unique {number}"))
        args: Event = {"External id": number}
        if category == "cpu_op" and number % 3 == 0:
            args["Call stack"] = rng.choice(("a.py(1): f;b.py(2): g", "c.py(3): h"))
        if category == "cuda_runtime":
            name, args["correlation"] = "cudaLaunchKernel", number
            if number % 5:
                events.append(_kernel(rng, number, start + rng.randrange(1, 900)))
        if number % 40 == 0:
            name = "record_param_comms"
            category = "cpu_op"
            args |= {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 8, "dtype": "Float"}
        events.append(_range(category, name, start, length, thread, **args))
        if number % 7 == 0:
            sign = rng.choice((1, 1, -1))
            details = {"Addr": rng.choice(addresses), "Bytes": 64 * sign, "Device Type": 1, "Device Id": 0}
            events.append({"ph": "i", "name": "[memory]", "pid": 9, "tid": thread, "ts": start, "args": details})
        if number % 11 == 0:
            for phase, at in (("s", start), ("f", start + rng.randrange(2000))):
                events.append({"ph": phase, "id": number, "cat": "fwdbwd", "name": "x", "pid": 9, "tid": 1, "ts": at})
    events += [_kernel(rng, 0, 100), _range("gpu_user_annotation", "forward", 50, 3000, 7)]
    rng.shuffle(events)
    return events


def _range(category: str, name: str, start: int, length: int, thread: int, **args: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": 9, "tid": thread, "ts": start, "dur": length, "args": args}


def _kernel(rng: random.Random, correlation: int, start: int) -> Event:
    name = "ncclDevKernel_AllReduce_Sum" if correlation % 4 == 0 else "gemm"
    # not the id of a recorded call: that is looked for in this and the last stretch only
    identity = {"correlation": correlation, "External id": 40 * rng.randrange(15) + rng.randrange(1, 40)}
    return _range("kernel", name, start, rng.randrange(0, 60), 7, device=0, stream=7, **identity)


def written(directory: Path, events: list[Event]) -> Path:
    """A trace of these events."""
    path = directory / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rows", [40, 150])
def test_a_trace_in_stretches_gives_the_rows_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, rows: int
) -> None:
    path = written(tmp_path, messy_events(seed))
    whole = Tables(path)
    made = {"slices", "operators", "kernels", "collectives", "allocations", "flows", "stacks"}
    assert made <= whole.frames.keys() <= TABLES.keys()
    monkeypatch.setattr(segments, "SEGMENT_ROWS", rows)
    monkeypatch.setattr(spool, "_SAMPLED", 1)
    monkeypatch.setattr(segments, "_JOINED_ROWS", 25)
    monkeypatch.setattr(flows, "PART_ROWS", 10)
    monkeypatch.setattr(spool, "MEMORY_BYTES", 5000)
    cut = Tables(path)
    assert cut.rank == whole.rank
    expected, got = comparable(whole.frames), comparable(cut.frames)
    notes = expected.pop("issues", None), got.pop("issues", None)
    assert (notes[0] is None) == (notes[1] is None)
    assert got.keys() == expected.keys()
    for name, frame in expected.items():
        assert_frame_equal(got[name], frame)


def test_equal_times_make_one_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 3)
    monkeypatch.setattr(spool, "_SAMPLED", 1)
    path = written(tmp_path, [_range("cpu_op", f"op {n}", 5, 1, 1) for n in range(20)])
    assert Tables(path)["slices"]["depth"].to_list() == list(range(20))


def test_a_spool_gives_back_what_it_took_whatever_went_to_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MEMORY_BYTES", 100)
    monkeypatch.setattr(spool, "_PACKED_BYTES", 100)
    kept: Spool[str] = Spool(lambda: tmp_path)
    for n in range(50):
        kept.add("a" if n % 2 else "b", pl.DataFrame({"n": [n, n]}))
    assert list(tmp_path.glob("spool-*"))
    assert pl.concat(kept.frames("a"))["n"].to_list() == [n for n in range(1, 50, 2) for _ in range(2)]
    assert kept.keep_only(pl.col("n") < 10) == {"a": 40, "b": 40}
    assert pl.concat(kept.taken("b"))["n"].to_list() == [0, 0, 2, 2, 4, 4, 6, 6, 8, 8]
    assert (kept.rows("a"), kept.rows("b"), list(kept.frames("b"))) == (10, 0, [])


def test_a_spool_without_room_keeps_all_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MEMORY_BYTES", 0)

    def full() -> Path:
        raise OSError("no room")

    kept: Spool[str] = Spool(full)
    for n in range(3):
        kept.add("a", pl.DataFrame({"n": [n]}))
    assert pl.concat(kept.frames("a"))["n"].to_list() == [0, 1, 2]
