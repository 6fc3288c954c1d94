"""Ids of traces and spans: the same whenever the same recordings are exported, whatever ranks and steps are chosen."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import msgspec

from stepscope.run import Run

ROOT = 4
"""The kind of the span around a step or around what is outside all steps, beside those of ranges."""

_KIND_BITS = 61
_MASK = (1 << _KIND_BITS) - 1
_FACTS = ("format", "host", "process", "base_ns", "start_ns", "end_ns")


class Ids:
    """Ids in a run: a trace for each rank and step, in it a span for each range.

    Args:
        run: The run; a selection of it has the ids of the whole.
    """

    def __init__(self, run: Run) -> None:
        recorded = run.original.ranks
        told = [(one.rank, *(one.facts[name] for name in _FACTS), sorted(one.rows.items())) for one in recorded]
        self._run = msgspec.json.encode([run.name, told])
        self._keys: dict[tuple[int, int], int] = {}
        self._traces = lru_cache(maxsize=4096)(self._trace)

    def trace(self, rank: int, step: int | None) -> str:
        """The id of the trace of a rank's step; None is what is outside all steps."""
        return self._traces(rank, step)

    def span(self, rank: int, kind: int, number: int) -> str:
        """The id of a range of a rank, different for each kind and number from 0 on, and never 0."""
        key = self._keys.get((rank, kind))
        if key is None:
            mixed = int.from_bytes(self._digest(("span", rank), 8), "big") & _MASK
            key = self._keys[rank, kind] = kind << _KIND_BITS | mixed
        return f"{key ^ (number & _MASK):016x}"

    def root(self, rank: int, step: int | None) -> str:
        """The id of the outermost span of a trace."""
        return self.span(rank, ROOT, 0 if step is None else step + 1)

    def _trace(self, rank: int, step: int | None) -> str:
        return self._digest(("trace", rank, step), 16).hex()

    def _digest(self, what: tuple[str | int | None, ...], size: int) -> bytes:
        return blake2b(self._run + msgspec.json.encode(what), digest_size=size).digest()
