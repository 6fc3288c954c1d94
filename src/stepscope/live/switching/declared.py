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
        board: Where the state ends. It may get its file later, once the job is known.
        source: Names it, e.g. `file PATH`.
    """

    def __init__(self, board: Board, source: str) -> None:
        self.source = source
        self._board = board
        self._file: Path | None = None
        self._last: dict[Kind, bool] | None = None
        self._kept: dict[Kind, bool] | None = None

    async def declare(self, changes: dict[Kind, bool]) -> None:
        """The source says this now. To be called again and again, also while it says the same.

        Raises:
            CannotKeep: If the board cannot write the state; the call can then be repeated.
        """
        self._look_up()
        known, revision = self._last, self._board.requested.revision
        if changes and not revision:
            # only what workers start with: what a proxy knows from before this manager was started is newer
            await self._board.learn(1, self._board.requested.switches.with_changes(changes).as_names(), self.source)
        elif changes != known:
            if changes and known is not None:
                await self._board.request(changes, self.source)
            elif changes:
                log.info("%s: its switches act when they are changed, since others were requested before", self.source)
            else:
                log.info("%s: names no switch", self.source)
        self.remember(changes)

    def remember(self, changes: dict[Kind, bool]) -> None:
        """The source declares this, and it is no change: it was written there by this manager."""
        self._last = dict(changes)
        if self._file is None or self._last == self._kept:
            return
        content: dict[str, Any] = {
            source: {NAMES[kind].switch: "on" if state else "off" for kind, state in declared.items()}
            for source, declared in {**_kept_in(self._file), self.source: self._last}.items()
        }
        try:
            replace_json(self._file, content)
        except OSError as error:
            log.warning("%s: cannot be written (%s)", self._file, error.strerror or error)
        self._kept = self._last

    def _look_up(self) -> None:
        """What was kept beside the board's file, when that has become known."""
        board = self._board.file
        file = None if board is None else board.with_name(f"{board.stem}.declared.json")
        if file is None or file == self._file:
            return
        self._file, self._kept = file, _kept_in(file).get(self.source)
        if self._kept is not None:
            self._last = self._kept


def _kept_in(file: Path) -> dict[str, dict[Kind, bool]]:
    """What each source declared last, as far as it was kept."""
    try:
        found = json.loads(file.read_bytes())
        return {str(source): changes_of(state.items()) for source, state in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, InvalidSwitch) as error:
        log.warning("%s: not what files of switches declared (%s)", file, error)
        return {}
