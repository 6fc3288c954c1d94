"""The exports of one rank, for a reader that finds several of them: which there are, and what each holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.sources.ascend.db import take_database
from stepscope.sources.ascend.exported_rank import ExportedRank
from stepscope.sources.ascend.rank_files import OUTPUT, RANK_DIRECTORY
from stepscope.sources.ascend.source import AscendDb, AscendText
from stepscope.sources.ascend.text import take_text
from stepscope.sources.base import Input

if TYPE_CHECKING:
    from stepscope.sources.base import Sink


def rank_directories(parent: Path) -> list[Path]:
    """The directories that Ascend profilers wrote in `parent`, exported or raw, in order of their names.

    Raises:
        OSError: If `parent` cannot be listed.
    """
    below = sorted(path for path in parent.iterdir() if path.is_dir())
    return [path for path in below if RANK_DIRECTORY.match(path.name) or (path / OUTPUT).is_dir()]


def find_export(directory: Path) -> Input | None:
    """The export in a rank directory; None if it holds raw data only.

    Raises:
        OSError: If it cannot be listed.
    """
    names = sorted(path.name for path in directory.iterdir())
    found = AscendDb().find(directory, names) or AscendText().find(directory, names)
    return None if found is None else found.inputs[0]


def read_export(item: Input, sink: Sink) -> ExportedRank:
    """What an export holds, whose steps are known from elsewhere.

    Args:
        item: As of `find_export`.
        sink: Takes recorded flows and issues.

    Raises:
        UnreadableInput: If nothing of it can be read.
    """
    if item.source == AscendDb.name:
        return take_database(item, sink, has_marks=True)[0]
    return take_text(item, sink)[0]
