"""Ranks that are exported together: what one of them cannot know of itself alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.run import Run, open_runs

_log = logging.getLogger("stepscope")


class Peers:
    """The jobs of some recordings, opened when they are first asked for.

    Args:
        recordings: The recordings that are exported together, of one job or several.
    """

    def __init__(self, recordings: Sequence[Path]) -> None:
        self._recordings = recordings

    def arrivals(self, recording: Path) -> pl.DataFrame | None:
        """The rows of `arrival` of one of them; None where no other rank of its job is there, or none can be read."""
        place = recording.resolve()
        found = [(run, rank) for run in self._runs for rank in run.ranks if rank.path.resolve() == place]
        for run, rank in found:
            if len(run.ranks) > 1 and run.has("collectives"):
                rows: pl.DataFrame = run.analyse("arrival")
                return rows.filter(pl.col("rank") == rank.rank)
        return None

    @cached_property
    def _runs(self) -> list[Run]:
        if len(self._recordings) < 2:
            return []
        try:
            return open_runs(self._recordings)
        except (OSError, StepscopeError) as reason:
            _log.warning("How long ranks waited for each other cannot be told: %s", reason)
            return []
