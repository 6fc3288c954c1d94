"""Measure what recording costs a training job: step time, processor time and memory, with and without.

    python benchmarks/record_overhead.py --frameworks torch --models small,medium --ranks 1,2

Each row is a model and a number of ranks. Within one process blocks of steps with another recorder, or none, take
turns in random order: `nothing`, `marks` (`Profiler(op_time=False)`), `profiler` (`Profiler()`), `bare`, the
framework's own profiler with the same options, and `unwritten`, the same without its trace being written. Processor
time holds all that recording causes, also on other threads and in child processes, and writing to disk; what a block of
one step costs (begin and end) is taken off and shown beside it. Memory is that of fresh processes, one a mode.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import measure

HERE = Path(__file__).parent
WORKERS = {"torch": HERE / "torch_overhead.py"}
"""Scripts that train one rank; all take the options of `command`."""
RATIOS = (
    ("profiler", "bare", 1.03),
    ("profiler", "unwritten", 1.5),
    ("marks", "nothing", 1.005),
    ("bare", "nothing", None),
)
"""Which modes are compared, and the most that the first may cost."""

Found = dict[str, dict[str, list[float]]]


def command(worker: Path, chosen: argparse.Namespace, model: str, **more: Any) -> list[str]:
    """The command that trains one rank."""
    options = {"model": model, "device": chosen.device, "rounds": chosen.rounds, "steps": chosen.steps, **more}
    return [sys.executable, str(worker), *(f"--{name}={value}" for name, value in options.items())]


def times(worker: Path, chosen: argparse.Namespace, model: str, ranks: int) -> Found:
    """Train with all modes in turn, and what rank 0 found."""
    with tempfile.TemporaryDirectory() as directory:
        meeting = (Path(directory) / "rendezvous").as_uri()
        jobs = [
            subprocess.Popen(
                command(worker, chosen, model, rank=rank, ranks=ranks, rendezvous=meeting),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        outputs = [job.communicate() for job in jobs]
    for job, (_, errors) in zip(jobs, outputs, strict=True):
        if job.returncode:
            raise SystemExit(f"{worker.name}: exit status {job.returncode}\n{errors[-2000:]}")
    found: Found = json.loads(outputs[0][0].splitlines()[-1])
    return found


def memory_mb(worker: Path, chosen: argparse.Namespace, model: str, mode: str) -> float:
    """Peak memory of a fresh process that trains with one mode."""
    cost = measure(command(worker, chosen, model, modes=mode, rounds=1))
    if cost.status:
        raise SystemExit(f"{worker.name}: exit status {cost.status}\n{cost.tail}")
    return cost.peak_bytes / 1e6


def tenth(values: list[float]) -> float:
    """What a tenth of the values stays below: on a busy machine it says more of the program than the median."""
    return statistics.quantiles(values, n=10)[0]


def spread(values: list[float]) -> str:
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:9.3f} ({low:.3f} to {high:.3f})"


def show(title: str, found: Found, memory: dict[str, float]) -> None:
    """Print one row's figures and ratios."""
    print(f"\n{title}")
    print(f"  {'mode':10} {'step ms: median (quartiles)':34} {'cpu ms a step':>13} {'begin, end':>10} {'peak MB':>9}")
    for mode, values in found.items():
        cpu_ms, fixed_ms = statistics.median(values["cpu_ms"]), statistics.median(values["fixed_ms"])
        peak = f"{memory[mode]:9.1f}" if mode in memory else ""
        print(f"  {mode:10} {spread(values['step_ms']):34} {cpu_ms:13.3f} {fixed_ms:10.1f} {peak}")
    for mode, other, limit in RATIOS:
        if mode in found and other in found:
            wall, cpu = (
                statistics.median(found[mode][what]) / statistics.median(found[other][what])
                for what in ("step_ms", "cpu_ms")
            )
            mean = statistics.fmean(found[mode]["step_ms"]) / statistics.fmean(found[other]["step_ms"])
            fast = tenth(found[mode]["step_ms"]) / tenth(found[other]["step_ms"])
            aim = "" if limit is None else f"   aim: at most {limit}"
            print(
                f"  {mode} / {other}: step {wall:.4f} (mean {mean:.4f}, of fast steps {fast:.4f}), cpu {cpu:.4f}{aim}"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frameworks", default="torch", help=f"of {', '.join(WORKERS)}")
    parser.add_argument("--models", default="small,medium", help="on a GPU: resnet50,transformer")
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--rounds", type=int, default=6, help="blocks a mode")
    parser.add_argument("--steps", type=int, default=400, help="steps a block; some windows of 5 s should fit in")
    parser.add_argument("--no-memory", action="store_true", help="leave out peak memory")
    parser.add_argument("--out", type=Path, help="write all figures to this JSON file, too")
    chosen = parser.parse_args()
    everything: dict[str, Any] = {}
    for framework in chosen.frameworks.split(","):
        for model in chosen.models.split(","):
            for ranks in map(int, chosen.ranks.split(",")):
                worker = WORKERS[framework]
                found = times(worker, chosen, model, ranks)
                with_memory = ranks == 1 and not chosen.no_memory
                memory = {mode: memory_mb(worker, chosen, model, mode) for mode in found} if with_memory else {}
                title = f"{framework}, {model}, {ranks} rank{'s' if ranks > 1 else ''}, {chosen.device}"
                show(title, found, memory)
                everything[title] = {"times": found, "peak_mb": memory}
    if chosen.out:
        chosen.out.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
