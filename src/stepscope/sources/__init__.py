"""Readers: of what other tools write and of our own recordings, one module or package a format."""

from stepscope.sources.ascend import AscendDb, AscendText
from stepscope.sources.base import Source
from stepscope.sources.classic import ClassicSource
from stepscope.sources.kineto import KinetoSource
from stepscope.sources.recording import RecordingSource
from stepscope.sources.runtime_profiler import RuntimeProfilerSource

SOURCES: list[Source] = [
    RecordingSource(),
    KinetoSource(),
    AscendDb(),
    AscendText(),
    RuntimeProfilerSource(),
    ClassicSource(),
]
"""All readers, in the order in which they are asked."""
