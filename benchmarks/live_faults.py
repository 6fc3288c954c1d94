"""Kills manager, proxy and worker of a running job, in random order, while it is switched at random.

Two torch processes train with live workers; one of them is killed and started again, as are manager and proxy
(`kill -9`, at a random moment). Meanwhile a client sets all five switches to random states. After each fault, all ranks
must reach a state that the client has asked for, and none older than the last one that was acknowledged to it.

A third process trains without a worker. Steps are compared, of both kinds, and before any fault and with faults: how
long they took, and for how long the training thread was blocked, i.e. neither ran nor waited for a processor; and how
long each call of our hooks took.

    python benchmarks/live_faults.py [--kills 20] [--simulated]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepscope.errors import StepscopeError
from stepscope.live.control.client import connected
from stepscope.live.kinds import Kind

HERE = Path(__file__).resolve().parent
RANKS = 2
WITNESS, VICTIM = range(RANKS)
BLOCKED_MS = 1.0
"""Longest time for which a step may be blocked beyond what steps are without faults."""
CALM_S = 20.0
"""Time of switching without faults, to compare with."""
WARM_UP = 20
"""First steps, which are left out."""
SETTLES_S = 60.0
"""A job that has not reached its state after this time is wrong."""


@dataclass
class Asked:
    """What a client has asked for: the last state that was acknowledged, and those without an answer since."""

    certain: list[str] | None = None
    revision: int = 0
    perhaps: list[list[str]] = field(default_factory=list)
    acknowledged: int = 0
    unanswered: int = 0
    lost: list[str] = field(default_factory=list)

    def possible(self) -> list[list[str]]:
        """States that the job may be in."""
        return [*([] if self.certain is None else [self.certain]), *self.perhaps]


class Job:
    """The processes of a job."""

    def __init__(self, room: Path, simulated: bool) -> None:
        self.room, self.simulated = room, simulated
        self.port, self.node_port = free_port(), free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.log = (room / "log").open("ab")

    def start(self, name: str) -> None:
        """Start one of `manager`, `proxy`, `worker`, `witness` and `control`."""
        live = [sys.executable, "-m", "stepscope", "live"]
        train = [sys.executable, str(HERE / "trained_live.py"), "torch"]
        simulate = [sys.executable, str(HERE / "simulated_workers.py"), "worker", str(self.room / "live.sock")]
        manager = f"127.0.0.1:{self.port}"
        workers = {"witness": WITNESS, "worker": VICTIM}
        commands = {
            "manager": [*live, "manager", "--job", "job", "--port", str(self.port), "--no-proxy", "--no-escalate"],
            "proxy": [*live, "proxy", "--manager", manager, "--port", str(self.node_port)],
            "control": [*train, "9", "1", str(self.room)],
            **{
                who: [*simulate, str(rank)] if self.simulated else [*train, str(rank), "1", str(self.room)]
                for who, rank in workers.items()
            },
        }
        more = {"WITH_WORKER": "0"} if name == "control" else {"MEASURES_HOOKS": "1"} if name == "witness" else {}
        environment = {**os.environ, **self.environment(), **more, "NOTES": f"{name}.json"}
        self.processes[name] = subprocess.Popen(commands[name], env=environment, stderr=self.log, stdout=self.log)

    def environment(self) -> dict[str, str]:
        """Variables of all processes."""
        return {
            "MINDX_TASK_ID": "job",
            "STEPSCOPE_LIVE_DIR": str(self.room / "records"),
            "STEPSCOPE_LIVE_STATE": str(self.room / "state"),
            "STEPSCOPE_LIVE_SOCKET": str(self.room / "live.sock"),
        }

    def kill(self, name: str) -> None:
        """Kill one at once."""
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def end(self) -> None:
        """End all."""
        (self.room / "stop").touch()
        for name in ("witness", "worker", "control"):
            process = self.processes.get(name)
            if process is not None and not self.simulated:
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.log.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20, help="kills of each of manager, proxy and worker")
    parser.add_argument("--simulated", action="store_true", help="workers without training")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        outcome = asyncio.run(faults(Path(name), options.kills, options.seed, simulated=options.simulated))
        outcome.show()
        right = not outcome.wrong
        if not options.simulated:
            right &= show_steps(Path(name), outcome.calm_until_ns)
    sys.exit(0 if right else 1)


@dataclass
class Outcome:
    """What happened.

    Args:
        wrong: What should not have.
        calm_until_ns: When the first fault came.
        settled_ms: By who was killed: from its start until all ranks had applied the state.
    """

    kills: Counter[str] = field(default_factory=Counter)
    asked: Asked = field(default_factory=Asked)
    wrong: list[str] = field(default_factory=list)
    calm_until_ns: int = 0
    settled_ms: dict[str, list[float]] = field(default_factory=dict)

    def show(self) -> None:
        """Print it."""
        asked = self.asked
        print(
            f"{sum(self.kills.values())} kills ({', '.join(f'{n} {who}' for who, n in sorted(self.kills.items()))}), "
            f"{asked.acknowledged} switches acknowledged, {asked.unanswered} without an answer"
        )
        for who, times in sorted(self.settled_ms.items()):
            print(
                f"  {who:8} back to the right state in all ranks: median {statistics.median(times):7.0f} ms, at most "
                f"{max(times):7.0f} ms after it was started again"
            )
        print(f"lost or wrong: {len(self.wrong)}" + "".join(f"\n  {text}" for text in self.wrong))


async def faults(room: Path, kills: int, seed: int, *, simulated: bool) -> Outcome:
    """Kill and switch."""
    choose = random.Random(seed)
    outcome, job = Outcome(), Job(room, simulated)
    order = ["manager", "proxy", "worker"] * kills
    choose.shuffle(order)
    try:
        for name in ("manager", "proxy", "witness", "worker", *(() if simulated else ("control",))):
            job.start(name)
        await settled(job, outcome, "at the start")
        if not simulated:
            await until_warm(job)
            switching = asyncio.create_task(switch_at_random(job, outcome.asked, choose))
            await asyncio.sleep(CALM_S)
            await cancelled(switching)
        outcome.calm_until_ns = time.time_ns()
        for number, who in enumerate(order):
            switching = asyncio.create_task(switch_at_random(job, outcome.asked, choose))
            await asyncio.sleep(choose.uniform(0.1, 1.0))
            job.kill(who)
            await asyncio.sleep(choose.uniform(0.0, 0.5))
            job.start(who)
            began_s = time.monotonic()
            await asyncio.sleep(choose.uniform(0.0, 1.0))
            await cancelled(switching)
            outcome.kills[who] += 1
            await settled(job, outcome, f"after fault {number + 1} ({who})")
            outcome.settled_ms.setdefault(who, []).append((time.monotonic() - began_s) * 1000)
        outcome.wrong += outcome.asked.lost
    finally:
        job.end()
    if not simulated:
        outcome.wrong += wrong_in_the_end(room, outcome.asked)
    return outcome


async def until_warm(job: Job) -> None:
    """Wait until the processes train that are compared."""
    while not all((job.room / f"trains-{name}.json").exists() for name in ("control", "witness")):
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)


async def cancelled(task: asyncio.Task[None]) -> None:
    """End a task."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def switch_at_random(job: Job, asked: Asked, choose: random.Random) -> None:
    """Set all switches to random states, one after the other."""
    while True:
        on = [kind.value for kind in Kind if choose.random() < 0.5]
        changes = {kind.value: "on" if kind.value in on else "off" for kind in Kind}
        asked.perhaps.append(on)
        try:
            async with connected(f"127.0.0.1:{job.port}") as client:
                answer = await client.switch(changes, by="benchmark")
        except StepscopeError:
            asked.unanswered += 1
        else:
            if answer.revision < asked.revision or answer.on != on:
                asked.lost.append(f"revision {answer.revision} ({answer.on}) came after {asked.revision}, for {on}")
            asked.certain, asked.revision, asked.perhaps = answer.on, answer.revision, []
            asked.acknowledged += 1
        await asyncio.sleep(choose.uniform(0.0, 0.1))


