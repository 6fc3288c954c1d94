"""Watch a job become slow: a manager, four training processes, and the verdict that names the slow rank.

    python examples/live/demo.py

Rank 2 becomes slow at step 100. The demo prints what `stepscope live status` says then, and ends. It needs torch
(`pip install torch 'stepscope[live]'`) and Linux; no accelerator. Everything stays on this machine, in a temporary
directory.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.control.client import call

HERE = Path(__file__).resolve().parent
STEPSCOPE = (sys.executable, "-m", "stepscope")
JOB = "demo"


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask processes to end, and end those that do not."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def job(room: Path, ranks: int, options: list[str]) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A manager and the training processes of a job.

    Args:
        room: Directory for records, sockets and the state of the switches.
        options: Of `train.py`.

    Yields:
        Address of the manager, and the training processes. What they report as errors is in `log.txt` in the room.
    """
    port, training_port = free_port(), free_port()
    shared = {
        **os.environ,
        "MINDX_TASK_ID": JOB,
        "STEPSCOPE_LIVE_DIR": str(room / "records"),
        "STEPSCOPE_LIVE_STATE": str(room / "state"),
        "STEPSCOPE_LIVE_SOCKET": str(room / "live.sock"),
    }
    log = (room / "log.txt").open("ab")
    manager = [*STEPSCOPE, "live", "manager", "--port", str(port), "--proxy-port", str(free_port()), "--no-escalate"]
    processes = [subprocess.Popen([*manager, "--events", str(room / "events.jsonl")], env=shared, stderr=log)]
    try:
        for rank in range(ranks):
            place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
            meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(training_port), "GLOO_SOCKET_IFNAME": "lo"}
            command = [sys.executable, str(HERE / "train.py"), *options]
            processes.append(subprocess.Popen(command, env={**shared, **place, **meeting}, stderr=log))
        yield f"127.0.0.1:{port}", processes[1:]
    finally:
        end(processes[1:])
        end(processes[:1])
        log.close()


def status(manager: str) -> dict[str, Any] | None:
    """What the job is doing, as `stepscope live status --json` prints it; None while the manager does not answer."""
    try:
        found: dict[str, Any] = json.loads(call(lambda client: client.status(), manager))
    except StepscopeError:
        return None
    return found


def wait_for_verdict(manager: str, training: list[subprocess.Popen[bytes]], timeout_s: float) -> dict[str, Any] | None:
    """The first verdict, or None if there is none in time, or the job ends before."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and all(process.poll() is None for process in training):
        known = status(manager)
        if known is not None and known["open"]:
            verdict: dict[str, Any] = known["open"][0]
            return verdict
        time.sleep(0.5)
    return None


def main() -> int:
    """Run the demo; the exit code is 0 if a verdict was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--slow-rank", type=int, default=2)
    parser.add_argument("--slow-step", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--factor", type=float, default=2.0)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for the verdict")
    chosen = parser.parse_args()
    options = [f"--{name}={getattr(chosen, name.replace('-', '_'))}" for name in ("steps", "slow-rank", "slow-step")]
    options.append(f"--factor={chosen.factor}")
    with (
        tempfile.TemporaryDirectory(prefix="stepscope-demo-") as room,
        job(Path(room), chosen.ranks, options) as (manager, training),
    ):
        print(f"Training with {chosen.ranks} ranks. To watch: stepscope live watch --manager {manager}", flush=True)
        found = wait_for_verdict(manager, training, chosen.timeout)
        subprocess.run([*STEPSCOPE, "live", "status", "--manager", manager], check=False)
        if not found:
            print((Path(room) / "log.txt").read_text("utf-8", "replace")[-4000:], file=sys.stderr)
    return 0 if found else 1


if __name__ == "__main__":
    raise SystemExit(main())
