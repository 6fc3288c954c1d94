"""Measure how long questions about the operators of one rank take, from the opened store.

    python benchmarks/operator_queries.py [--operators 20000] [--rounds 5]

Two inputs are made: a classic MindSpore profile that lists so many operators, and a trace of the PyTorch profiler with
so many kernels. Each query is asked of a run that was just opened, so nothing is remembered. Beside the time stands its
ratio to a bound measured in the same rounds: reading the rows that it is about from the store, all columns.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from stepscope.pages.listing import Listing, listed
from stepscope.run import Run, open_run

TYPES, LAYERS = 60, 200
LIMIT_MS = 100.0
"""What a page of operators may take."""

QUERIES: dict[str, tuple[str, Listing]] = {
    "types, first page": ("operator_types", Listing(top=20)),
    "types, searched": ("operator_types", Listing(search="op1", top=20)),
    "operators, first page": ("operator_instances", Listing(top=20)),
    "operators, last page": ("operator_instances", Listing(top=20, page=-1)),
    "operators, searched": ("operator_instances", Listing(search="LAYER17", top=20)),
    "operators, sorted": ("operator_instances", Listing(sort="-mean,name", top=20)),
    "operators, filtered": ("operator_instances", Listing(where="total_us > 50 AND type LIKE '%op1%'", top=20)),
    "operators, all of it": (
        "operator_instances",
        Listing(search="layer1", where="share > 0 AND count >= 1", sort="-total", top=20, page=2),
    ),
}


def classic_profile(directory: Path, count: int) -> None:
    """Write a classic profile of an Ascend device with so many operators."""
    draw = random.Random(1)
    names = [f"Default/network-Net/layer{n % LAYERS}/Op{n % TYPES}-op{n}" for n in range(count)]
    detail = "".join(f"{name},{draw.uniform(0.001, 0.5):.6f},8,AI_CORE\n" for name in names)
    head = "full_kernel_name,task_duration,execution_frequency,task_type\n"
    (directory / "aicore_intermediate_0_detail.csv").write_text(head + detail)
    info = '"{""Input_0"": {""format"": ""NC1HWC0"", ""data_type"": ""FLOAT16"", ""shape"": ""32,4,56,56,16""}}"'
    framework = "".join(
        f"{n},{n % 8},1,{name},{name},{name.rsplit('/', 1)[-1]},Op{n % TYPES},Default,{info},1,AI_CORE\n"
        for n, name in enumerate(names)
    )
    head = "task_id,stream_id,block_dim,full_kernel_name,op_name,kernel_name,kernel_type,subgraph,op_info,"
    head += "model_id,task_type\n"
    (directory / "framework_raw_0.csv").write_text(head + framework)


def kernel_trace(directory: Path, count: int) -> None:
    """Write a trace of the PyTorch profiler with so many kernels, each launched by an operator."""
    draw = random.Random(2)
    events: list[dict[str, object]] = []
    for n in range(count):
        name, start = f"op{n % TYPES}", 10.0 * n
        shape = [[n % LAYERS + 1, 64]]
        common = {"ph": "X", "pid": 1, "tid": 1}
        op_args = {"External id": n, "Input Dims": shape}
        events.append({**common, "cat": "cpu_op", "name": f"aten::{name}", "ts": start, "dur": 8.0, "args": op_args})
        args = {"device": 0, "stream": 7, "correlation": n, "External id": n, "grid": [n % LAYERS, 1, 1]}
        kernel = f"void {name}<float, layer{n % LAYERS}>(float*)"
        work = {"cat": "kernel", "name": kernel, "ts": start + 5, "dur": draw.uniform(1, 9), "args": args}
        events.append({**common, "pid": 0, "tid": 7, **work})
    (directory / "trace.pt.trace.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def measure(path: Path, table: str, rounds: int) -> None:
    """Ask every query so many times in turn and print medians."""
    times: dict[str, list[float]] = {name: [] for name in QUERIES}
    bounds: list[float] = []
    for _ in range(rounds):
        bounds.append(timed(lambda run: run.table(table).collect(), path))
        for name, (question, listing) in QUERIES.items():
            times[name].append(timed(lambda run, q=question, m=listing: ask(run, q, m), path))  # type: ignore[misc]
    bound = statistics.median(bounds)
    print(f"{path.name}: {open_run([path]).table(table).collect().height} rows of `{table}`, median of {rounds}")
    print(f"  {'reading the rows':24}{bound:8.1f} ms")
    for name, values in times.items():
        ms = statistics.median(values)
        told = "" if ms < LIMIT_MS else f"  above {LIMIT_MS:.0f} ms"
        print(f"  {name:24}{ms:8.1f} ms{ms / bound:8.1f} x reading{told}")


def timed(query: Callable[[Run], object], path: Path) -> float:
    """Milliseconds of a query to a run that was just opened."""
    run = open_run([path])
    begun = time.perf_counter()
    query(run)
    return (time.perf_counter() - begun) * 1000


def ask(run: Run, question: str, listing: Listing) -> None:
    """One page; page -1 is the last one."""
    answer = run.analyse(question)
    last = -(-answer.height // (listing.top or 1))
    page = last if listing.page == -1 else listing.page
    listed(answer, Listing(listing.search, listing.where, listing.sort, listing.top, page))


def main(words: Sequence[str] | None = None) -> None:
    """Make the inputs, read them into a store of their own, ask."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--operators", type=int, default=20_000, help="operators, and kernels (default 20000)")
    parser.add_argument("--rounds", type=int, default=5, help="times that each query is asked (default 5)")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STEPSCOPE_CACHE"] = str(Path(folder) / "cache")
        classic, kineto = Path(folder) / "profiler", Path(folder) / "kernels"
        for directory, write, table in (
            (classic, classic_profile, "operator_totals"),
            (kineto, kernel_trace, "kernels"),
        ):
            directory.mkdir()
            write(directory, chosen.operators)
            open_run([directory])
            measure(directory, table, chosen.rounds)


if __name__ == "__main__":
    main()
