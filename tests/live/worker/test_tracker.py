"""What the tracker queues of what hooks report, without a framework."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.live.kinds import Kind
from stepscope.live.worker import tracker as tracker_module
from stepscope.live.worker.device_times import DeviceTimes
from stepscope.live.worker.digesting import Digester
from stepscope.live.worker.on_times import ALWAYS, marks_of, switched, was_on, was_on_throughout
from stepscope.live.worker.tracker import LiveTracker
from stepscope.live.worker.work import elements
from stepscope.recording_format.marks import (
    BACKWARD,
    CHECKPOINT,
    COLLECTIVE,
    DATA,
    FORWARD,
    GARBAGE,
    OPTIMIZER,
    STEP,
    MarkKind,
    collective_text,
)

CALL = collective_text('"0"', 4, 4096, "float32", None, is_async=False)


def made(*kinds: Kind, at_ns: int = 0, **how: Any) -> LiveTracker:
    """A tracker with these kinds on."""
    tracker = LiveTracker(lambda: None, **how)
    tracker.switch(marks_of(kinds or Kind), at_ns)
    return tracker


def ran(tracker: LiveTracker, kind: MarkKind, start_ns: int, end_ns: int, name: str = "", detail: str = "") -> None:
    tracker.activity(start_ns, kind)
    tracker.mark(kind, name, start_ns, end_ns, detail)


def queued(tracker: LiveTracker) -> list[tuple[str, int, int, int]]:
    """Kind, start, end and step of all that is queued."""
    return [(kind, start, end, step) for kind, _, start, end, step, *_ in tracker.queue]


def test_the_first_step_begins_with_training_and_each_next_one_with_the_end_of_the_last() -> None:
    tracker = made()

    ran(tracker, COLLECTIVE, 5, 8)  # sets the job up
    ran(tracker, DATA, 10, 20)
    ran(tracker, FORWARD, 30, 50)
    tracker.ended(60)
    ran(tracker, DATA, 65, 70)
    tracker.ended(90)

    assert queued(tracker) == [
        ("collective", 5, 8, 0),
        ("data", 10, 20, 1),
        ("forward", 30, 50, 1),
        ("step", 10, 60, 1),
        ("data", 65, 70, 2),
        ("step", 60, 90, 2),
    ]


def test_hooks_tell_what_begins_until_training_has_begun_or_while_a_device_is_timed() -> None:
    tracker = made()
    assert tracker.awaits_activity
    ran(tracker, COLLECTIVE, 5, 8)
    assert tracker.awaits_activity
    ran(tracker, DATA, 10, 20)
    assert not tracker.awaits_activity
    assert not made(joins=True).awaits_activity

    tracker.time_device(DeviceTimes(None, 0))

    assert tracker.awaits_activity


def test_short_steps_get_the_mean_wait_for_a_processor_since_the_last_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker, readings = made(), iter(((7, 100), (7, 160), (7, 1160), (7, 5000), (7, 5050)))
    monkeypatch.setattr(tracker._waits, "read", lambda: next(readings))

    tracker.activity(0, DATA)
    ends = [0.4, 0.8, 1.2, 1.6, 3.0]  # in WAITS_NS; read at the start, at the ends of steps 3 and 5
    for end in ends:
        tracker.ended(round(end * tracker_module.WAITS_NS))
    assert [item[6][0] for item in tracker.queue] == [None, None, 20, 20, 500]

    tracker.switch(frozenset())
    tracker.ended(round(4 * tracker_module.WAITS_NS))  # in this one, all was on at first
    tracker.ended(round(5 * tracker_module.WAITS_NS))
    tracker.switch(marks_of(Kind))
    tracker.ended(round(6 * tracker_module.WAITS_NS))
    assert [item[6][0] for item in tracker.queue][5:] == [3840, None]


def test_a_range_counts_if_its_kind_was_on_when_it_began() -> None:
    tracker = made(Kind.FORWARD, at_ns=100)

    ran(tracker, FORWARD, 90, 110)
    ran(tracker, FORWARD, 100, 120)
    ran(tracker, DATA, 130, 140)
    tracker.switch(marks_of([Kind.DATA]), 150)
    ran(tracker, FORWARD, 149, 160)
    ran(tracker, FORWARD, 150, 160)
    ran(tracker, DATA, 150, 170)
    tracker.switch(frozenset(), 180)
    tracker.switch(marks_of([Kind.DATA]), 190)
    ran(tracker, DATA, 179, 191)
    ran(tracker, DATA, 180, 191)

    assert [(kind, start) for kind, start, _, _ in queued(tracker)] == [
        ("forward", 100),
        ("forward", 149),
        ("data", 150),
        ("data", 179),
    ]


def test_hooks_are_asked_for_all_signs_of_training_until_it_begins_and_then_for_what_is_on() -> None:
    tracker = made(Kind.CHECKPOINT)
    before = tracker.wanted

    tracker.activity(10, FORWARD)
    after = tracker.wanted
    tracker.switch(marks_of([Kind.STEP]))

    assert {DATA, FORWARD, BACKWARD, OPTIMIZER, COLLECTIVE} <= before
    assert after == {CHECKPOINT}
    assert tracker.wanted == {STEP, BACKWARD, OPTIMIZER, GARBAGE}


def test_the_step_in_which_a_worker_joins_is_not_recorded() -> None:
    tracker = made(joins=True)

    ran(tracker, OPTIMIZER, 10, 20)
    tracker.ended(20)
    tracker.ended(30)

    assert [entry for entry in queued(tracker) if entry[0] == "step"] == [("step", 20, 30, 2)]


def test_with_all_off_steps_are_counted_and_nothing_is_queued() -> None:
    tracker = LiveTracker(lambda: None)
    tracker.switch(frozenset())

    for end in (10, 20, 30):
        tracker.activity(end - 5, DATA)
        tracker.ended(end)

    assert (tracker.number, tracker.wanted, queued(tracker)) == (3, frozenset(), [("step", 5, 10, 1)])


def test_steps_of_the_user_replace_those_of_the_hooks() -> None:
    tracker = made()
    tracker.activity(10, FORWARD)
    tracker.ended(20)

    tracker.user_step()
    tracker.ended(40)
    tracker.user_step()

    assert tracker.number == 2


def test_ranges_that_find_the_queue_full_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracker_module, "MOST_QUEUED", 2)
    tracker = made()

    for start in (10, 20, 30):
        ran(tracker, FORWARD, start, start + 5)
    tracker.ended(40)

    assert (len(tracker.queue), tracker.dropped) == (2, 2)


def test_what_runs_after_a_step_and_fails_is_left_out_and_training_goes_on() -> None:
    tracker, said = made(), []

    def fails(number: int, now_ns: int) -> None:
        raise ValueError

    tracker.after_step += [fails, lambda number, now_ns: said.append((number, now_ns))]
    tracker.ended(10)
    tracker.ended(20)

    assert said == [(1, 10), (2, 20)]


def test_what_leaves_by_itself_and_then_fails_is_left_out_as_well() -> None:
    tracker, calls = made(), list[int]()

    def once(number: int, now_ns: int) -> None:
        tracker.after_step.remove(once)
        calls.append(number)
        raise ValueError

    tracker.after_step.append(once)
    tracker.ended(10)
    tracker.ended(20)

    assert calls == [1]


def test_a_digest_sums_the_ranges_of_its_step_and_leaves_out_kinds_that_were_off() -> None:
    tracker = made(at_ns=0)
    for kind, start, end in ((DATA, 10, 20), (FORWARD, 20, 50), (FORWARD, 50, 70), (OPTIMIZER, 90, 95)):
        ran(tracker, kind, start, end)
    for time_ns in (7, 3):
        ran(tracker, COLLECTIVE, 70, 70 + time_ns, "all_reduce", CALL)
    tracker.collected(2, 80, 82)
    tracker.ended(100)
    tracker.switch(marks_of([Kind.STEP, Kind.FORWARD]), 130)
    ran(tracker, DATA, 110, 120)
    tracker.ended(200)
    digester = Digester(3)

    first, second = digests(digester, tracker)

    assert (first.rank, first.step, first.step_ns, first.end_at_ns) == (3, 1, 90, 1100)
    assert (first.data_ns, first.forward_ns, first.optimizer_ns, first.checkpoint_ns) == (10, 50, 5, 0)
    assert (first.communication_ns, first.garbage_ns, first.backward_ns) == (10, 2, None)
    (calls,) = first.calls
    assert (calls.operation, calls.group, calls.count, calls.time_ns, calls.shortest_ns) == (
        "all_reduce",
        "0",
        2,
        10,
        3,
    )
    assert (calls.size_bytes, calls.device_ns, calls.launched) == (8192, None, False)
    assert (second.step_ns, second.data_ns, second.communication_ns, second.garbage_ns) == (100, None, None, 0)
    assert digester.ended == {"0": 2}


def test_calls_in_groups_of_a_device_only_launch() -> None:
    tracker, digester = made(), Digester(0)
    digester.device_groups = frozenset(["0"])
    tracker.activity(1, FORWARD)
    ran(tracker, COLLECTIVE, 10, 12, "all_reduce", CALL)
    tracker.ended(20)

    (digest,) = digests(digester, tracker)

    assert digest.calls[0].launched


class Reducer:
    """One that exchanges gradients in some passes only, as with `no_sync`."""

    detail = CALL

    def __init__(self) -> None:
        self.exchanging = False

    def exchanges(self) -> bool:
        return self.exchanging


def test_the_own_part_of_backward_passes_leaves_out_waits_for_gradients_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tracker, reducer, clock = made(), Reducer(), iter([13, 19])
    tracker._reducer = reducer  # type: ignore[assignment]
    monkeypatch.setattr(tracker_module, "perf_counter_ns", lambda: next(clock))
    computed: list[Any] = []
    monkeypatch.setattr(tracker_module.reducers, "watch", lambda loss, call: computed.append(call) or (lambda: None))
    tracker.activity(0, FORWARD)

    assert tracker.backward_begins(None) is None  # accumulates gradients only
    ran(tracker, BACKWARD, 2, 6)
    reducer.exchanging = True
    over = tracker.backward_begins(None)
    computed[0]()
    assert over is not None
    over()
    ran(tracker, BACKWARD, 10, 20)
    tracker.ended(30)

    (digest,) = digests(Digester(0), tracker)
    assert (digest.backward_ns, digest.backward_own_ns, digest.communication_ns) == (14, 4 + 3, 6)


def test_times_of_kinds() -> None:
    on = frozenset([FORWARD])
    times = switched(switched(switched({}, on, 10), frozenset(), 20), on, 30)[FORWARD]

    assert times[:2] == ((30, ALWAYS), (10, 20))
    assert [was_on(times, at) for at in (9, 10, 19, 20, 29, 30)] == [False, True, True, False, False, True]
    assert was_on_throughout(times, 12, 20) and not was_on_throughout(times, 12, 31)


class Tensor:
    """What is counted of a tensor."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


