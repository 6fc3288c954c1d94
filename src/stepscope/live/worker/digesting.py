"""Sums of the ranges of each step: what the detector needs of a rank, in a few hundred bytes a step."""

from __future__ import annotations

from functools import lru_cache

from stepscope.json_files import value_in
from stepscope.live.call_sums import CallSums
from stepscope.live.messages import MOST_TEXT, Digest
from stepscope.live.worker.tracker import Item
from stepscope.recording_format.marks import (
    BACKWARD,
    CHECKPOINT,
    COLLECTIVE,
    DATA,
    FORWARD,
    GARBAGE,
    OPTIMIZER,
    CollectiveDetail,
    MarkKind,
)

MOST_UNITS = 2**62
"""Expanded tensors may have more elements than fit into a message."""


class Digester:
    """Sums up ranges, in the order in which they ended.

    Args:
        rank: Of this process.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.device_groups: frozenset[str] = frozenset()
        """Keys of groups whose calls only launch work on the device."""
        self.ended: dict[str, int] = {}
        """Calls that have ended, by group."""
        self._sums: dict[MarkKind, int] = {}
        self._own_ns: int | None = None
        self._device_forward_ns: int | None = None
        self._calls = CallSums()

    def add(self, item: Item, device_ns: int | None) -> None:
        """A range other than a step, and its duration on the device if known."""
        kind, name, start_ns, end_ns, number, _, detail, _ = item
        if kind == COLLECTIVE:
            self._add_call(name, detail, end_ns - start_ns, device_ns, counts=number > 0)
        if not number:
            return
        self._sums[kind] = self._sums.get(kind, 0) + end_ns - start_ns
        if kind == FORWARD and device_ns is not None:
            self._device_forward_ns = (self._device_forward_ns or 0) + device_ns
        elif kind == BACKWARD and detail:
            self._own_ns = (self._own_ns or 0) + detail - start_ns

    def step(self, item: Item, whole: frozenset[MarkKind], shift_ns: int, device_ns: int | None) -> Digest:
        """The digest of a step that is over.

        Args:
            item: The step.
            whole: Kinds that were on during all of it.
            shift_ns: From `time.perf_counter_ns` to the time since the epoch.
            device_ns: Its duration on the device, if known.
        """
        _, _, start_ns, end_ns, number, _, (run_delay_ns, units), _ = item
        sums, communicates = self._sums, COLLECTIVE in whole
        digest = Digest(
            rank=self.rank,
            step=number,
            end_at_ns=end_ns + shift_ns,
            step_ns=end_ns - start_ns,
            forward_ns=sums.get(FORWARD) if FORWARD in whole else None,
            backward_ns=sums.get(BACKWARD) if BACKWARD in whole else None,
            backward_own_ns=self._own_ns if BACKWARD in whole else None,
            optimizer_ns=sums.get(OPTIMIZER) if OPTIMIZER in whole else None,
            data_ns=sums.get(DATA, 0) if DATA in whole else None,
            checkpoint_ns=sums.get(CHECKPOINT, 0) if CHECKPOINT in whole else None,
            communication_ns=sums.get(COLLECTIVE, 0) if communicates else None,
            garbage_ns=sums.get(GARBAGE, 0) if GARBAGE in whole else None,
            run_delay_ns=run_delay_ns,
            device_step_ns=device_ns,
            device_forward_ns=self._device_forward_ns if FORWARD in whole else None,
            units=min(int(units), MOST_UNITS) or None if FORWARD in whole else None,
            calls=self._calls.as_calls() if communicates else [],
        )
        self._clear()
        return digest

    def _add_call(self, operation: str, detail: str, time_ns: int, device_ns: int | None, *, counts: bool) -> None:
        known = described(detail)
        group = known.group or ""
        self.ended[group] = self.ended.get(group, 0) + 1
        if not counts:
            return
        self._calls.add(
            operation,
            group,
            known.peer,
            launched=known.is_async or group in self.device_groups,
            time_ns=time_ns,
            device_ns=device_ns,
            size_bytes=known.size_bytes,
        )

    def _clear(self) -> None:
        self._sums, self._calls = {}, CallSums()
        self._own_ns = self._device_forward_ns = None


@lru_cache(maxsize=4096)
def described(detail: str) -> CollectiveDetail:
    """The detail of a call, with texts of at most `MOST_TEXT` characters; calls repeat."""
    known = CollectiveDetail.of(value_in(detail))
    if known.group is not None and len(known.group) > MOST_TEXT:
        return CollectiveDetail.of({**vars(known), "group": known.group[:MOST_TEXT], "async": known.is_async})
    return known
