"""How fast and how exactly a running job is switched.

Real part: four torch processes (gloo) and two MindSpore processes train on the CPU with live workers. Each switch is
set alone, all are set together, and random sets follow each other, while the processes keep all processors busy. Then
the ranges on disk are compared with those that each process has noted itself.

Simulated part: 1,024 workers without training behind 128 proxies, in processes of their own, and a manager with its
detector.

Times are from the call of the client to the moment when the hooks of a worker follow (on one clock), in ms.

    python benchmarks/live_switch.py [--ranks 4] [--mindspore 2] [--simulated 1024] [--rounds 3] [--dwell 1.0]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from live_ranges import KINDS, Toggle, compared, print_tallies
from stepscope.live.composing import views_of
from stepscope.live.control.client import Client, connected
from stepscope.live.control.manager import Manager
from stepscope.live.control.proxy import Proxy
from stepscope.live.control.serving import ManagerServer, ProxyServer
from stepscope.live.control.sockets import PrivateSocket
from stepscope.live.messages import Applied

HERE = Path(__file__).resolve().parent
RANKS_PER_NODE = 8
WITHIN_S = 120.0
"""Time for processes to import their framework and to begin to train."""


@dataclass
class Latencies:
    """Times in ms: until each rank followed, and until the client knew that all have."""

    followed: list[float] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)

    def show(self, what: str) -> None:
        """Print them."""
        for name, times in (("a rank follows", self.followed), ("all acknowledged", self.acknowledged)):
            tail = statistics.quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else times[0]
            print(
                f"{what:28}{name:18}p50 {statistics.median(times):8.2f} ms   p99 {tail:8.2f} ms   max "
                f"{max(times):8.2f} ms   of {len(times):,}"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=4, help="torch processes")
    parser.add_argument("--mindspore", type=int, default=2, help="MindSpore processes")
    parser.add_argument("--simulated", type=int, default=1024, help="simulated workers")
    parser.add_argument("--rounds", type=int, default=3, help="rounds through all switches")
    parser.add_argument("--dwell", type=float, default=1.0, help="seconds in each state")
    parser.add_argument("--toggles", type=int, default=100, help="toggles of the simulated workers")
    options = parser.parse_args()
    right = True
    if options.ranks + options.mindspore:
        right = asyncio.run(real(options.ranks, options.mindspore, options.rounds, options.dwell))
    if options.simulated:
        asyncio.run(simulated(options.simulated, options.toggles))
    sys.exit(0 if right else 1)


async def real(torch: int, mindspore: int, rounds: int, dwell_s: float) -> bool:
    """Switch training processes; returns whether the ranges on disk are exactly those run while their kind was on."""
    ranks = torch + mindspore
    with tempfile.TemporaryDirectory(prefix="switch-") as name:
        room = Path(name)
        os.environ.update(environment(room))
        manager = Manager()
        followed: dict[int, dict[int, int]] = {}

        def heard(event: object) -> None:
            if isinstance(event, Applied) and not event.error:
                followed.setdefault(event.revision, {}).setdefault(event.rank, event.at_ns)

        manager.listen(heard)
        server = ManagerServer(manager, *views_of(manager), port=0)
        await server.start()
        node = ProxyServer(Proxy(server.local_target, place=PrivateSocket(room / "live.sock")), port=None)
        await node.start()
        commands = [["torch", str(rank), str(torch)] for rank in range(torch)]
        commands += [["mindspore", str(torch + number), "1"] for number in range(mindspore)]
        with training(room, commands):
            await begun(room, manager, ranks)
            async with connected(f"127.0.0.1:{server.port}") as client:
                toggles, latencies = await switched(client, followed, ranks, rounds, dwell_s)
            (room / "stop").touch()
            await ended(room, ranks)
        await node.stop()
        await server.stop()
        tallies = compared(room, room / "records", ranks, toggles)
    print(f"{torch} torch and {mindspore} MindSpore processes, {len(toggles)} switches, {os.cpu_count()} processors")
    latencies.show("real processes")
    print_tallies(tallies)
    return all(one.is_right for one in tallies.values())


def environment(room: Path) -> dict[str, str]:
    """Variables of all processes."""
    return {
        "STEPSCOPE_LIVE_DIR": str(room / "records"),
        "STEPSCOPE_LIVE_STATE": str(room / "state"),
        "STEPSCOPE_LIVE_SOCKET": str(room / "live.sock"),
        "STEPSCOPE_LIVE_SWITCHES": "none",
        "GLOG_v": "3",
    }


@contextmanager
def training(room: Path, commands: list[list[str]]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Training processes; they are ended with the block."""
    processes = [
        subprocess.Popen([sys.executable, str(HERE / "trained_live.py"), *words, str(room)]) for words in commands
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def begun(room: Path, manager: Manager, ranks: int) -> None:
    """Wait until all ranks train and are registered."""
    await until(
        lambda: (
            all((room / f"trains-ran-{rank}.json").exists() for rank in range(ranks))
            and sum(one.alive for one in manager.ranks.values()) == ranks
        )
    )


async def ended(room: Path, ranks: int) -> None:
    """Wait until all have left their notes."""
    await until(lambda: all((room / f"ran-{rank}.json").exists() for rank in range(ranks)))
    await asyncio.sleep(3)  # the ends of the processes write the last records


async def until(condition: Callable[[], bool], within_s: float = WITHIN_S) -> None:
    """Wait for something.

    Raises:
        SystemExit: If it does not happen.
    """
    end_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end_s:
            sys.exit("the processes did not get ready in time")
        await asyncio.sleep(0.1)


async def switched(
    client: Client, followed: dict[int, dict[int, int]], ranks: int, rounds: int, dwell_s: float
) -> tuple[list[Toggle], Latencies]:
    """Go through the states."""
    toggles, latencies = [], Latencies()
    for on in states(rounds):
        asked_ns = time.time_ns()
        answer = await client.switch({kind: "on" if kind in on else "off" for kind in KINDS}, wait_s=30)
        latencies.acknowledged.append((time.time_ns() - asked_ns) / 1e6)
        if answer.pending or answer.failed or len(answer.applied) != ranks:
            sys.exit(f"not all ranks have applied the switches: {answer}")
        times = followed[answer.revision]
        latencies.followed += [(at_ns - asked_ns) / 1e6 for at_ns in times.values()]
        toggles.append(Toggle(on, asked_ns, dict(times)))
        await asyncio.sleep(dwell_s)
    return toggles, latencies


def states(rounds: int) -> Iterator[frozenset[str]]:
    """Each switch alone, all together, and random sets, always with a change."""
    choose, none = random.Random(0), frozenset[str]()
    for _ in range(rounds):
        for kind in KINDS:
            yield from (frozenset({kind}), none)
        yield from (frozenset(KINDS), none)
        last = none
        for _ in range(5):
            chosen = last
            while chosen == last:
                chosen = frozenset(kind for kind in KINDS if choose.random() < 0.5)
            yield chosen
            last = chosen
        if last:
            yield none


async def simulated(workers: int, toggles: int, processes: int = 4) -> None:
    """Switch workers without training, behind many proxies."""
    with tempfile.TemporaryDirectory(prefix="switch-") as name:
        room = Path(name)
        os.environ.update(environment(room))
        command = [sys.executable, "-m", "stepscope", "live", "manager", "--job", "job", "--port", "0", "--no-proxy"]
        with (room / "manager.log").open("wb") as log:
            manager = subprocess.Popen(command, stderr=log)
        port = await listening_port(room / "manager.log")
        nodes = max(1, workers // RANKS_PER_NODE)
        share = max(1, nodes // processes)
        groups = [
            subprocess.Popen(
                [
                    *(sys.executable, str(HERE / "simulated_workers.py"), str(room)),
                    *map(str, (port, first, min(share, nodes - first), RANKS_PER_NODE)),
                ]
            )
            for first in range(0, nodes, share)
        ]
        latencies = Latencies()
        try:
            async with connected(f"127.0.0.1:{port}", job="job") as client:
                await all_there(client, nodes * RANKS_PER_NODE)
                asked = []
                for number in range(toggles):
                    await asyncio.sleep(0.2)
                    state = "off" if number % 2 else "on"
                    asked_ns = time.time_ns()
                    answer = await client.switch({"communication": state}, wait_s=30)
                    latencies.acknowledged.append((time.time_ns() - asked_ns) / 1e6)
                    if len(answer.applied) != nodes * RANKS_PER_NODE:
                        sys.exit(f"only {len(answer.applied)} ranks have applied the switches")
                    asked.append((answer.revision, asked_ns))
        finally:
            for group in groups:
                group.send_signal(signal.SIGTERM)
                group.wait()
            manager.terminate()
            manager.wait()
        for file in room.glob("applied-*.json"):
            for times in json.loads(file.read_text()).values():
                latencies.followed += [(times[str(revision)] - asked_ns) / 1e6 for revision, asked_ns in asked]
    print(f"{nodes * RANKS_PER_NODE:,} simulated workers behind {nodes} proxies, {toggles} switches")
    latencies.show("simulated workers")


async def listening_port(log: Path) -> int:
    """The port that a manager has reported."""
    await until(lambda: b"listens on" in log.read_bytes())
    line = next(line for line in log.read_text().splitlines() if "listens on" in line)
    return int(line.rpartition(":")[2])


async def all_there(client: Client, ranks: int) -> None:
    """Wait until all ranks are registered."""
    end_s = time.monotonic() + WITHIN_S
    while len(answer := (await client.switch({"step": "on"})).applied) < ranks:
        if time.monotonic() > end_s:
            sys.exit(f"only {len(answer)} ranks came")
        await asyncio.sleep(0.5)


if __name__ == "__main__":
    main()
