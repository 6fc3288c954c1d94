"""Timelines of runs, made once and kept as files: for download, and for the viewer in the page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stepscope.errors import StepscopeError
from stepscope.paths import shown
from stepscope.timeline import TimelineOptions, Written, write_timeline

if TYPE_CHECKING:
    from stepscope.web.catalogue import Catalogue
    from stepscope.web.kept_files import Hold, KeptFiles

FileFormat = Literal["perfetto", "json", "json.gz"]

FILE_FORMATS: dict[FileFormat, tuple[str, str]] = {
    "perfetto": (".pftrace", "application/vnd.perfetto"),
    "json": (".json", "application/json"),
    "json.gz": (".json.gz", "application/gzip"),
}
"""Formats of timelines: endings of their names, and media types."""

LARGEST_MB = 500.0
"""Size of a timeline, in MB, unless less is asked for: the viewer cannot open much more in a browser."""


@dataclass(frozen=True)
class Wanted:
    """Which timeline of a run.

    Args:
        format: Format of the file.
        ranks: The ranks, e.g. `0,3-5`; None for all.
        steps: The steps, likewise.
        options: What it shows; its size is bounded by `LARGEST_MB` in any case.
    """

    format: FileFormat = "perfetto"
    ranks: str | None = None
    steps: str | None = None
    options: TimelineOptions = field(default_factory=TimelineOptions)


async def timeline_file(catalogue: Catalogue, files: KeptFiles, run: str, wanted: Wanted) -> Hold[Written]:
    """The file with a timeline of a run; whoever asks for the same one gets the same file.

    Args:
        catalogue: The runs.
        files: Where files are kept.
        run: Id of the run.
        wanted: Which timeline.

    Returns:
        The file, to be released when it is no longer read, and what was written and left out.

    Raises:
        UnknownRun, NotReady, RunBroken: As `Catalogue.open`.
        StepscopeError: If there is nothing to show, or an option is not possible.
    """
    stamp = catalogue.entry(run).stamp

    def write(target: Path) -> Written:
        narrowed = catalogue.open(run).select(ranks=wanted.ranks, steps=wanted.steps)
        try:
            return write_timeline(narrowed, target, _bounded(wanted.options, files.limit_bytes))
        except StepscopeError as error:  # a client need not know where the server has its files
            text = error.marked
            for place in (target, narrowed.path):
                text = text.removeprefix(f"{shown(place)}: ")
            raise StepscopeError(text) from error

    key = ("timeline", run, stamp, wanted)
    return await files.get(key, "timeline" + FILE_FORMATS[wanted.format][0], write)


def _bounded(options: TimelineOptions, most_bytes: int) -> TimelineOptions:
    """The options with a limit of the size that the disk's share allows."""
    largest = min(round(LARGEST_MB * 1e6), most_bytes)
    return replace(options, limit_bytes=min(options.limit_bytes or largest, largest))
