"""Stored light records of a job as a run: of all processes of each rank, and only the files of a window of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.cli.progress import ProgressBar
from stepscope.errors import StepscopeError
from stepscope.ingest import ingest
from stepscope.paths import shown
from stepscope.recording_format.light import is_record_name
from stepscope.run import Rank, Run
from stepscope.run.jobs import group
from stepscope.run.supplements import Supplement
from stepscope.selection import Selection
from stepscope.sources.base import Input
from stepscope.sources.discover import discover
from stepscope.sources.light import LightSource
from stepscope.sources.light.moments import newest_ns, within
from stepscope.store.recording import Recording
from stepscope.tables import LIGHT_RANGES

_DIGITS = 9
"""Digits of the number of a rank, at most."""
_NAMED = 8


def ranks_below(directory: Path) -> dict[int, Path]:
    """The directories of the ranks of a job: `directory` is that of the job, or of one rank.

    Raises:
        StepscopeError: If it holds no records.
    """
    try:
        if _is_number(directory.name) and _records_in(directory):
            return {int(directory.name): directory}
        entries = [each for each in directory.iterdir() if each.is_dir()]
        found = {int(each.name): each for each in entries if _is_number(each.name) and _records_in(each)}
        if found:
            return found
        holding = sorted(each.name for each in entries if not each.name.isdecimal() and _holds_ranks(each))
    except OSError as error:
        raise StepscopeError(
            f"{shown(error.filename or directory)}: {error.strerror or error}. Give the directory of a job"
        ) from error
    there = f"It holds these jobs: {', '.join(holding[:_NAMED])}" if holding else "Give the directory of a job"
    raise StepscopeError(f"{shown(directory)}: holds no records of ranks. {there}")


def chosen(ranks: Mapping[int, Path], selection: Selection | None) -> dict[int, Path]:
    """Some of the ranks.

    Raises:
        StepscopeError: If none of them has records.
    """
    kept = {rank: directory for rank, directory in sorted(ranks.items()) if selection is None or rank in selection}
    if not kept:
        named = selection.named("rank") if selection else "ranks"
        raise StepscopeError(f"no records of {named}. Ranks: {sorted(ranks)[:20]}")
    return kept


def newest_of(ranks: Mapping[int, Path]) -> int | None:
    """The newest time in the records of some ranks, since the epoch; None without records."""
    found = (newest_ns(_records_in(directory)) for directory in ranks.values())
    return max((each for each in found if each is not None), default=None)


def opened(ranks: Mapping[int, Path], window_ns: tuple[int | None, int | None], *, quiet: bool) -> Run:
    """Open the records of some ranks as a run.

    Answers are about the newest processes of the job; the stored ranges (`light_ranges`) are those of all processes.

    Args:
        ranks: The directory of each rank.
        window_ns: Files that hold nothing of this time are not read, and what is read is then not kept in the store.
        quiet: Draw no progress bar.

    Raises:
        StepscopeError: If nothing was recorded in this time, or nothing can be read.
    """
    there = discover(ranks.values(), [LightSource()])
    items = [kept for item in map(_without_links, there.inputs) if (kept := within(item, *window_ns)) is not None]
    if not items:
        raise StepscopeError("no ranges were recorded in that window. Choose another one, or leave it out for all")
    with ProgressBar(quiet=quiet) as progress:
        done = ingest(items, use_store=window_ns == (None, None), progress=progress.watch)
    unread = [*there.problems, *done.unread]
    if not done.recordings:
        why = f"{unread[0].file}: {unread[0].problem}. {unread[0].remedy}" if unread else "no records can be read"
        raise StepscopeError(why)
    newest = max(group(done.recordings), key=lambda job: job.newest)
    of_rank: dict[int, list[Recording]] = {}
    for recording in sorted(done.recordings, key=lambda each: each.facts.get("start_ns") or 0):
        of_rank.setdefault(int(recording.path.name), []).append(recording)
    joined = [
        Rank(one.rank, one.origin, one.recording, supplement=_older(of_rank.pop(one.rank))) for one in newest.members
    ]
    # Ranks that only older processes had: their steps and calls are not those of the job as it is now.
    joined += [Rank(rank, "content", Stored(recordings)) for rank, recordings in of_rank.items()]
    return Run(
        newest.name,
        newest.path,
        joined,
        unread=unread,
        own_issues=newest.issues,
        warnings=done.warnings,
        store=done.store,
    )


class Stored(Recording):
    """The stored ranges of several processes of a rank, and nothing else.

    Args:
        recordings: In the order in which they began.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = recordings
        newest = recordings[-1]
        rows = sum(each.rows.get(LIGHT_RANGES.name, 0) for each in recordings)
        files = tuple(file for each in recordings for file in each.files)
        super().__init__(newest.source, newest.path, files, newest.facts, {LIGHT_RANGES.name: rows})

    def _scan(self, table: str) -> pl.LazyFrame:
        return pl.concat([each.scan(table) for each in self._recordings])


def _older(recordings: Sequence[Recording]) -> Supplement | None:
    """The ranges of all processes of a rank, if there are several."""
    return Supplement(Stored(recordings), (LIGHT_RANGES.name,)) if len(recordings) > 1 else None


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= _DIGITS


def _holds_ranks(directory: Path) -> bool:
    return any(_is_number(each.name) and each.is_dir() for each in directory.iterdir())


def _records_in(directory: Path) -> list[Path]:
    """The record files in a directory, in the order in which they were written."""
    names = (each for each in directory.iterdir() if is_record_name(each.name) and each.is_file())
    return sorted((each for each in names if not each.is_symlink()), key=lambda each: int(each.name))


def _without_links(item: Input) -> Input:
    """The same input without files that are links: they may be copies of others."""
    return Input(item.source, item.path, tuple(file for file in item.files if not file.is_symlink()), item.label)