async def settled(job: Job, outcome: Outcome, when: str) -> None:
    """Wait until all ranks have applied the state of the manager, which must be one that was asked for."""
    from stepscope.live.show.status import from_json  # noqa: PLC0415

    end_s, problem = time.monotonic() + SETTLES_S, "the manager does not answer"
    while time.monotonic() < end_s:
        ended = [name for name, process in job.processes.items() if process.poll() is not None]
        if ended:
            sys.exit(f"{when}: {', '.join(ended)} ended without being told to: see {job.room}/log")
        try:
            async with connected(f"127.0.0.1:{job.port}") as client:
                status = from_json(await client.status())
        except StepscopeError as error:
            problem = str(error)
        else:
            alive = [rank.pid for rank in status.ranks if rank.state == "alive"]
            there = {job.processes[name].pid for name in ("witness", "worker")} == set(alive)
            if there and status.switches.applied == RANKS and not status.switches.pending:
                on, revision = status.switches.on, status.switches.revision
                if outcome.asked.possible() and on not in outcome.asked.possible():
                    outcome.wrong.append(f"{when}: {on} is in force, but asked for was {outcome.asked.possible()}")
                if revision < outcome.asked.revision:
                    outcome.wrong.append(f"{when}: revision {revision} after {outcome.asked.revision} was acknowledged")
                return
            problem = f"ranks {alive}, {status.switches}"
        await asyncio.sleep(0.1)
    outcome.wrong.append(f"{when}: {problem}")


