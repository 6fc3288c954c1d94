"""Short versions of the benchmarks of switching and faults."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")
sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))

from live_faults import faults
from live_ranges import Tally, Toggle, _Ran, _tally
from live_switch import real


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The benchmarks set variables."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def test_no_acknowledged_switch_is_lost_when_manager_proxy_and_worker_are_killed() -> None:
    with tempfile.TemporaryDirectory(prefix="faults-") as room:
        outcome = asyncio.run(faults(Path(room), kills=1, seed=1, simulated=True))

    assert outcome.wrong == []
    assert dict(outcome.kills) == {"manager": 1, "proxy": 1, "worker": 1}
    assert outcome.asked.acknowledged > 5


def test_what_training_processes_write_is_what_they_ran_while_it_was_switched_on() -> None:
    pytest.importorskip("torch")

    assert asyncio.run(real(torch=1, mindspore=0, rounds=1, dwell_s=0.1))


def test_missing_stray_and_unknown_ranges_are_told_from_those_in_flight() -> None:
    def ran(start: int) -> _Ran:
        return _Ran(start, start, start + 1_000_000, start + 1_000_000)

    second = 1_000_000_000
    toggles = [
        Toggle(frozenset({"fp"}), 10 * second, {0: 11 * second}),
        Toggle(frozenset(), 20 * second, {0: 21 * second}),
    ]
    starts = [n * second + second // 2 for n in (5, 10, 12, 14, 20, 25)]
    written = [(start + 10, start + 900_000) for start in (starts[2], starts[4], starts[5], 16 * second)]
    tally = Tally()

    _tally(tally, "fp", 0, [ran(start) for start in starts], written, toggles)

    assert tally == Tally(on=2, written=1, off=2, stray=1, in_flight=2, unknown=1)
    assert not tally.is_right
