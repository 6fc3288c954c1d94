"""Attaching to a running PyTorch process and leaving it again, many times in a row: what it costs, and what stays.

A second process of the same kind, to which nobody attaches, shows what the machine does meanwhile. Step times are those
of the job's own timer, without its pauses.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, get_args

from stepscope.live.attach.injection import Method
from stepscope.live.attach.job import Job

SCRIPT = Path(__file__).parents[1] / "tests" / "live" / "attach" / "training.py"
COUNTS = (
    "native_threads",
    "modules",
    "files",
    "importers",
    "loggers",
    "finders",
    "collecting",
    "optimizer_hooks",
    "names",
)
Step = tuple[float, float, float]
"""When it ended, how long it took and its processor time, s."""


class Trained:
    """A training process."""

    def __init__(self, times: Path) -> None:
        self._times = times
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SCRIPT)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "TIMES": str(times)},
        )

    def line(self) -> str:
        """What it prints next."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def look(self) -> dict[str, Any]:
        """What it says about itself."""
        self.process.send_signal(signal.SIGUSR1)
        content: dict[str, Any] = json.loads(self.line())
        return content

    def steps(self, since_s: float, until_s: float) -> list[Step]:
        """Its steps in a span of time."""
        lines = (line.split() for line in self._times.read_text().splitlines()[:-1])
        found = [(float(a), float(b), float(c)) for a, b, c in lines]
        return [step for step in found if since_s < step[0] < until_s]


def main() -> int:
    """Attach, and print what it cost; fails if anything stays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how often to attach")
    parser.add_argument("--steps", type=int, default=5, help="steps to record each time")
    parser.add_argument("--quiet", type=int, default=15, help="undisturbed time before and after, seconds")
    parser.add_argument("--method", choices=get_args(Method), default="auto")
    parser.add_argument("--operators", action=argparse.BooleanOptionalAction, default=True)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as room:
        processes = [Trained(Path(room) / f"{name}.txt") for name in ("attached", "control")]
        try:
            for one in processes:
                assert one.line().strip() == "ready"
            return _measure(processes[0], processes[1], asked, Path(room) / "out")
        finally:
            for one in processes:
                one.process.kill()


def _measure(attached: Trained, control: Trained, asked: argparse.Namespace, output: Path) -> int:
    spans = [_quiet(asked.quiet)]
    looks, stops_ms, took_s = [attached.look()], [], []
    for _ in range(asked.times):
        began_s = time.perf_counter()
        job = Job([attached.process.pid], lambda _: None, asked.method)
        (outcome,) = job.record(asked.steps, {"output_path": str(output), "op_time": asked.operators})
        ended_s = time.perf_counter()
        if outcome.steps != asked.steps or outcome.problem:
            print(f"recorded {outcome.steps} steps: {outcome.problem}")
            return 1
        took_s.append(ended_s - began_s)
        ends = [step[0] for step in attached.steps(began_s - 0.1, ended_s + 0.1)]
        stops_ms.append(1e3 * max(b - a for a, b in pairwise(ends)))
        looks.append(attached.look())
    spans.append(_quiet(asked.quiet))
    print(f"attached and left {asked.times} times, {asked.steps} steps each, operators {asked.operators}")
    print(f"  took {median(took_s):.2f} s each (longest {max(took_s):.2f} s)")
    print(f"  longest pause of training {median(stops_ms):.0f} ms each (longest {max(stops_ms):.0f} ms)")
    for name, place in (("step time", 1), ("processor time of a step", 2)):
        before, after = ([_relative(attached, control, span, place) for span in part] for part in spans)
        print(
            f"  {name}, divided by that of the control: {median(before):.4f} before "
            f"({min(before):.3f} to {max(before):.3f}), {median(after):.4f} after "
            f"({min(after):.3f} to {max(after):.3f})"
        )
    return _left(looks)


def _quiet(seconds: int) -> list[tuple[float, float]]:
    """Let both train; returns spans of a second."""
    now_s = time.perf_counter()
    time.sleep(seconds)
    return [(now_s + second, now_s + second + 1) for second in range(seconds)]


def _relative(attached: Trained, control: Trained, span: tuple[float, float], place: int) -> float:
    own, other = (median(step[place] for step in one.steps(*span)) for one in (attached, control))
    return own / other


def _left(looks: list[dict[str, Any]]) -> int:
    """Print what stayed in the process. What torch itself starts when it first records stays by its design."""
    first, second, last = looks[0], looks[1], looks[-1]
    for name, unit, scale in (("rss_kb", "MiB of resident memory", 1024), ("objects", "thousand Python objects", 1000)):
        values = [look[name] / scale for look in looks]
        print(f"  {unit}: {values[0]:.1f} before, then {' '.join(f'{value:.1f}' for value in values[1:])}")
    by_torch = {name: (first[name], second[name]) for name in COUNTS if first[name] != second[name]}
    stayed = {name: (second[name], last[name]) for name in COUNTS if second[name] != last[name]}
    print(f"  replaced functions that stayed: {last['changed'] or 'none'}")
    print(f"  threads, files, modules, finders and hooks more than before: {by_torch or 'none'} after the first time, "
          f"{stayed or 'none'} since then")  # fmt: skip
    return 1 if stayed or by_torch.keys() - {"native_threads"} or last["changed"] else 0


if __name__ == "__main__":
    sys.exit(main())
