"""Times on a device by events, with a stand-in for `torch.cuda`: no device is at hand."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.live.kinds import Kind
from stepscope.live.worker import writing
from stepscope.live.worker.device_times import DeviceTimes, device_times
from stepscope.live.worker.digesting import Digester
from stepscope.live.worker.on_times import marks_of
from stepscope.live.worker.tracker import LiveTracker
from stepscope.live.worker.writing import Writing
from stepscope.recording_format.marks import COLLECTIVE, DATA, FORWARD, MarkKind


class Cuda:
    """A device whose clock began `AHEAD_NS` before the host's; events pass some time after they were recorded."""

    AHEAD_NS = 5_000_000_000

    def __init__(self) -> None:
        self.now_ns = 0
        self.delay_ns = 10_000
        self.capturing = False
        self.initialized = False
        self.made = 0
        outer = self

        class Event:
            def __init__(self, enable_timing: bool) -> None:
                assert enable_timing
                outer.made += 1

            def record(self) -> None:
                assert not outer.capturing
                self.passes_ns = outer.now_ns + outer.delay_ns

            def query(self) -> bool:
                return outer.now_ns >= self.passes_ns

            def elapsed_time(self, other: Any) -> float:
                return (other.passes_ns - self.passes_ns) / 1e6

        self.Event = Event

    def is_initialized(self) -> bool:
        return self.initialized

    def is_current_stream_capturing(self) -> bool:
        return self.capturing

    def current_device(self) -> int:
        return 1

    def current_stream(self) -> Any:
        return type("Stream", (), {"stream_id": 7})()


class Training:
    """A tracker on the device, and a clock of the host that both share."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cuda = Cuda()
        self.tracker = LiveTracker(lambda: None)
        self.tracker.time_device(DeviceTimes(self.cuda, 1))
        self.tracker.switch(marks_of(Kind), 0)
        self.writing = Writing(self.tracker, Digester(0), lambda: None)
        monkeypatch.setattr(writing, "epoch_shift_ns", lambda: 0)
        monkeypatch.setattr(writing, "perf_counter_ns", lambda: self.cuda.now_ns)
        self.lines: list[str] = []

    def run(self, kind: MarkKind, for_ns: int, name: str = "", detail: str = "") -> None:
        start_ns = self.cuda.now_ns
        self.tracker.activity(start_ns, kind)
        self.cuda.now_ns += for_ns
        self.tracker.mark(kind, name, start_ns, self.cuda.now_ns, detail)

    def step(self) -> None:
        self.run(DATA, 1_000)
        self.run(FORWARD, 100_000)
        self.run(COLLECTIVE, 20_000, "all_reduce", '{"group": "0"}')
        self.cuda.now_ns += 50_000
        self.tracker.ended(self.cuda.now_ns)

    def drained(self) -> list[str]:
        self.writing.drain()
        found = list(self.writing._lines)
        self.writing._lines.clear()
        return found


@pytest.fixture
def training(monkeypatch: pytest.MonkeyPatch) -> Training:
    return Training(monkeypatch)


def test_a_device_that_is_not_in_use_is_left_alone() -> None:
    cuda = Cuda()

    assert device_times(cuda) is None
    cuda.initialized = True
    assert device_times(cuda) is not None
    assert cuda.made == 0


def test_steps_forward_passes_and_calls_have_times_on_the_device(training: Training) -> None:
    training.step()
    training.cuda.delay_ns = 2_010_000  # the device falls behind
    training.step()
    assert len(training.drained()) == 5  # the forward pass of the second step has not passed yet
    assert [digest.step for digest in training.writing.digests] == [1]
    training.cuda.now_ns += 3_000_000

    lines = training.drained()

    assert [line.count("\n") for line in lines] == [4, 4, 4]
    second = training.writing.digests[-1]
    assert (second.step, second.step_ns, second.forward_ns) == (2, 171_000, 100_000)
    assert second.device_step_ns == 171_000 + 2_000_000
    assert second.device_forward_ns == 100_000
    assert second.calls[0].device_ns == 20_000
    assert '"DeviceId":1,"StreamId":7' in lines[-1]


def test_times_on_the_device_are_mapped_to_the_clock_of_the_host(training: Training) -> None:
    training.step()
    training.cuda.now_ns += 1_000_000
    device = training.tracker.device
    assert device is not None
    item = next(item for item in training.tracker.queue if item[0] == FORWARD)
    assert item[7] is not None

    read = device.read(item[7], item[3], is_step=False)

    # the smallest launch delay seen counts as none
    assert read == (item[3] - 100_000, item[3])


def test_a_call_that_only_launches_has_no_times_on_the_device(training: Training) -> None:
    training.step()
    training.run(COLLECTIVE, 1_000, "all_reduce", '{"group": "0", "async": true}')
    training.cuda.now_ns += 1_000_000

    assert [line.count("\n") for line in training.drained()][-1] == 2


def test_events_are_used_again(training: Training) -> None:
    for _ in range(200):
        training.step()
        training.cuda.now_ns += 100_000
        training.drained()

    assert training.cuda.made < 15
    assert len(training.writing.digests) == 200
    assert {digest.device_forward_ns for digest in training.writing.digests} == {100_000}


def test_nothing_is_recorded_while_a_graph_is_captured(training: Training) -> None:
    training.cuda.capturing = True
    training.step()
    training.cuda.capturing = False
    training.step()
    training.step()
    training.cuda.now_ns += 1_000_000

    training.drained()

    assert [digest.device_forward_ns for digest in training.writing.digests] == [None, 100_000, 100_000]
    assert [digest.device_step_ns for digest in training.writing.digests] == [None, None, 171_000]


def test_a_device_that_hangs_delays_records_only_for_a_while(training: Training) -> None:
    training.step()
    training.cuda.delay_ns = 10**15
    training.step()

    assert len(training.drained()) == 5
    training.cuda.now_ns += writing.PATIENCE_NS
    lines = training.drained()

    assert [line.count("\n") for line in lines] == [2, 2, 2]
    assert training.writing.digests[-1].device_step_ns is None


def test_an_error_of_the_device_ends_timing_and_nothing_else(training: Training) -> None:
    def fails() -> int:
        raise RuntimeError("no device")

    training.cuda.current_device = fails  # type: ignore[method-assign]
    training.step()
    training.step()

    assert all(line.count("\n") == 2 for line in training.drained())
    assert [digest.device_step_ns for digest in training.writing.digests] == [None, None]
