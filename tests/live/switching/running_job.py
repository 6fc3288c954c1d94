"""A job for commands: a manager, a proxy and workers without training, in a process of its own. Prints its address.

Arguments: directory of sockets, number of ranks, and what is special, e.g. `deaf=2`, `failing=3`, `world_size=5`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))


@contextmanager
def running_job(ranks: int, *special: str, token_file: Path | None = None) -> Iterator[str]:
    """Runs until the block ends; gives the manager's address."""
    with tempfile.TemporaryDirectory(prefix="stepscope-") as room:  # paths of sockets must be short
        process = subprocess.Popen(
            [sys.executable, __file__, room, str(ranks), *special],
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "STEPSCOPE_LIVE_SOCKET": f"{room}/live.sock",
                "STEPSCOPE_LIVE_STATE": f"{room}/state",
                "STEPSCOPE_LIVE_TOKEN_FILE": str(token_file or ""),
            },
        )
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.kill()
            process.communicate()


def workers_of(socket: Path, ranks: int) -> subprocess.Popen[str]:
    """Workers without training of job `job-1`, in a process of their own, which the caller ends."""
    return subprocess.Popen([sys.executable, __file__, "workers", str(socket), str(ranks)], text=True)


async def _work(socket: Path, ranks: int) -> None:
    from simulated_workers import SimulatedWorker

    await asyncio.gather(
        *(SimulatedWorker(rank, socket, "job-1", world_size=ranks, retry_s=0.1).run() for rank in range(ranks))
    )


async def _run(room: Path, ranks: int, special: dict[str, int]) -> None:
    from simulated_workers import SimulatedWorker
    from stepscope.live.composing import views_of
    from stepscope.live.control.manager import Manager
    from stepscope.live.control.proxy import Proxy
    from stepscope.live.control.security import Security
    from stepscope.live.control.serving import ManagerServer, ProxyServer
    from stepscope.live.control.sockets import PrivateSocket
    from stepscope.live.messages import Applied, Apply

    class Worker(SimulatedWorker):
        def _take(self, message: object, writer: asyncio.StreamWriter) -> None:
            if isinstance(message, Apply) and self.rank == special.get("deaf"):
                return
            if isinstance(message, Apply) and self.rank == special.get("failing"):
                self._send(writer, Applied(self.rank, self.revision, self.switches, 0, "no hooks in this framework"))
                return
            super()._take(message, writer)  # type: ignore[arg-type]

    manager = Manager("job-1", persistent=False)
    server = ManagerServer(manager, *views_of(manager), port=0, security=Security.stated())
    await server.start()
    proxy = Proxy(server.local_target, place=PrivateSocket(room / "live.sock"))
    await ProxyServer(proxy, port=None).start()
    world_size = special.get("world_size", ranks)
    tasks = [
        asyncio.create_task(Worker(rank, room / "live.sock", "job-1", world_size=world_size).run())
        for rank in range(ranks)
    ]
    while len(server.manager.ranks) < ranks:
        await asyncio.sleep(0.02)
    print(f"127.0.0.1:{server.port}", flush=True)
    await asyncio.gather(asyncio.Event().wait(), *tasks)


if __name__ == "__main__":
    if sys.argv[1] == "workers":
        asyncio.run(_work(Path(sys.argv[2]), int(sys.argv[3])))
    words = (word.split("=") for word in sys.argv[3:])
    asyncio.run(_run(Path(sys.argv[1]), int(sys.argv[2]), {name: int(value) for name, value in words}))