def test_work_is_the_number_of_elements_of_inputs() -> None:
    assert elements((Tensor(2, 3), 5), {"x": Tensor(4), "more": [Tensor(10), "text"], "y": {"z": Tensor(7, 2)}}) == 34


def digests(digester: Digester, tracker: LiveTracker) -> list[Any]:
    """All that is queued, in digests; the epoch was 1000 ns before the clock began."""
    found = []
    for item in tracker.queue:
        kind, _, start_ns, end_ns = item[:4]
        if kind == STEP:
            found.append(digester.step(item, tracker.whole(start_ns, end_ns), 1000, None))
        else:
            digester.add(item, None)
    return found


def test_sizes_that_are_no_numbers_while_a_program_is_traced_are_not_asked_for() -> None:
    class Symbol:
        def __mul__(self, other: Any) -> Symbol:
            return self

        __rmul__ = __mul__

        def __int__(self) -> int:
            raise AssertionError("asked for")

    class Traced:
        shape = (Symbol(), 4)

    class Plain:
        shape = (2, 3)

    assert elements((Traced(), [Traced(), Plain()]), {}) == 6


def test_work_is_counted_on_after_passes_in_which_it_could_not_be() -> None:
    class Proxy:
        @property
        def shape(self) -> Any:
            raise ValueError("is only traced")

    class Plain:
        shape = (2, 3)

    tracker = made()
    for _ in range(3):
        tracker.passes(Plain, (Proxy(),), {})
    tracker.passes(Plain, (Plain(),), {})
    ran(tracker, FORWARD, 10, 20)
    tracker.ended(30)

    (*_, step) = tracker.queue
    assert step[6][1] == 6


def test_work_that_can_never_be_counted_is_given_up_with_one_message(caplog: pytest.LogCaptureFixture) -> None:
    class Plain:
        shape = ("a", "b")

    tracker = made()
    for _ in range(100):
        tracker.passes(Plain, (Plain(),), {})

    assert caplog.text.count("no longer counted") == 1
