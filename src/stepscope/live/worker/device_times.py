"""Times on the device, by events on its streams, without waiting for it.

The training thread records an event at the start and the end of a range; another thread later asks whether both have
passed, and how far apart they are. Events know only differences, as a float of milliseconds: exact to 60 ns over one
second. So times are counted from a recent event, and mapped to the host's clock by the smallest launch delay seen: an
event never passes before it was recorded.
"""

from __future__ import annotations

import ctypes
import logging
from collections import deque
from contextlib import suppress
from pathlib import Path
from threading import get_ident
from typing import Any

from stepscope.recording_format.marks import COLLECTIVE, FORWARD, MarkKind

log = logging.getLogger("stepscope")

TIMED = frozenset((FORWARD, COLLECTIVE))
"""Kinds that are timed on the device, besides steps."""
ANCHOR_NS = 500_000_000
"""Times are counted from an event that is at most about this old."""
MAPPING_NS = 30_000_000_000
"""The smallest launch delay is searched among the events of one to two such periods, as clocks drift apart."""
_POOLED = 4096
_RELAXED = 2
"""`cudaStreamCaptureModeRelaxed`"""
_EXCHANGES = {"libcudart": "cudaThreadExchangeStreamCaptureMode", "libamdhip64": "hipThreadExchangeStreamCaptureMode"}


class Timing:
    """A range between two events on one device."""

    __slots__ = ("device", "end", "start", "stream")

    def __init__(self, start: Any, end: Any, device: int, stream: int) -> None:
        self.start = start
        self.end = end
        self.device = device
        self.stream = stream

    def has_passed(self) -> bool:
        """Whether the device is done with the range."""
        return bool(self.end.query())


class DeviceTimes:
    """Records events, and turns them into times. `read` is for one thread, all else for the training threads.

    Args:
        module: `torch.cuda`, or `torch.npu`, which has the same functions.
        device: Index of the device whose ranges are timed; others are not.
    """

    def __init__(self, module: Any, device: int) -> None:
        self._module = module
        self._device = device
        self._is_capturing = getattr(module, "is_current_stream_capturing", bool)
        self._pool: deque[Any] = deque(maxlen=_POOLED)
        self._begun: dict[tuple[MarkKind, int], Any] = {}
        self._step_began: Any = None
        self._failed = False
        self._anchor: Any = None
        self._anchor_ns = 0
        self._shift_ns: int | None = None
        self._earlier_ns: int | None = None
        self._since_ns = 0

    def begins(self, kind: MarkKind | None) -> None:
        """A range of this kind begins on this thread."""
        if kind in TIMED:
            self._begun[kind, get_ident()] = self.event()

    def ends(self, kind: MarkKind) -> Timing | None:
        """The range of this kind that began last on this thread ends; None if it cannot be timed."""
        return self.timing(self._begun.pop((kind, get_ident()), None)) if kind in TIMED else None

    def step(self) -> Timing | None:
        """A step ends, and the next one begins."""
        timing = self.timing(self._step_began)
        self._step_began = self.event() if timing is None else timing.end
        return timing

    def timing(self, start: Any) -> Timing | None:
        """From an event until now; None without one."""
        if start is None:
            return None
        end = self.event()
        if end is None:
            return None
        stream = int(getattr(self._module.current_stream(), "stream_id", 0))
        return Timing(start, end, self._device, stream)

    def event(self) -> Any:
        """An event that is recorded now on the current stream; None where that is impossible."""
        if self._failed:
            return None
        try:
            if self._is_capturing() or self._module.current_device() != self._device:
                return None
            event = self._pool.popleft() if self._pool else self._module.Event(enable_timing=True)
            event.record()
        except Exception as error:
            self._failed = True
            log.warning("live: no more times on the device (%s: %s)", type(error).__name__, error)
            return None
        return event

    def read(self, timing: Timing, end_ns: int, *, is_step: bool) -> tuple[int, int] | None:
        """Start and end of a range that has passed, on the clock of the host (`time.perf_counter_ns`).

        Args:
            timing: Its events; they are used again for other ranges.
            end_ns: When its last event was recorded.
            is_step: Whether its last event is the first one of the next step.

        Returns:
            None if they are unknown.
        """
        if self._anchor is None:
            self._anchor = timing.start
        start = self._anchor_ns + round(self._anchor.elapsed_time(timing.start) * 1e6)
        end = self._anchor_ns + round(self._anchor.elapsed_time(timing.end) * 1e6)
        self._map(end, end_ns)
        used = [timing.start] if is_step else [timing.start, timing.end]
        if end - self._anchor_ns > ANCHOR_NS:
            used.append(self._anchor)
            self._anchor, self._anchor_ns = timing.end, end
        self._pool.extend(event for event in dict.fromkeys(used) if event is not self._anchor)
        shift_ns = self._shift_ns
        if shift_ns is None:
            return None
        if self._earlier_ns is not None:
            shift_ns = max(shift_ns, self._earlier_ns)
        return start + shift_ns, end + shift_ns

    def _map(self, device_ns: int, host_ns: int) -> None:
        shift_ns = host_ns - device_ns
        if self._shift_ns is None or host_ns - self._since_ns > MAPPING_NS:
            self._earlier_ns, self._shift_ns, self._since_ns = self._shift_ns, shift_ns, host_ns
        else:
            self._shift_ns = max(self._shift_ns, shift_ns)


def device_times(module: Any) -> DeviceTimes | None:
    """For a device that training has begun to use; None before. It is never initialised here."""
    if not module.is_initialized():
        return None
    return DeviceTimes(module, int(module.current_device()))


def allow_queries_during_captures() -> None:
    """Let this thread query events while another thread captures a graph, which would otherwise break the capture.

    Raises:
        RuntimeError: If that is not possible.
    """
    for name, function in _EXCHANGES.items():
        path = _loaded(name)
        if path is not None:
            exchange = getattr(ctypes.CDLL(path), function, None)
            if exchange is not None and exchange(ctypes.byref(ctypes.c_int(_RELAXED))) == 0:
                return
    raise RuntimeError("captures of graphs cannot be protected from queries of events")


def _loaded(name: str) -> str | None:
    """The path of a shared library that is loaded, by the beginning of its name."""
    with suppress(OSError):
        for line in Path("/proc/self/maps").read_text().splitlines():
            path = line.rpartition(" ")[2]
            if path.rpartition("/")[2].startswith(name):
                return path
    return None
