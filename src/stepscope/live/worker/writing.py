"""Turns queued ranges into records and digests, in pieces so short that training does not notice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from os import getpid
from time import perf_counter_ns

from stepscope.live.messages import Digest
from stepscope.live.store import RecordStore
from stepscope.live.store.lines import call_name, host_range, timed_range
from stepscope.live.worker import on_times
from stepscope.live.worker.digesting import Digester, described
from stepscope.live.worker.tracker import Item, LiveTracker
from stepscope.record.marks import NativeThreads, epoch_shift_ns
from stepscope.recording_format import light
from stepscope.recording_format.marks import CHECKPOINT, COLLECTIVE, DATA, FORWARD, STEP, MarkKind

SLICE_NS = 150_000
"""After this time the thread rests: a thread that computes keeps others from running Python code for up to 5 ms."""
REST_S = 0.001
PATIENCE_NS = 500_000_000
"""How long to wait for the times of a range on the device; without them it is recorded with those of the host."""
_RANGES_AT_ONCE = 100
"""Ranges per write, some 50 kB: the most that a full disk can lose at once."""
_MOST_WAITING = 65_536
"""Characters from which lines are written at once."""
_NAMES: dict[MarkKind, str] = {FORWARD: light.FORWARD, DATA: light.DATALOADER, CHECKPOINT: light.SAVE_CHECKPOINT}


@dataclass(frozen=True)
class _OnDevice:
    """Times on the device, `time.perf_counter_ns`."""

    start_ns: int
    end_ns: int
    device: int
    stream: int


class Writing:
    """Everything between the queue of the tracker and disk and link. For one thread.

    Args:
        tracker: Has the queue.
        digester: Sums up steps.
        rest: Called between two pieces of work.
    """

    def __init__(self, tracker: LiveTracker, digester: Digester, rest: Callable[[], None]) -> None:
        self.digests: deque[Digest] = deque()
        """Of steps that have ended; taken by the caller."""
        self.ranges = 0
        """Recorded so far."""
        self.last_ns = 0
        """End of the last range (`time.perf_counter_ns`)."""
        self._tracker = tracker
        self._digester = digester
        self._rest = rest
        self._lines: list[str] = []
        self._size = 0
        self._pid = getpid()
        self._threads = NativeThreads()

    @property
    def is_full(self) -> bool:
        """Whether there is so much text that it should be written now."""
        return self._size > _MOST_WAITING

    def drain(self, *, at_once: bool = False) -> None:
        """Turn what is queued into lines and digests.

        Args:
            at_once: Wait for nothing, and do not rest: training is over.
        """
        queue = self._tracker.queue
        if not queue:
            return
        shift_ns = epoch_shift_ns()
        began_ns = perf_counter_ns()
        while queue:
            item = queue[0]
            timing = item[7]
            if timing is not None and not timing.has_passed():
                if not at_once and perf_counter_ns() - item[3] < PATIENCE_NS:
                    return
                timing = None
            queue.popleft()
            self._take(item, shift_ns, timing is not None)
            if not at_once and perf_counter_ns() - began_ns > SLICE_NS:
                self._rest()
                began_ns = perf_counter_ns()

    def flush(self, store: RecordStore, *, at_once: bool = False) -> None:
        """Write the lines to disk.

        Args:
            at_once: Do not rest between two pieces: training is over.
        """
        lines, self._lines, self._size = self._lines, [], 0
        for first in range(0, len(lines), _RANGES_AT_ONCE):
            store.write("".join(lines[first : first + _RANGES_AT_ONCE]))
            if not at_once:
                self._rest()

    def _take(self, item: Item, shift_ns: int, has_passed: bool) -> None:
        kind, operation, start_ns, end_ns, number, thread, detail, timing = item
        self.last_ns = end_ns
        device = self._tracker.device
        times = None
        if has_passed and device is not None and timing is not None:
            read = device.read(timing, end_ns, is_step=kind == STEP)
            if read is not None and not (kind == COLLECTIVE and described(detail).is_async):
                times = _OnDevice(*read, timing.device, timing.stream)
        device_ns = None if times is None else times.end_ns - times.start_ns
        domain = light.DEFAULT_DOMAIN
        if kind == STEP:
            whole = self._tracker.whole(start_ns, end_ns)
            self.digests.append(self._digester.step(item, whole, shift_ns, device_ns))
            if not on_times.was_on(self._tracker.times.get(STEP, on_times.NEVER), start_ns):
                return
            name = f"{light.STEP_PREFIX}{number}"
        else:
            self._digester.add(item, device_ns)
            if kind == COLLECTIVE:
                domain = light.COMMUNICATION_DOMAIN
                name = call_name(operation, detail, 0 if times is None else times.stream)
            elif kind in _NAMES:
                name = _NAMES[kind]
            else:
                return
        self.ranges += 1
        host = (self.ranges, name, domain, start_ns + shift_ns, end_ns + shift_ns, self._pid, self._threads[thread])
        if times is None:
            line = host_range(*host)
        else:
            starts, ends = times.start_ns + shift_ns, times.end_ns + shift_ns
            line = timed_range(*host, starts, ends, times.device, times.stream)
        self._lines.append(line)
        self._size += len(line)
