"""Measure `stepscope analyze` on jobs that grow: whether processor time and memory grow with the operations only.

    python benchmarks/growing_jobs.py [--ranks 64] [--steps 10] [--kernels 1000] [--grow ranks|steps|kernels]
        [--parts 0.125,0.25,0.5,1] [--slow 2] [--rounds 1] [--tree DIR]

Simulated jobs (`simulated/`) on GPUs in groups of four, with some slow ranks, as traces of the PyTorch profiler. A row
is one job and tree: the command from an empty store, reading alone, and the command again from the store; then what
analysing takes for each operation (kernels and calls of all ranks), which must not grow with the job, and the peak
memory of the command for each.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measure import Cost, measure
from simulated.faults import Fault, kernels
from simulated.kineto import write
from simulated.layouts import Shape
from simulated.truth import Job

HERE = Path(__file__).parent

TENSOR, LAYER_KERNELS, AROUND = 4, 6, 3
"""Ranks of a tensor-parallel group; kernels of a layer in each direction; kernels of a step that are of no layer."""

EACH = 2 * LAYER_KERNELS + 2
"""Kernels and calls of a layer in a step."""


def main(words: Sequence[str] | None = None) -> None:
    """Make each job, and measure the commands on it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=64, help="ranks of a job (default 64)")
    parser.add_argument("--steps", type=int, default=10, help="steps of a job (default 10)")
    parser.add_argument("--kernels", type=int, default=1000, help="kernels of a rank in a step (default 1000)")
    parser.add_argument("--grow", choices=("ranks", "steps", "kernels"), default="kernels", help="what grows")
    parser.add_argument("--parts", default="0.125,0.25,0.5,1", help="which parts of it the jobs have")
    parser.add_argument("--slow", type=int, default=2, help="ranks that are slow (default 2)")
    parser.add_argument("--rounds", type=int, default=1, help="times that each is measured; the least time counts")
    parser.add_argument("--tree", type=Path, action="append", default=[], help="another checkout to measure as well")
    chosen = parser.parse_args(words)
    print(f"{'tree':12}{'ranks':>6}{'steps':>6}{'kernels':>8}{'operations':>11}{'':3}{'wall s':>7}{'cpu s':>7}"
          f"{'peak MB':>9}{'read s':>8}{'again s':>8}{'us an operation':>17}{'bytes':>7}")  # fmt: skip
    whole = {"ranks": chosen.ranks, "steps": chosen.steps, "kernels": chosen.kernels}
    for part in map(float, chosen.parts.split(",")):
        shape = whole | {chosen.grow: max(2, round(whole[chosen.grow] * part))}
        with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as name:
            operations = make(Path(name, "job"), **shape, slow=chosen.slow)
            for tree in (HERE.parent, *chosen.tree):
                costs = [measured(tree, Path(name), turn) for turn in range(chosen.rounds)]
                print(f"{tree.resolve().name:12}{line(shape, operations, costs)}", flush=True)


def make(directory: Path, ranks: int, steps: int, kernels: int, slow: int) -> int:
    """Write the traces of a job; returns its number of operations."""
    layers = max(1, (kernels - AROUND) // EACH)
    shape = Shape(ranks=ranks, steps=steps, layers=layers, layer_kernels=LAYER_KERNELS, kernel_ns=60_000,
                  gap_ns=15_000, tensor=TENSOR if ranks % TENSOR == 0 else 1)  # fmt: skip
    job = Job("growing", shape, [_slow(5 * number % ranks) for number in range(min(slow, ranks - 1))])
    write(job, directory)
    counted = ("kernel", "call")
    return sum(each.operation.what in counted for done in job.times.done for each in done)


def _slow(rank: int) -> Fault:
    return Fault("computing", "rank", (rank,), kernels(1.3))


def measured(tree: Path, scratch: Path, turn: int) -> tuple[Cost, Cost, Cost]:
    """The command from an empty store, reading alone, and the command again."""
    env = {"PYTHONPATH": str(tree / "src"), "STEPSCOPE_CACHE": str(scratch / f"store-{tree.resolve().name}-{turn}")}
    analyze = [sys.executable, "-m", "stepscope", "analyze", str(scratch / "job"), "--json", "-q"]
    read = [sys.executable, str(HERE / "stages.py"), "opened", str(scratch / "job")]
    cold, again = (_run(analyze, env) for _ in range(2))
    return cold, _run(read, env | {"STEPSCOPE_CACHE": env["STEPSCOPE_CACHE"] + "-read"}), again


def _run(command: Sequence[str], env: dict[str, str]) -> Cost:
    cost = measure(command, env=os.environ | env)
    if cost.status:
        raise SystemExit(f"{' '.join(command)}: status {cost.status}\n{cost.tail}")
    return cost


def line(shape: dict[str, int], operations: int, costs: Sequence[tuple[Cost, Cost, Cost]]) -> str:
    """The figures of a job as text."""
    cold, read, again = (min(turns, key=lambda cost: cost.cpu_s) for turns in zip(*costs, strict=True))
    analysing = cold.cpu_s - read.cpu_s
    return (
        f"{shape['ranks']:6}{shape['steps']:6}{shape['kernels']:8}{operations:11}   {cold.wall_s:7.1f}{cold.cpu_s:7.1f}"
        f"{cold.peak_bytes / 1e6:9.0f}{read.cpu_s:8.1f}{again.cpu_s:8.1f}{analysing / operations * 1e6:17.1f}"
        f"{cold.peak_bytes / operations:7.0f}"
    )


if __name__ == "__main__":
    main()
