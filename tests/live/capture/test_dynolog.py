"""The daemon for processes that were started with KINETO_USE_DAEMON=1."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import struct
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.live.capture import dynolog
from stepscope.live.capture.dynolog import Ask, Daemon, NameTaken, order, written
from stepscope.live.capture.dynolog_wire import (
    HEAD,
    BadDatagram,
    Context,
    Poll,
    Profile,
    datagram,
    parsed,
)

NAME = b"\0stepscope-test-" + uuid.uuid4().hex.encode()


class Kineto:
    """A process that asks, as libkineto does."""

    def __init__(self, process: int, job: int = 0, ancestors: tuple[int, ...] = ()) -> None:
        self.process, self.job, self.ancestors = process, job, ancestors
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(b"")
        self.socket.setblocking(False)

    async def register(self) -> int:
        answer = await self._ask(datagram(b"ctxt", struct.pack("=iiq", 0, self.process, self.job)))
        return int(struct.unpack("=i", answer)[0])

    async def poll(self, kind: int = 3) -> str:
        processes = (self.process, *self.ancestors)
        content = struct.pack(f"=iiq{len(processes)}i", kind, len(processes), self.job, *processes)
        return (await self._ask(datagram(b"req", content))).decode()

    async def _ask(self, data: bytes) -> bytes:
        self.socket.sendto(data, NAME)
        answer = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(self.socket, 65_536), 2)
        return answer[HEAD.size :]


@pytest.fixture
def kinetos() -> Iterator[list[Kineto]]:
    many = [Kineto(100, job=1, ancestors=(7,)), Kineto(101, job=1, ancestors=(7,)), Kineto(102, job=2, ancestors=(8,))]
    yield many
    for one in many:
        one.socket.close()


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_a_request_is_given_out_once_to_the_processes_that_match(kinetos: list[Kineto]) -> None:
    async def work() -> None:
        async with Daemon(NAME) as daemon:
            assert [await one.register() for one in kinetos] == [1, 2, 3]
            assert [await one.poll() for one in kinetos] == ["", "", ""]
            outcome = daemon.request(Profile("/tmp/t.json", iterations=3, roundup=10), job=1)
            again = daemon.request(Profile("/tmp/u.json"), [7])
            assert (outcome.matched, outcome.triggered, outcome.busy) == ([100, 101], [100, 101], [])
            assert outcome.files == {"100": "/tmp/t_100.json", "101": "/tmp/t_101.json"}
            assert (again.triggered, again.busy) == ([], [100, 101])
            texts = [await one.poll() for one in kinetos]
            assert "ACTIVITIES_ITERATIONS=3" in texts[0] and "PROFILE_START_ITERATION_ROUNDUP=10" in texts[0]
            assert (texts[0], texts[2]) == (texts[1], "")
            assert await kinetos[0].poll() == ""

    run(work())


def test_a_poll_for_counters_takes_no_request_for_activities(kinetos: list[Kineto]) -> None:
    async def work() -> None:
        async with Daemon(NAME) as daemon:
            await kinetos[0].poll()
            daemon.request(Profile("/tmp/t.json"))
            assert await kinetos[0].poll(kind=1) == ""
            assert "ACTIVITIES_DURATION_MSECS=500" in await kinetos[0].poll()

    run(work())


def test_processes_that_stop_asking_are_dropped_and_their_number_is_bounded(
    kinetos: list[Kineto], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynolog, "MOST_KNOWN", 2)
    now = [0.0]

    async def work() -> None:
        async with Daemon(NAME, lambda: now[0]) as daemon:
            for one in kinetos:
                await one.poll()
            assert [one.process for one in daemon.processes()] == [100, 101]
            now[0] = 61.0
            assert daemon.processes() == []
            await kinetos[2].poll()
            assert [one.process for one in daemon.processes()] == [102]

    run(work())


def test_a_command_of_the_same_user_can_list_and_request(kinetos: list[Kineto]) -> None:
    async def work() -> None:
        async with Daemon(NAME):
            await kinetos[0].poll()
            listed = await order(Ask(), NAME)
            asked = await order(Ask("profile", [100], profile={"file": "/tmp/t.json"}), NAME)
            wrong = await order(Ask("profile", profile={"file": 3}), NAME)
            assert [row["process"] for row in listed["processes"]] == [100]
            assert asked["triggered"] == [100]
            assert "not a request" in wrong["error"]

    run(work())


def test_nobody_and_somebody_else_are_told_apart() -> None:
    async def work() -> None:
        with pytest.raises(StepscopeError, match="no daemon"):
            await order(Ask(), NAME)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.bind(NAME)
            with pytest.raises(StepscopeError, match="dyno gputrace"):
                await order(Ask(), NAME, patience_s=0.1)
            with pytest.raises(NameTaken):
                async with Daemon(NAME):
                    pass

    run(work())


def test_datagrams_of_other_users_are_dropped(kinetos: list[Kineto], monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with Daemon(NAME) as daemon:
            monkeypatch.setattr(os, "geteuid", lambda: 1_234_567)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(kinetos[0].poll(), 0.3)
            assert daemon.processes() == []

    run(work())


def test_malformed_datagrams_are_dropped_and_the_daemon_goes_on(kinetos: list[Kineto]) -> None:
    async def work() -> None:
        async with Daemon(NAME):
            for data in MALFORMED:
                kinetos[1].socket.sendto(data, NAME)
            assert await kinetos[0].poll() == ""

    run(work())


MALFORMED = [
    b"x",
    HEAD.pack(5, b"req"),
    datagram(b"req", b"\0"),
    datagram(b"req", struct.pack("=iiq", 3, 1_000_000, 0)),
    datagram(b"req", struct.pack("=iiq", 3, -1, 0)),
    datagram(b"req", struct.pack("=iiq", 3, 0, 0)),
    datagram(b"ctxt", b""),
    datagram(b"reboot", b"now"),
    datagram(b"stepscope", b"[" * 10_000),
    bytes(60_000),
]


@pytest.mark.parametrize("data", MALFORMED[:8] + MALFORMED[9:])
def test_what_is_no_datagram_is_refused(data: bytes) -> None:
    with pytest.raises(BadDatagram):
        parsed(data)


def test_datagrams_are_read_as_kineto_writes_them() -> None:
    assert parsed(datagram(b"ctxt", struct.pack("=iiq", 2, 77, -5))) == Context(2, 77, -5)
    assert parsed(datagram(b"req", struct.pack("=iiqii", 3, 2, 9, 77, 1))) == Poll(3, 9, (77, 1))


def test_traces_that_are_never_written_or_cut_off_are_told(tmp_path: Path) -> None:
    whole, cut, never = (str(tmp_path / name) for name in ("a.json", "b.json", "c.json"))
    Path(whole).write_text('{"traceEvents": []\n}\n')
    Path(cut).write_text('{"traceEvents": [')

    assert run(written([whole, cut, never], 0.7)) == ([whole], [cut, never])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_real_process_writes_a_trace(tmp_path: Path) -> None:
    script = (
        "import torch, time\nm = torch.nn.Linear(8, 8)\no = torch.optim.SGD(m.parameters(), 0.1)\n"
        "end = time.time() + 60"
        "\nwhile time.time() < end:\n    m(torch.ones(2, 8)).sum().backward(); o.step(); time.sleep(0.02)"
    )

    async def work(process: int) -> tuple[list[str], list[str]]:
        try:
            daemon = await Daemon().__aenter__()
        except NameTaken as error:
            pytest.skip(str(error))
        try:
            for _ in range(150):
                if any(one.process == process for one in daemon.processes()):
                    break
                await asyncio.sleep(0.2)
            file = str(tmp_path / "trace.json")
            outcome = daemon.request(Profile(file, iterations=3), [process])
            return await written(list(outcome.files.values()), 30)
        finally:
            await daemon.__aexit__()

    environment = {**os.environ, "KINETO_USE_DAEMON": "1"}
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stderr=subprocess.DEVNULL) as one:
        try:
            there, missing = run(work(one.pid))
        finally:
            one.kill()

    assert (there, missing) == ([str(tmp_path / f"trace_{one.pid}.json")], [])
    assert "aten::linear" in Path(there[0]).read_text()
