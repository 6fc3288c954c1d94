"""What a proxy accepts on its links: workers, and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from control_rig import Rig, run_rig, until

from stepscope.errors import StepscopeError
from stepscope.live import peers
from stepscope.live.control import link
from stepscope.live.control.bounds import Bounds
from stepscope.live.control.node_service import StreamConnection
from stepscope.live.control.outbox import Outbox
from stepscope.live.control.sockets import PrivateSocket
from stepscope.live.messages import Digest, Digests, Hello, Pulse, Refused, line_of, to_worker
from stepscope.live.peers import Peer

HELLO = Hello("job", 0, 1, "host", 1)


async def said_to(rig: Rig, *lines: bytes) -> str:
    """Send lines over a link of its own; returns the reason for which it is refused."""
    reader, writer = await asyncio.open_unix_connection(str(rig.socket()))
    try:
        for line in lines:
            writer.write(line)
        answer = await asyncio.wait_for(reader.readline(), 20)
        with suppress(ConnectionResetError):  # closed before all was read
            assert await reader.read() == b""
    finally:
        writer.close()
    message = to_worker(answer)
    assert isinstance(message, Refused)
    return message.reason


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((b"GET / HTTP/1.1\r\n\r\n",), "not a message of a live worker"),
        ((b"\x00\xff\xfe\n",), "not a message of a live worker"),
        ((line_of(Pulse(0, 1, 0)),), "the first message must be hello"),
        ((line_of(Hello("j" * 1_000_000, 0, 1, "h", 1)),), "a name has 1,000,000 characters"),
        ((line_of(Hello("", 0, 1, "h", 1)),), "names no job"),
        ((line_of(Hello("job", -1, 1, "h", 1)),), "-1 is not a rank"),
        ((line_of(HELLO), b'{"type": "verdict"}\n'), "not a message of a live worker"),
        ((b"x" * 9_000_000,), "a line has more than"),
        ((b'{"type":"hello","x":' + b"[" * 200_000 + b"\n",), "recursion depth"),
        ((line_of(Hello("job", 0, 1, "h", 1, revision=2**62)),), "`$.revision`"),
        ((line_of(Hello("job", 0, 1, "h", 1, revision=-1)),), "`$.revision`"),
        (
            (b'{"type":"hello","job":"job","rank":0,"pid":1,"host":"h","started_at_ns":%d}\n' % (2**63),),
            "started_at_ns",
        ),
    ],
)
def test_what_is_no_worker_is_refused_with_a_reason(
    lines: tuple[bytes, ...], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_node()
        assert reason in await said_to(rig, *lines)

    run_rig(scenario, monkeypatch)


def test_what_a_worker_says_about_another_rank_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        heard: list[object] = []
        rig.manager.listen(heard.append)
        _, writer = await asyncio.open_unix_connection(str(rig.socket()))
        mixed = Digests([Digest(5, 1, 1, 1), Digest(0, 2, 1, 1)])
        for message in (HELLO, Pulse(5, 1, 0), mixed, Pulse(0, 2, 0)):
            writer.write(line_of(message))
        await until(lambda: any(isinstance(one, Pulse) for one in heard))
        await until(lambda: any(isinstance(one, Digest) for one in heard))
        writer.close()

        assert {one.rank for one in heard if isinstance(one, (Digest, Pulse))} == {0}
        assert rig.manager.counts["lost_digests"] == 1

    run_rig(scenario, monkeypatch)


def test_a_proxy_that_stops_ends_its_links_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(rig: Rig) -> None:
        proxy = await rig.start_node()
        reader, writer = await asyncio.open_unix_connection(str(rig.socket()))
        writer.write(line_of(HELLO))
        await until(lambda: bool(proxy.workers))

        await rig.stop_node()

        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

    run_rig(scenario, monkeypatch)
    assert "Exception" not in caplog.text and "Traceback" not in caplog.text


def test_one_who_says_nothing_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_node()
        assert "no hello came within 0.2 s" in await said_to(rig)

    run_rig(scenario, monkeypatch, Bounds(hello_within_s=0.2))


def test_the_number_of_links_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        proxy = await rig.start_node()
        for rank in range(2):
            rig.start_worker(rank)
        await until(lambda: len(proxy.workers) == 2)
        assert await said_to(rig) == "this node has 2 links already"

    run_rig(scenario, monkeypatch, Bounds(most_workers=2))


def test_a_process_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_node()
        assert await said_to(rig) == "this proxy serves another user"

    monkeypatch.setattr(link, "peer_of", lambda _socket: Peer(1, os.getuid() + 1))
    run_rig(scenario, monkeypatch)


def test_a_flood_slows_its_sender_down_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        proxy = await rig.start_node()
        rig.start_worker(1)
        await rig.ranks(1)
        _, writer = await asyncio.open_unix_connection(str(rig.socket()))
        writer.write(line_of(HELLO))

        async def flood() -> None:
            while True:
                writer.write(line_of(Digests([Digest(0, 1, 1, 1)])) * 1000)
                await writer.drain()

        flooding = asyncio.create_task(flood())
        await rig.ranks(0)
        before = rig.manager.counts["lines"]
        began = time.monotonic()
        async with rig.client() as client:
            for state in ("on", "off") * 5:
                switched = await client.switch({"step": state}, wait_s=0)
                await until(lambda wanted=switched.revision: rig.workers[1].revision == wanted, 5)  # type: ignore[misc]
        await asyncio.sleep(max(0.0, 1 - (time.monotonic() - began)))
        took_s = time.monotonic() - began
        flooding.cancel()
        writer.close()

        assert rig.manager.counts["lines"] - before < 200 * (took_s + 4) + 100
        assert proxy.status().lost == 0

    run_rig(scenario, monkeypatch, Bounds(lines_a_second=200, retry_s=0.1))


def test_a_second_proxy_on_the_same_socket_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_node()
        with pytest.raises(StepscopeError, match="another manager or proxy of this user serves this node"):
            await rig.start_node()
        rig.nodes.popitem()

    run_rig(scenario, monkeypatch)


def test_a_socket_is_not_made_where_others_can_write(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)

    with pytest.raises(StepscopeError, match="must be a directory of this user that no one else can write to"):
        PrivateSocket(tmp_path / "open" / "s").claim()
    with pytest.raises(StepscopeError, match="too long for a Unix socket"):
        PrivateSocket(tmp_path / ("x" * 100)).claim()


def test_a_socket_that_a_killed_process_left_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        place = PrivateSocket(rig.room / "s" / "live.sock")
        place.claim()
        place.listening().close()
        place._lock.close()
        assert place.path.exists()

        again = PrivateSocket(place.path)
        again.claim()
        again.listening().close()
        again.release()

    run_rig(scenario, monkeypatch)


def test_friends_are_this_user_and_root() -> None:
    assert peers.is_friend(Peer(1, os.getuid())) and peers.is_friend(Peer(1, 0)) and peers.is_friend(None)
    assert not peers.is_friend(Peer(1, os.getuid() + 1))


def test_a_worker_over_grpc_takes_part_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.live.control.security import Security
    from stepscope.live.control.wire import messages, services

    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        rig.start_worker(1)
        await rig.ranks(1)
        async with Security().channel(f"127.0.0.1:{rig.nodes['a'].port}") as channel:
            stub = services().ProxyStub(channel)

            def registered(rank: int) -> Any:
                line = line_of(Hello("job", rank, 1, "host", time.time_ns())).rstrip()
                return stub.Worker(iter([messages().Line(line=line)]))

            worker = stub.Worker()
            await worker.write(messages().Line(line=line_of(HELLO).rstrip()))
            await rig.ranks(0)
            async with rig.client() as client:
                await client.switch({"step": "off"})
            assert json.loads((await worker.read()).line)["type"] == "apply"
            answer = [to_worker(one.line) async for one in registered(1)]
            status = json.loads((await stub.Status(messages().StatusRequest())).status)
            worker.cancel()

        assert isinstance(answer[0], Refused) and "through the Unix socket" in answer[0].reason
        assert [one["rank"] for one in status["workers"]] == [0, 1]

    run_rig(scenario, monkeypatch)


def test_of_a_worker_over_grpc_no_process_is_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def take_stacks(pid: int) -> str:
        asked.append(pid)
        return "secret"

    async def scenario(rig: Rig) -> None:
        manager = await rig.start_manager("job")
        proxy = await rig.start_node(take_stacks=take_stacks)
        connection = StreamConnection()
        proxy.joined(connection, HELLO)
        await rig.ranks(0)

        ((text, error),) = (await manager.stacks([0])).values()

        assert not text and "cannot be seen" in error and not asked

    run_rig(scenario, monkeypatch)


def test_of_what_waits_for_the_manager_the_oldest_digests_are_dropped_and_counted() -> None:
    async def run() -> None:
        outbox = Outbox(Bounds(waiting_bytes=250))
        outbox.hello(0, b"h1")
        outbox.hello(0, b"h2")
        outbox.pulse(0, b"p")
        for number in range(5):
            outbox.digests(0, b"%d" % number * 100)

        batch = await outbox.take()

        assert batch.lines == [(0, b"h2"), (0, b"p")]
        assert [line[:1] for _, line in batch.digests] == [b"3", b"4"]
        assert (batch.lost, outbox.lost) == (3, 3)

        outbox.put_back(batch)
        again = await outbox.take()
        assert (again.digests, again.lost, again.lines) == (batch.digests, 3, [])

    asyncio.run(run())
