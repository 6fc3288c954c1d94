"""Measuring links between ranks over connections of their own."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stepscope.live.capture import links
from stepscope.live.capture.links import CannotMeasure, Links


class Store:
    """The store of a process group."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key].encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.values for key in keys)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    one = Store()
    monkeypatch.setattr(links, "_store", lambda _prefix, _ranks: (one, "127.0.0.1"))
    return one


@pytest.fixture
def three(store: Store) -> Iterator[list[Links]]:
    made = [Links("c", rank, [0, 3, 7]) for rank in (0, 3, 7)]
    yield made
    for one in made:
        one.close()


def together(work: list[Any]) -> list[Any]:
    """Results or errors of functions that run at the same time."""
    results: list[Any] = [None] * len(work)

    def run(number: int) -> None:
        try:
            results[number] = work[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return results


def connect(many: list[Links]) -> None:
    assert together([lambda one=one: one.connect(10.0, lambda: True) for one in many]) == [None] * len(many)


def test_all_pairs_are_measured_in_both_directions(three: list[Links]) -> None:
    connect(three)

    found = together([one.measure for one in three])

    for rank, times in zip((0, 3, 7), found, strict=True):
        peers = {0, 3, 7} - {rank}
        assert times.keys() == {f"link_{peer}_ns" for peer in peers} | {f"link_{peer}_latency_ns" for peer in peers}
        assert all(value > 0 for value in times.values())


def test_a_rank_that_gives_up_ends_the_measurement_of_the_others_at_once(three: list[Links]) -> None:
    connect(three)
    three[2].close()
    began = time.monotonic()

    found = together([three[0].measure, three[1].measure])

    assert all(isinstance(one, CannotMeasure) and "link to rank 7 failed" in str(one) for one in found)
    assert time.monotonic() - began < links.LIMIT_S


def test_a_rank_that_does_not_come_costs_a_bounded_time(three: list[Links], monkeypatch: pytest.MonkeyPatch) -> None:
    connect(three)
    monkeypatch.setattr(links, "LIMIT_S", 0.3)

    found = together([three[0].measure])

    assert "no answer" in str(found[0]) or "timed out" in str(found[0])


def test_a_rank_that_never_connects_is_named(three: list[Links]) -> None:
    errors = together([lambda one=one: one.connect(0.5, lambda: True) for one in three[:2]])

    assert all("rank 7 did not connect" in str(one) for one in errors)
    with pytest.raises(CannotMeasure, match="rank 7 was not ready"):
        three[0].measure()


def test_strangers_are_not_let_in(three: list[Links], store: Store) -> None:
    for one in three:
        together([lambda one=one: one.connect(0.0, lambda: True)])  # publishes where it listens
    address, port, token = store.values["3"].split()
    with socket.create_connection((address, int(port))) as stranger:
        stranger.sendall(links._HEAD.pack(bytes(16), 0))
        three[1]._accept()
        assert three[1]._sockets == {}
        stranger.settimeout(2)
        assert stranger.recv(1) == b""
    with socket.create_connection((address, int(port))) as no_rank:
        no_rank.sendall(links._HEAD.pack(bytes.fromhex(token), 5))
        three[1]._accept()
        assert three[1]._sockets == {}


@pytest.mark.parametrize("peers", [[], [0], list(range(20))])
def test_too_few_and_too_many_ranks_are_refused(peers: list[int]) -> None:
    with pytest.raises(CannotMeasure, match="takes 2 to 8 ranks"):
        Links("c", 0, peers)
