"""Readers of the formats that other tools write, one module or package a format."""

from stepscope.sources.ascend import AscendDb, AscendText
from stepscope.sources.base import Source
from stepscope.sources.kineto import KinetoSource

SOURCES: list[Source] = [KinetoSource(), AscendDb(), AscendText()]
"""All readers, in the order in which they are asked."""
