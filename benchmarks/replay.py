"""Measure what a replay of a job costs: preparing it once, and each counterfactual.

    python benchmarks/replay.py [--nodes 100000,1000000,4000000] [--ranks 64] [--rounds 5] [--shuffled]

Made-up jobs: each rank launches kernels on a stream from its host, and all ranks meet in a collective after every
hundred kernels. Figures are processor time for each node and edge, which must not grow with the job; its ratio to the
bound, sorting as many shuffled numbers by Polars; and the bytes for each node that a prepared job keeps and that
preparing it needs at most, without the nodes and edges that it is given. The plain Python that replaces the compiled
code is measured for the smallest job. Polars has one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

EVERY = 100
"""Kernels of a rank between two collectives."""
KERNEL_NS, LAUNCH_NS, CALL_NS = 30_000, 10_000, 200_000
BEGIN_NS = 20_000
"""When the streams begin."""

SETTLING_S = 2.0
"""Until memory that making the job took is given back: it would hide what preparing the replay takes."""


def main(words: Sequence[str] | None = None) -> None:
    """Measure each job in a fresh process."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", default="100000,1000000,4000000", help="sizes of the jobs")
    parser.add_argument("--ranks", type=int, default=64, help="ranks of a job (default 64)")
    parser.add_argument("--rounds", type=int, default=5, help="times that each replay is repeated (default 5)")
    parser.add_argument("--shuffled", action="store_true", help="nodes and edges in random order")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(words)
    if chosen.one:
        print(json.dumps(measured(chosen.one, chosen.ranks, chosen.rounds, chosen.shuffled)))
        return
    print(f"{'':10}{'nodes':>9}{'edges':>9}  {'':14}{'ns a node and edge':>18}{'x sorting':>11}")
    sizes = sorted(map(int, chosen.nodes.split(",")))
    for native, count in ("0", sizes[0]), *(("1", size) for size in sizes):
        command = [sys.executable, __file__, "--one", str(count), *(["--shuffled"] if chosen.shuffled else [])]
        command += ["--ranks", str(chosen.ranks), "--rounds", str(chosen.rounds)]
        environment = os.environ | {"POLARS_MAX_THREADS": "1", "STEPSCOPE_NATIVE": native}
        made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
        print("\n".join(lines("compiled" if native == "1" else "Python", json.loads(made.stdout))))


def lines(code: str, found: dict[str, dict[str, float]]) -> list[str]:
    """The figures of one job as text."""
    counts = found["counts"]
    bound, size = found["cpu_s"]["sorting"], counts["nodes"] + counts["edges"]
    head = f"{code:10}{counts['nodes']:9.0f}{counts['edges']:9.0f}  "
    rows = [f"{head}{what:14}{cpu_s / size * 1e9:18.1f}{cpu_s / bound:11.2f}" for what, cpu_s in found["cpu_s"].items()]
    kept, most = (found["bytes"][name] / counts["nodes"] for name in ("kept", "most"))
    return [*rows, f"{head}memory: {kept:.0f} bytes a node kept, {most:.0f} at most"]


