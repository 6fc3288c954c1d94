"""Host and device samples, batches, and collectives of raw recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from test_recording import read

from recordings import EPOCH_NS, MS, Raw, op

S = 10**9


def host(second: int, user_s: float, idle_s: float) -> list[Any]:
    """A sample of a host with four processors, of which this much was used since it booted."""
    used = [int(user_s * S), 0, int(idle_s * S), 0]
    return [EPOCH_NS + second * S, "host", "", "", *used, "", "", 500, 1000, "", "", "", 10 * second, 2, 4]


def process(second: int, user_s: float, pid: int = 100, scope: str = "process", name: str = "") -> list[Any]:
    """A sample of a process."""
    used = [int(user_s * S), 0, "", 0]
    return [EPOCH_NS + second * S, scope, pid, name, *used, 77, 55, "", "", second * 4096, 0, 9, second, "", ""]


def test_use_of_the_host_is_the_difference_of_its_counters(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 3 * S))
    for second in range(3):
        raw.add("host", host(second, 2 * second, 2 * second), process(second, second))
        raw.add("host", process(second, 0.5 * second, 300 + second // 2, "worker", "loader 0"))

    tables, _ = read(raw)

    usage = tables["host_usage"].sort("scope", "time_ns", maintain_order=True)
    shares = usage.select("scope", "name", "process", "user_ratio", "idle_ratio", "context_switches", "read_bytes")
    assert shares.rows() == [
        ("host", None, None, None, None, None, None),
        ("host", None, None, 0.5, 0.5, 10, None),
        ("host", None, None, 0.5, 0.5, 10, None),
        ("process", None, 100, None, None, None, None),
        ("process", None, 100, 0.25, None, 1, 4096),
        ("process", None, 100, 0.25, None, 1, 4096),
        ("worker", "loader 0", 300, None, None, None, None),
        ("worker", "loader 0", 300, 0.125, None, 1, 4096),
        ("worker", "loader 0", 301, None, None, None, None),  # another process
    ]
    assert usage["processors"].unique().to_list() == [4]
    assert usage.select("rss_bytes", "available_bytes", "runnable", "threads").row(0) == (None, 500, 2, None)
    assert usage.filter(scope="process").select("rss_bytes", "uss_bytes", "threads").row(0) == (77, 55, 9)


def test_counters_of_the_device(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, 10)).add("device", [EPOCH_NS, 1, "power_w", 250.5], [EPOCH_NS, 1, "x", ""])

    tables, _ = read(raw)

    assert tables["counters"].select("name", "device", "value").rows() == [("power_w", 1, 250.5)]


def test_batches_know_their_step(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((5, 0, 10), (6, 10, 20))
    raw.add("batches", [EPOCH_NS + 2, "ImageFolder", 0, 5, 1500, 3, 8, 4])
    raw.add("batches", [EPOCH_NS + 25, "ImageFolder", 1, 7, 9, "", "", 0])

    tables, _ = read(raw)

    columns = ("operator", "batch", "step", "duration_ns", "queue_size", "queue_capacity", "workers")
    assert tables["input_pipeline"].select(*columns).rows() == [
        ("ImageFolder", 0, 5, 1500, 3, 8, 4),
        ("ImageFolder", 1, None, 9, None, None, 0),
    ]


def collective(
    raw: Raw, start_ns: int, end_ns: int, group: str = "0", is_async: bool = False, name: str = "all_reduce"
) -> None:
    detail = {"group": group, "size_bytes": 4096, "element_type": "float32", "group_size": 2, "async": is_async}
    raw.mark("collective", name, start_ns, end_ns, 1, detail)


def test_collectives_without_windows_come_from_the_marks(tmp_path: Path) -> None:
    groups = [{"group": "0", "name": "default_pg", "members": [0, 1]}, {"group": "1", "name": None, "members": [0, 1]}]
    raw = Raw(tmp_path, about={"groups": groups}).steps((1, 0, MS))
    collective(raw, 10, 30)
    collective(raw, 40, 50, group="1")
    collective(raw, 60, 80)

    tables, _ = read(raw)

    columns = ("operation", "group", "sequence", "size_bytes", "group_size", "on_device", "step")
    assert tables["collectives"].select(columns).rows() == [
        ("all_reduce", "0", 0, 4096, 2, False, 1),
        ("all_reduce", "1", 0, 4096, 2, False, 1),
        ("all_reduce", "0", 1, 4096, 2, False, 1),
    ]
    assert tables["groups"].select("group", "name").rows() == [("0", "default_pg"), ("1", None)]


def test_a_call_that_marks_and_windows_show_counts_once(tmp_path: Path) -> None:
    """In the window: one marked and awaited, one marked only, one of the reducer. Behind it: a marked one."""
    groups = [{"group": "0", "name": None, "members": [0, 1]}, {"group": "1", "name": None, "members": [0]}]
    raw = Raw(tmp_path, about={"groups": groups}).steps((1, 0, 2 * MS))
    calls = [op("gloo:all_reduce", at, 20, "user_annotation", 2) for at in (110, 215, 300)]
    raw.kineto(0, 0, MS, [op("aten::mm", 1, 5), *calls])
    collective(raw, 100_000, 140_000)
    collective(raw, 200_000, 201_000, group="1", is_async=True)
    collective(raw, MS + 10, MS + 30)

    tables, _ = read(raw)

    found = tables["collectives"].select((pl.col("start_ns") - EPOCH_NS) // 1000, "group", "sequence", "size_bytes")
    assert found.rows() == [(110, "0", 0, 4096), (215, "1", 0, 4096), (300, None, 0, None), (1000, "0", 1, 4096)]


def test_a_window_that_shows_no_call_at_all_does_not_hide_the_marks(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps((1, 0, MS)).kineto(0, 0, MS, [op("aten::mm", 1, 5)])
    collective(raw, 100, 140)

    tables, _ = read(raw)

    assert tables["collectives"].height == 1


def test_device_work_hides_the_marks_of_its_launches(tmp_path: Path) -> None:
    nccl = {"Collective name": "allreduce", "Process Group Name": "0", "In msg nelems": 8, "dtype": "Float"}
    launch = op("cudaLaunchKernel", 11, 1, "cuda_runtime", correlation=5)
    kernel = op("ncclDevKernel", 13, 4, "kernel", 7, device=0, stream=7, correlation=5, **nccl)
    raw = Raw(tmp_path).steps((1, 0, MS)).kineto(0, 0, MS, [launch, kernel])
    collective(raw, 10_000, 14_000)

    tables, _ = read(raw)

    assert tables["collectives"].select("on_device", "group").rows() == [(True, "0")]
