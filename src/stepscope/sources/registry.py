"""The readers that stepscope knows; a new one is a file and a line here."""

# ruff: noqa: I001, F401 - readers are tried in the order of these lines

from __future__ import annotations

import functools

from stepscope.plugins import installed
from stepscope.sources.base import Source
from stepscope.sources.recording import RecordingSource
from stepscope.sources.kineto import KinetoSource
from stepscope.sources.ascend import AscendDb
from stepscope.sources.ascend import AscendText
from stepscope.sources.runtime_profiler import RuntimeProfilerSource
from stepscope.sources.classic import ClassicSource

SOURCES: list[Source] = [one() for one in list(vars().values()) if hasattr(one, "sniff") and one is not Source]


def all_sources() -> list[Source]:
    """The readers to try: ours, then those of plug-ins."""
    return [*SOURCES, *_offered()]


@functools.cache
def _offered() -> tuple[Source, ...]:
    return tuple(one() if isinstance(one, type) else one for one in installed("stepscope.sources"))


def source_of(format_: str) -> Source | None:
    """The reader of a format (`ranks.format`): the one of that name, else the first of its family; None if unknown."""
    family = format_.partition("_")[0]
    named = [source for source in all_sources() if source.name == format_]
    return next(iter(named or [source for source in all_sources() if source.family == family]), None)


def family_of(name: str) -> str:
    """The family of the reader of that name; of an unknown one its name."""
    return next((source.family for source in all_sources() if source.name == name), name)
