"""States that a file or a ConfigMap declares, passed on to the board when they change, so that the last change wins."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from stepscope.live.control.board import Board
from stepscope.live.kinds import NAMES, Kind
from stepscope.live.switches import InvalidSwitch, changes_of
from stepscope.record.files import replace_json

log = logging.getLogger("stepscope")


class Declared:
    """What one source declared last. Only a change of it acts on the board, so that a request from elsewhere stays in
    force while the source says the same as before.

    What it declared last is kept beside the board's state, so that a change that is made while no manager runs acts
    when the next one starts, and an unchanged one does not undo what was requested since.

    Args:
        board: Where the state ends.
        source: Names it, e.g. `file PATH`.
    """

    def __init__(self, board: Board, source: str) -> None:
        self.source = source
        self._board = board
        self._file = None if board.file is None else board.file.with_name(f"{board.file.stem}.declared.json")
        self._last = _kept(self._file).get(source)

    async def declare(self, changes: dict[Kind, bool]) -> None:
        """The source says this now.

        Raises:
            CannotKeep: If the board cannot write the state; the call can then be repeated.
        """
        known = self._last
        if changes == known and self._board.requested.revision:
            return
        if not changes:
            log.info("%s: names no switch", self.source)
        elif known is not None or not self._board.requested.revision:
            await self._board.request(changes, self.source)
        else:
            log.info("%s: its switches act when they are changed, since others were requested before", self.source)
        self.remember(changes)

    def remember(self, changes: dict[Kind, bool]) -> None:
        """The source declares this, which is no change: it was written there by this manager."""
        self._last = dict(changes)
        if self._file is None:
            return
        kept = {**_kept(self._file), self.source: self._last}
        content: dict[str, Any] = {source: _as_guide(state) for source, state in kept.items()}
        try:
            replace_json(self._file, content)
        except OSError as error:
            log.warning("%s: cannot be written (%s)", self._file, error.strerror or error)


def _as_guide(changes: dict[Kind, bool]) -> dict[str, str]:
    return {NAMES[kind].switch: "on" if state else "off" for kind, state in changes.items()}


def _kept(file: Path | None) -> dict[str, dict[Kind, bool]]:
    """What each source declared last, as far as it was kept."""
    if file is None:
        return {}
    try:
        found = json.loads(file.read_bytes())
        return {str(source): changes_of(state.items()) for source, state in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, InvalidSwitch) as error:
        log.warning("%s: not what files of switches declared (%s)", file, error)
        return {}
