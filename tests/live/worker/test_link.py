"""The link of a worker to its proxy."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.live.messages import Apply, Digest, Digests, Pulse, Refused, line_of
from stepscope.live.peers import Peer
from stepscope.live.worker import link as link_module
from stepscope.live.worker.link import Link

Clock = list[float]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[socket.socket]:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(tmp_path / "proxy.sock"))
    made.listen(4)
    yield made
    made.close()


@pytest.fixture
def wake() -> Iterator[int]:
    reads, writes = os.pipe()
    yield reads
    os.close(reads)
    os.close(writes)


@pytest.fixture
def link(tmp_path: Path) -> Iterator[Link]:
    made = Link(tmp_path / "proxy.sock")
    yield made
    made.close()


def test_it_connects_at_most_once_a_second_and_again_after_a_proxy_returns(tmp_path: Path, wake: int) -> None:
    clock: Clock = [0.0]
    link = Link(tmp_path / "proxy.sock", lambda: clock[0])

    assert not link.connect()
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(link.path))
    server.listen()
    assert not link.connect()  # not yet
    clock[0] = 1.3
    assert link.connect() and link.is_up
    accepted, _ = server.accept()
    accepted.close()
    assert link.attend(1, wake) == [] and not link.is_up
    clock[0] = 3
    assert link.connect()
    link.close()
    server.close()


def test_messages_arrive_in_pieces_and_several_at_once(server: socket.socket, link: Link, wake: int) -> None:
    assert link.connect()
    accepted, _ = server.accept()
    lines = line_of(Apply(3, ["step"])) + line_of(Refused("why"))

    accepted.sendall(lines[:10])
    assert link.attend(1, wake) == []
    accepted.sendall(lines[10:])
    assert link.attend(1, wake) == [Apply(3, ["step"]), Refused("why")]
    accepted.close()


def test_what_is_no_message_ends_the_link(
    server: socket.socket, link: Link, wake: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert link.connect()
    accepted, _ = server.accept()

    accepted.sendall(b'{"type":"apply"}\n')

    assert link.attend(1, wake) == [] and not link.is_up
    assert "not a message" in caplog.text
    accepted.close()


def test_a_proxy_that_does_not_read_keeps_nobody_waiting(
    server: socket.socket, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "MOST_UNSENT", 100_000)
    assert link.connect()
    accepted, _ = server.accept()
    large = Digests([Digest(0, step, 1, 1) for step in range(500)])

    sent = [link.send(large) for _ in range(100)]

    assert sent[0] and not sent[-1] and not link.is_up
    accepted.close()


def test_what_does_not_fit_at_once_is_sent_when_the_proxy_reads(server: socket.socket, link: Link, wake: int) -> None:
    assert link.connect()
    accepted, _ = server.accept()
    several = [Digests([Digest(0, step, 1, 1) for step in range(2000)]) for _ in range(8)]
    expected = b"".join(map(line_of, several)) + line_of(Pulse(0, 1, 2))

    for message in several:
        assert link.send(message)
    assert link.send(Pulse(0, 1, 2))
    received = b""
    while len(received) < len(expected):
        received += accepted.recv(65_536)
        link.attend(0, wake)

    assert received == expected
    accepted.close()


@pytest.mark.usefixtures("server")
def test_a_proxy_of_another_user_is_not_talked_to(
    link: Link, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = os.getuid() + 1
    monkeypatch.setattr(link_module, "peer_of", lambda _socket: Peer(1, stranger))

    assert not link.connect()

    assert f"no link to the proxy (it belongs to user {stranger})" in caplog.text
