"""Questions about ranks as data, for processes that share only the store with this one.

Options and limits are sent as plain data and type names, so that nothing is executed when they are read.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.analysis.registry import Analysis
from stepscope.errors import Unavailable
from stepscope.run.encoding import NotSendable, encoded, place_of
from stepscope.run.engine.messages import Ask, Order, RankData, RunData, reason_of, rows_of
from stepscope.run.recorded import Recorded
from stepscope.store.recording import StoredRecording

_IDS = itertools.count()
_LOG = logging.getLogger(__name__)


class Orders:
    """Makes orders about one run, or a selection of one; another process may keep answers of `answers_bytes`."""

    def __init__(self, run: Recorded, answers_bytes: int) -> None:
        self._run = run
        self._answers_bytes = answers_bytes

    def order(
        self,
        analysis: Analysis,
        options: Mapping[str, Any],
        ranks: tuple[int, ...],
        given: Mapping[str, pl.DataFrame | Unavailable],
    ) -> Order | None:
        """A question about some ranks; None if only this process can answer it.

        This is the case if rows are in memory, or an analysis or the type of an option is defined in a notebook, in the
        main script or inside a function, where no other process can import it.
        """
        handed_on = {option for one in analysis.closure for option in one.passes}
        try:
            for used in analysis.closure:
                place_of(used.function)
                if used.scope == "job" and handed_on.intersection(used.options):
                    raise NotSendable(f"what {used.name} answers about the whole job with other options")
            run = self._as_recorded if analysis.as_recorded else self._numbered
            ask = Ask(
                run=run.id,
                question=analysis.name,
                modules=[used.function.__module__ for used in analysis.closure],
                options=encoded(dict(options)),
                ranks=ranks,
                given={
                    name: reason_of(answer) if isinstance(answer, Unavailable) else rows_of(answer)
                    for name, answer in given.items()
                },
            )
            return Order(run, ask)
        except NotSendable as error:
            _LOG.info("%s is asked in this process: %s is unknown to others", analysis.name, error)
            return None

    @cached_property
    def _as_recorded(self) -> RunData:
        return self._data(None)

    @cached_property
    def _numbered(self) -> RunData:
        found = self._run.iterations
        if found is None:
            return self._as_recorded
        return self._data((rows_of(found.steps), found.count, found.operators))

    def _data(self, iterations: tuple[bytes, int, int] | None) -> RunData:
        ranks = []
        for rank in self._run.ranks:
            supplied = None if rank.supplement is None else rank.supplement.recording
            if not isinstance(rank.recording, StoredRecording) or not isinstance(supplied, StoredRecording | None):
                raise NotSendable(f"what rank {rank.rank} recorded, which lies in memory,")
            beside = None
            if supplied is not None and rank.supplement is not None:
                beside = (supplied.directory, rank.supplement.tables)
            ranks.append(RankData(rank.rank, rank.facts["rank_origin"], rank.recording.directory, beside))
        steps = self._run.ranks[0].steps
        return RunData(
            id=next(_IDS),
            ranks=ranks,
            steps=None if steps is None else list(steps.ranges),
            defaults=encoded({name: dict(options) for name, options in self._run.options.items()}),
            issues=rows_of(self._run.issues),
            iterations=iterations,
            answers_bytes=self._answers_bytes,
        )
