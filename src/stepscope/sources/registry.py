"""The readers that stepscope knows; a new one is a file and a line here."""

# ruff: noqa: I001, F401 - readers are tried in the order of these lines

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from stepscope.plugins import installed
from stepscope.sources.base import Source
from stepscope.sources.recording import RecordingSource
from stepscope.sources.kineto import KinetoSource
from stepscope.sources.flight_recorder import FlightRecorderSource
from stepscope.sources.ascend import AscendDb
from stepscope.sources.ascend import AscendText
from stepscope.sources.runtime_profiler import RuntimeProfilerSource
from stepscope.sources.operation_trace import OperationTraceSource
from stepscope.sources.classic import ClassicSource
from stepscope.sources.light import LightSource
from stepscope.sources.packed import PackedSource

SOURCES: list[Source] = [one() for one in list(vars().values()) if hasattr(one, "sniff") and one is not Source]


def all_sources() -> list[Source]:
    """The readers to try: ours, then those of plug-ins."""
    return [*SOURCES, *offered_sources()]


def offered_sources() -> tuple[Source, ...]:
    """The readers of plug-ins."""
    return installed("stepscope.sources", _checked)


_PARTS: Mapping[str, Any] = {
    **dict.fromkeys(("name", "family"), str),
    "version": int,
    "reasons": Mapping,
    "own_tables": Set,
    **dict.fromkeys(("find", "sniff", "read"), Callable),
}
"""What a reader has, and of which type."""


def _checked(offered: Any) -> Source:
    """The reader that a plug-in offers, as a class or an object.

    Raises:
        TypeError: If it is no whole reader, or has the name of one of ours.
    """
    source: Source = offered() if isinstance(offered, type) else offered
    lacking = [part for part, kind in _PARTS.items() if not isinstance(getattr(source, part, None), kind)]
    if lacking:
        raise TypeError(f"it is not a reader: {', '.join(lacking)} missing or of the wrong type")
    if any(source.name == ours.name for ours in SOURCES):
        raise TypeError(f"stepscope has a reader named {source.name} itself")
    return source


def source_of(format_: str) -> Source | None:
    """The reader of a format (`ranks.format`): the one of that name, else the first of its family; None if unknown."""
    family = format_.partition("_")[0]
    named = [source for source in all_sources() if source.name == format_]
    return next(iter(named or [source for source in all_sources() if source.family == family]), None)


def starts_threads(source: Source) -> bool:
    """Whether a reader may wait for other threads of Polars: one that says so, and any of a plug-in."""
    return source not in SOURCES or getattr(source, "starts_threads", False)


def family_of(name: str) -> str:
    """The family of the reader of that name; of an unknown one its name."""
    return next((source.family for source in all_sources() if source.name == name), name)
