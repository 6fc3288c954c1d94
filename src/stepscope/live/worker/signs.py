"""What a live worker says to `stepscope record --live`, which reports it when its command is over."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.live.store import RecordStore
from stepscope.record import signs

STARTED, ENDED = "live", "live_over"


def started(rank: int, directory: Path) -> None:
    """A worker records from now on."""
    signs.give(STARTED, json.dumps({"rank": rank, "directory": str(directory)}))


def ended(rank: int, steps: int, ranges: int, store: RecordStore | None) -> None:
    """It has written everything."""
    problem = "" if store is None else store.problem
    said = {"rank": rank, "steps": steps, "ranges": ranges, "problem": problem}
    signs.give(ENDED, json.dumps(said))
