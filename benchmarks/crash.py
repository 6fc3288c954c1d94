"""Kills a recorded training with SIGKILL at random moments and checks what is left: `python benchmarks/crash.py`.

Each time the raw data must hold every step that ended a second before the kill, and the operators of every window that
was over by then; offline analysis must make its files for all ranks. The exit code is 1 if it ever did not.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import stepscope

FLUSHED_SECONDS = 1.0
WINDOW_SECONDS = 0.5
WRITTEN_SECONDS = 1.0
"""A window of this small training is on disk so long after its end."""

TORCH = """
import os, sys, time, torch, stepscope
rank, world, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
torch.set_num_threads(1)
if world > 1:
    torch.distributed.init_process_group("gloo", init_method=f"file://{out}/rendezvous", rank=rank, world_size=world)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
if world > 1:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
data = torch.utils.data.TensorDataset(torch.randn(1 << 16, 64))
profiler = stepscope.Profiler(output_path=out, window_seconds=%(window)s)
with open(f"{out}/progress-{rank}", "w") as progress:
    for (batch,) in torch.utils.data.DataLoader(data, batch_size=16):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        progress.write(f"{time.time_ns()}\\n")
        progress.flush()
        time.sleep(0.002)
"""

MINDSPORE = """
import sys, time, numpy as np, mindspore as ms, stepscope
from mindspore import nn
rank, world, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ms.set_context(mode=ms.PYNATIVE_MODE)
model = nn.Dense(16, 4)
optimizer = nn.SGD(model.trainable_params(), 0.01)
gradients = ms.value_and_grad(lambda x: model(x).sum(), None, optimizer.parameters)
profiler = stepscope.Profiler(output_path=out, window_seconds=%(window)s)
batch = ms.Tensor(np.ones((8, 16), np.float32))
with open(f"{out}/progress-{rank}", "w") as progress:
    while True:
        _, grads = gradients(batch)
        optimizer(grads)
        progress.write(f"{time.time_ns()}\\n")
        progress.flush()
        time.sleep(0.002)
"""


def main() -> int:
    """Run it; 0 if nothing was missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", choices=("torch", "mindspore"), default="torch")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    moments = random.Random(chosen.seed)
    script = (TORCH if chosen.framework == "torch" else MINDSPORE) % {"window": WINDOW_SECONDS}
    faults = 0
    for number in range(1, chosen.times + 1):
        directory = Path(tempfile.mkdtemp(prefix="stepscope-crash-"))
        try:
            told = trial(script, chosen.ranks, moments.uniform(0.2, 4.0), directory)
        except AssertionError as error:
            faults += 1
            told = f"FAULT: {error}"
        finally:
            shutil.rmtree(directory)
        print(f"{number:3d}  {told}", flush=True)
    print(f"{chosen.times - faults} of {chosen.times} without a fault")
    return 1 if faults else 0


def trial(script: str, ranks: int, seconds: float, directory: Path) -> str:
    """Train, kill after some seconds of training, analyse, and check; returns what was found.

    Raises:
        AssertionError: If something is missing.
    """
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(rank), str(ranks), str(directory)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for rank in range(ranks)
    ]
    try:
        _await_training(directory, ranks, programs)
        time.sleep(seconds)
    finally:
        killed_ns = time.time_ns()
        for program in programs:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    stepscope.Profiler.offline_analyse(directory)
    return "; ".join(_check(directory, rank, killed_ns) for rank in range(ranks))


def _await_training(directory: Path, ranks: int, programs: list[subprocess.Popen[bytes]]) -> None:
    for _ in range(1200):
        if all((directory / f"progress-{rank}").exists() for rank in range(ranks)):
            return
        assert all(program.poll() is None for program in programs), "the training itself ended"
        time.sleep(0.05)
    raise AssertionError("the training did not begin within a minute")


def _check(directory: Path, rank: int, killed_ns: int) -> str:
    """What is there of one rank."""
    ended = [int(line) for line in (directory / f"progress-{rank}").read_text().split("\n")[:-1]]
    (raw,) = (directory / "profiler" / "recording").glob(f"rank-{rank}_*")
    marks = _rows(raw / "marks.csv")
    steps = [int(mark["end_ns"]) for mark in marks if mark["kind"] == "step"]
    due = sum(time_ns < killed_ns - FLUSHED_SECONDS * 1e9 for time_ns in ended)
    assert len(steps) >= due - 1, f"rank {rank}: {len(steps)} steps on disk, {due} were over in time"
    windows = [row for row in _rows(raw / "windows.csv") if row["state"] == "complete"]
    trained = (killed_ns - ended[0]) / 1e9 if ended else 0.0
    wanted = int((trained - WRITTEN_SECONDS) / (2 * WINDOW_SECONDS))
    assert len(windows) >= wanted, f"rank {rank}: {len(windows)} windows after {trained:.1f} s"
    for row in windows:
        for file in row["files"].split(";"):
            assert (raw / "windows" / f"{int(row['window']):06d}" / file).stat().st_size, f"{file} is empty"
    exported = directory / "profiler" / f"exported-{rank}.json"
    assert exported.exists() or not steps, f"rank {rank}: offline analysis made nothing"
    last = (killed_ns - int(windows[-1]["end_ns"])) / 1e9 if windows else trained
    return (
        f"rank {rank}: {len(ended)} steps done, {len(steps)} on disk, {len(windows)} windows, last {last:.1f} s before"
    )


def _rows(file: Path) -> list[dict[str, str]]:
    """The whole lines of a CSV file."""
    if not file.exists():
        return []
    text = file.read_text()
    return list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))


if __name__ == "__main__":
    sys.exit(main())
