"""Recordings that were read on another machine and packed there (`store/packed.py`) -> tables."""

from stepscope.sources.packed.source import PackedSource

__all__ = ["PackedSource"]