def measured(count: int, ranks: int, rounds: int, shuffled: bool) -> dict[str, dict[str, float]]:
    """Processor time of each part, and memory, of one job."""
    import polars as pl  # noqa: PLC0415 - not in the process that only starts the others

    from stepscope.analysis.methods.simulation import Simulation  # noqa: PLC0415
    from stepscope.sources.native import library  # noqa: PLC0415

    nodes, edges = job(count, ranks)
    if shuffled:
        nodes, edges = renamed(nodes, edges)
    numbers = pl.int_range(nodes.height + edges.height, eager=True).shuffle(seed=1)
    time.sleep(SETTLING_S)
    library.trim()
    before, begun = resident("VmRSS"), time.process_time()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    simulation = Simulation(nodes, edges)
    cpu_s = {"preparing": time.process_time() - begun}
    memory: dict[str, float] = {"kept": resident("VmRSS") - before, "most": resident("VmHWM") - before}
    steps = simulation.grouped(nodes["start_ns"] // (10 * EVERY * KERNEL_NS))
    if not simulation.run().equals(nodes):
        raise SystemExit("the replay is not the trace")
    asked: dict[str, Callable[[], object]] = {
        "last ends": lambda: simulation.last_ends(steps),
        "all times": simulation.run,
        "slack": simulation.slack,
        "critical path": simulation.critical_path,
        "sorting": numbers.sort,
    }
    for name, ask in asked.items():
        cpu_s[name] = statistics.median(timed(ask) for _ in range(rounds))
    counts: dict[str, float] = {"nodes": nodes.height, "edges": edges.height}
    return {"counts": counts, "cpu_s": cpu_s, "bytes": memory}


def timed(ask: Callable[[], object]) -> float:
    begun = time.process_time()
    ask()
    return time.process_time() - begun


def resident(name: str) -> int:
    """Memory of this process in bytes: `VmRSS` now, `VmHWM` at most."""
    rows = (row.split() for row in Path("/proc/self/status").read_text().splitlines())
    return next(int(row[1]) for row in rows if row[0] == f"{name}:") * 1024


def job(count: int, ranks: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A job of about so many nodes: those of each rank, then the meeting points of the collectives.

    A rank has the launches of its host, then what its stream does: kernels, and two parts of each collective, of which
    the first waits for nothing else and the second for the meeting point, which waits for the first part of all ranks.
    """
    import polars as pl  # noqa: PLC0415 - not in the process that only starts the others

    calls = max(count // (ranks * 2 * (EVERY + 1)), 1)
    kernels, on_stream = calls * EVERY, calls * (EVERY + 2)
    own, meetings = kernels + on_stream, ranks * (kernels + on_stream)
    launch, call = pl.int_range(kernels, eager=True), pl.int_range(calls, eager=True)
    row = pl.int_range(on_stream, eager=True)
    which, place = row // (EVERY + 2), row % (EVERY + 2)
    since = BEGIN_NS + which * (EVERY * KERNEL_NS + CALL_NS) + place.clip(upper_bound=EVERY) * KERNEL_NS
    lasts = (place < EVERY).cast(pl.Int64) * KERNEL_NS + (place > EVERY).cast(pl.Int64) * CALL_NS
    host = pl.DataFrame({"start_ns": launch * LAUNCH_NS, "end_ns": (launch + 1) * LAUNCH_NS})
    stream = pl.DataFrame({"start_ns": since, "end_ns": since + lasts})
    entry = call * (EVERY + 2) + EVERY + kernels
    inside = pl.concat(
        pl.DataFrame({"node": node, "before": before})
        for node, before in (
            (launch[1:], launch[:-1]),
            (row.filter(place < EVERY) + kernels, launch),
            (row[1:] + kernels, row[:-1] + kernels),
        )
    )
    every = [pl.DataFrame(inside + rank * own) for rank in range(ranks)]
    for rank in range(ranks):
        every.append(pl.DataFrame({"node": call + meetings, "before": entry + rank * own}))
        every.append(pl.DataFrame({"node": entry + 1 + rank * own, "before": call + meetings}))
    meets = stream.filter(place == EVERY)
    return pl.concat([*[host, stream] * ranks, meets], rechunk=True), pl.concat(every, rechunk=True)


def renamed(nodes: pl.DataFrame, edges: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same job with its nodes and edges in random order."""
    import polars as pl  # noqa: PLC0415 - not in the process that only starts the others

    old = pl.int_range(nodes.height, eager=True).shuffle(seed=1)
    new = old.arg_sort().cast(pl.Int64)
    moved = pl.DataFrame({name: new.gather(edges[name]) for name in ("node", "before")})
    return nodes[old], moved.sample(fraction=1, shuffle=True, seed=1)


if __name__ == "__main__":
    main()