def wrong_in_the_end(room: Path, asked: Asked) -> list[str]:
    """What the training processes themselves have applied last, if that is wrong."""
    wrong = []
    for name in ("witness", "worker"):
        content = json.loads((room / f"{name}.json").read_text())
        if content["switches"] not in asked.possible() or content["revision"] < asked.revision:
            wrong.append(f"{name} ends with revision {content['revision']}, {content['switches']}")
    return wrong


def show_steps(room: Path, calm_until_ns: int) -> bool:
    """Compare steps with and without a worker; returns whether none was blocked for too long.

    Args:
        calm_until_ns: Before this time, nothing was killed.
    """
    columns = f"{'p50':>10}{'p99':>10}{'longest':>10}"
    print(f"{'in ms':34}{'steps':>8}  time of a step:{columns}  blocked for:{columns}")
    longest: dict[str, float] = {}
    for name, words in (("control", "no worker"), ("witness", "worker")):
        content = json.loads((room / f"{name}.json").read_text())
        steps = list(map(Step, content["ran"]["step"], content["steps"], content["steps"][1:]))[WARM_UP:]
        for phase, chosen in (
            ("before any fault", [step for step in steps if step.ended_ns < calm_until_ns]),
            ("with faults", [step for step in steps if step.ended_ns >= calm_until_ns]),
        ):
            took, blocked = [step.took_ms for step in chosen], [step.blocked_ms for step in chosen]
            print(
                f"{f'{words}, {phase}':34}{len(chosen):8,}{' ' * 17}{_quantiles(took)}{' ' * 14}{_quantiles(blocked)}"
            )
            own = [step.own_ms for step in chosen]
            longest[f"{name} {phase}"] = max(own)
            if name == "witness":
                print(f"{'  without waits of its thread':34}{'':67}{_quantiles(own)}")
                print(f"  the longest of these: {max(chosen, key=lambda step: step.own_ms)}")
        if name == "witness":
            hooks: dict[str, Any] = content["hooks"]
            print(
                f"hooks: {hooks['calls']:,} calls, the longest took {hooks['longest_cpu_ns'] / 1e6:.3f} ms of "
                f"processor time, {hooks['longest_ns'] / 1e6:.3f} ms in all"
            )
    base = max(longest["control with faults"], longest["witness before any fault"])
    excess_ms = longest["witness with faults"] - base
    print(f"longest time blocked beyond that without faults: {max(0.0, excess_ms):.3f} ms (at most {BLOCKED_MS:g})")
    return excess_ms <= BLOCKED_MS


@dataclass(frozen=True)
class Step:
    """A step: what `trained_live.Waits` has noted of it and of the one after it."""

    ran: tuple[int, int]
    noted: list[int]
    after: list[int]

    @property
    def ended_ns(self) -> int:
        """When it ended, since the epoch."""
        return self.ran[1]

    @property
    def took_ms(self) -> float:
        """Its time."""
        return self.noted[0] / 1e6

    @property
    def blocked_ms(self) -> float:
        """For how long its thread neither ran nor waited for a processor."""
        return self.noted[1] / 1e6

    @property
    def own_ms(self) -> float:
        """The same, without the time for which the worker's thread waited for a processor. A wait counts when it ends,
        which may be in the next step."""
        return max(0.0, self.blocked_ms - (self.noted[2] + self.after[2]) / 1e6)

    def __str__(self) -> str:
        waited_ms, ran_ms = (self.noted[part] / 1e6 for part in (2, 3))
        return (
            f"blocked for {self.blocked_ms:.3f} ms, in which the worker's thread ran for {ran_ms:.3f} ms and waited "
            f"for a processor for {waited_ms:.3f} ms"
        )


def _quantiles(times: list[float]) -> str:
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return f"{cuts[49]:10.3f}{cuts[98]:10.3f}{max(times):10.3f}"


def free_port() -> int:
    """A port that nobody uses at the moment."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


if __name__ == "__main__":
    main()
