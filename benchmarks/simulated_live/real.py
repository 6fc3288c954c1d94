"""Real jobs of 4 processes: what their live workers send goes to a detector in this process."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from simulated_live.jobs import Fault, Job, Layout
from simulated_live.play import Played, Told
from simulated_live.scoring import Score, score
from stepscope.live.detect import Detector
from stepscope.live.messages import Digests, Hello, Pulse, from_worker

RANKS, FIRST, STEPS = 4, 120, 420
LOOK_S = 0.25
KINDS = (
    ("compute", 1.3, (2,), 1),
    ("compute", 1.1, (1,), 1),
    ("none", 1.0, (), 1),
    ("data", 1.3, (3,), 1),
    ("compute", 2.0, (0,), 1),
    ("compute", 1.5, (2,), 4),
    ("checkpoint", 4.0, (1,), 1),
    ("compute", 1.3, (0, 3), 1),
)
"""Kind, factor, guilty ranks, each how many steps."""
LIMIT_S = 150.0


@dataclass
class _Link:
    """What a worker has sent that is no whole line yet."""

    rest: bytes = b""
    lines: list[bytes] = field(default_factory=list)

    def take(self, data: bytes) -> list[bytes]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        return lines


def run_real(number: int) -> Score:
    """Run a job and score what the detector says of it."""
    kind, factor, ranks, every = KINDS[number % len(KINDS)]
    faults = tuple(Fault(kind, factor, (rank,), FIRST, every=every) for rank in ranks)
    job = Job(
        f"real {number}", Layout(data=RANKS), steps=STEPS, faults=faults, family="real",
        magnitude=f"x{factor:g}",
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="live-real-") as room:
        return score(_played(job, kind, number, Path(room)))


def _played(job: Job, kind: str, number: int, room: Path) -> Played:
    path, told_file = room / "proxy" / "live.sock", room / "first"
    path.parent.mkdir(mode=0o700)
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port = tried.getsockname()[1]
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    path.chmod(0o600)
    server.listen(RANKS)
    guilty = [str(rank) for fault in job.faults for rank in fault.ranks]
    every, factor = (job.faults[0].every, job.faults[0].factor) if job.faults else (1, 1.0)
    command = [
        sys.executable,
        str(Path(__file__).parents[1] / "torch_live_job.py"),
        "--kind",
        kind,
        "--factor",
        str(factor),
    ]
    command += ["--first", str(FIRST), "--steps", str(STEPS), "--every", str(every), "--seed", str(number)]
    command += ["--told", str(told_file), "--ranks", *guilty]
    shared = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
        "WORLD_SIZE": str(RANKS),
        "STEPSCOPE_LIVE_DIR": str(room / "records"),
        "STEPSCOPE_LIVE_SOCKET": str(path),
    }
    processes = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(RANKS)
    ]
    played = Played(job)
    try:
        began_s = time.time()
        _watch(server, processes, played, began_s)
        first_s = float(told_file.read_text()) - began_s if told_file.exists() else 0.0
        played.ends_s = [first_s] * STEPS
    finally:
        for process in processes:
            process.kill()
            process.wait()
        server.close()
    return played


def _watch(server: socket.socket, processes: list[subprocess.Popen[bytes]], played: Played, began_s: float) -> None:
    """Feed a detector until the job has ended."""
    detector, clock = Detector(), time.process_time
    next_look, step = time.time() + LOOK_S, 0
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ, None)
        while any(process.poll() is None for process in processes) and time.time() < began_s + LIMIT_S:
            for key, _ in selector.select(max(0.0, next_look - time.time())):
                if key.data is None:
                    connection, _ = server.accept()
                    selector.register(connection, selectors.EVENT_READ, _Link())
                    continue
                connection = key.fileobj  # type: ignore[assignment]
                data = b""
                with suppress(OSError):
                    data = connection.recv(1 << 20)
                if not data:
                    selector.unregister(connection)
                    connection.close()
                for line in key.data.take(data):
                    message, start = from_worker(line), clock()
                    if isinstance(message, Hello):
                        detector.hello(message)
                    elif isinstance(message, Pulse):
                        detector.pulse(message, time.time_ns())
                    elif isinstance(message, Digests):
                        for digest in message.digests:
                            detector.digest(digest)
                            step = max(step, digest.step)
                        played.digests += len(message.digests)
                    played.cpu_s += clock() - start
            if time.time() >= next_look:
                start = clock()
                news = detector.look(time.time_ns())
                played.cpu_s += clock() - start
                played.told += [Told(verdict, time.time() - began_s, step) for verdict in news]
                next_look = time.time() + LOOK_S
