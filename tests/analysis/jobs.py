"""Small made-up jobs whose slow ranks are known."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.run import Run
from stepscope.tables import COLLECTIVES, KERNELS, RANKS, SLICES, STEPS

MS = 1_000_000
COMPUTE, TRANSFER, GAP = 20 * MS, 2 * MS, 1 * MS
LAUNCH, LATENCY = 1000, 2000


def job(
    ranks: int = 8,
    steps: int = 5,
    *,
    compute: Mapping[int, float] | None = None,
    gap_ns: Mapping[int, int] | None = None,
    marked: str | None = None,
    data_ns: Mapping[int, int] | None = None,
    once_ns: Mapping[tuple[str, int, int], int] | None = None,
    clock_ns: Mapping[int, int] | None = None,
    calls: int = 4,
    jitter: float = 0.01,
    hosts: bool = False,
) -> Run:
    """A data-parallel job: each step waits for data, then `calls` times computes and reduces with all others; its hosts
    launch all of that at once and wait for the end.

    Args:
        ranks: How many.
        steps: How many.
        compute: Rank to the factor by which it computes longer.
        gap_ns: Rank to the time by which its host launches each kernel too late.
        marked: Name of what is marked in these times, e.g. `compile`; None if nothing is.
        data_ns: Rank to its extra wait for data in each step.
        once_ns: What takes longer once (`compute` or `data`), in which step, on which rank, and by how much.
        clock_ns: Rank to what its clock shows too much.
        calls: Collectives in a step.
        jitter: Relative spread of compute times, the same pattern on each run.
        hosts: Each rank on a host of its own, so that clocks may differ.
    """
    now = dict.fromkeys(range(ranks), 1000000 * MS)
    rows: dict[int, dict[str, list[dict[str, object]]]] = {
        r: {"kernels": [], "collectives": [], "steps": [], "slices": []} for r in range(ranks)
    }
    noise, once = _noise(jitter), once_ns or {}
    for step in range(1, steps + 1):
        begun = dict(now)
        for r in range(ranks):
            wait = GAP + (data_ns or {}).get(r, 0) + once.get(("data", step, r), 0)
            rows[r]["slices"].append(_data_wait(now[r], wait, step))
            now[r] += wait
        first, host = dict(now), dict(now)
        for call in range(calls):
            arrived = {}
            for r in range(ranks):
                gap = (gap_ns or {}).get(r, 0)
                start = max(now[r], host[r] + LATENCY) + gap
                launch = start - LATENCY if gap else host[r]
                if gap:
                    rows[r]["slices"] += _waits(host[r], now[r], step)
                host[r] = launch + LAUNCH
                length = round(COMPUTE / calls * (compute or {}).get(r, 1.0) * next(noise))
                length += once.get(("compute", step, r), 0) if call == 0 else 0
                if marked is not None and gap:
                    rows[r]["slices"].append(_mark(launch - gap, gap, step, marked))
                rows[r]["kernels"].append(_kernel(start, length, step, launch))
                if call == 0:
                    first[r] = start
                arrived[r] = start + length
            end = max(arrived.values()) + TRANSFER
            for r in range(ranks):
                rows[r]["collectives"].append(
                    _collective(arrived[r], end - arrived[r], step, len(rows[r]["collectives"]))
                )
                now[r] = end
        for r in range(ranks):
            rows[r]["slices"] += _waits(host[r], now[r], step)
            rows[r]["steps"].append(
                {"step": step, "start_ns": begun[r], "end_ns": now[r], "window_start_ns": first[r], "window": "device"}
            )
    return Run.from_frames(
        {r: _frames(rows[r], now[r], (clock_ns or {}).get(r, 0), f"host{r}" if hosts else "host") for r in range(ranks)}
    )


def _noise(jitter: float):
    """A repeatable sequence of factors around 1 (linear congruential, so that no run differs)."""
    state = 12345
    while True:
        state = (1103515245 * state + 12345) % 2**31
        yield 1 + jitter * (2 * state / 2**31 - 1)


def _kernel(start: int, length: int, step: int, launch: int) -> dict[str, object]:
    return {"start_ns": start, "duration_ns": length, "kind": "compute", "name": "gemm", "step": step,
            "launch_start_ns": launch, "launch_end_ns": launch + LAUNCH}  # fmt: skip


def _collective(start: int, length: int, step: int, sequence: int) -> dict[str, object]:
    return {"start_ns": start, "duration_ns": length, "group": "dp", "sequence": sequence, "operation": "all_reduce",
            "name": "all_reduce", "size_bytes": 1000, "on_device": True, "step": step}  # fmt: skip


def _waits(start: int, end: int, step: int) -> list[dict[str, object]]:
    """The host waits for its device."""
    wait = {"start_ns": start, "duration_ns": end - start, "category": "runtime", "step": step,
            "name": "cudaStreamSynchronize"}  # fmt: skip
    return [wait] if end > start else []


def _data_wait(start: int, length: int, step: int) -> dict[str, object]:
    return {"start_ns": start, "duration_ns": length, "category": "annotation", "step": step,
            "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"}  # fmt: skip


def _mark(start: int, length: int, step: int, name: str) -> dict[str, object]:
    category = "gc" if name.startswith("generation") else "annotation"
    return {"start_ns": start, "duration_ns": length, "category": category, "step": step, "name": name}


def _frames(rows: dict[str, list[dict[str, object]]], end: int, clock: int, host: str) -> dict[str, pl.DataFrame]:
    """Rows as tables, on the rank's own clock."""
    steps = rows["steps"]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        step["window_end_ns"] = following["window_start_ns"] if following else end
    frames = {
        "kernels": KERNELS.conform(pl.DataFrame(rows["kernels"]).with_row_index("kernel")),
        "collectives": COLLECTIVES.conform(pl.DataFrame(rows["collectives"]).with_row_index("collective")),
        "slices": SLICES.conform(pl.DataFrame(rows["slices"]).with_row_index("slice")),
        "steps": STEPS.conform(pl.DataFrame(steps)),
    }
    shifted = {
        name: frame.with_columns(
            pl.col(c) + clock
            for c in frame.columns
            if c.endswith("_ns") and c != "duration_ns" and c[-8:] != "_wait_ns"
        )
        for name, frame in frames.items()
    }
    shifted["ranks"] = RANKS.conform(pl.DataFrame({"host": [host], "device_kind": ["cuda"]}))
    return shifted
