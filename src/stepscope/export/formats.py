"""The formats in which a run can be exported for other tools. A new one is a function and a line in `FORMATS`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, get_args

from stepscope.errors import StepscopeError
from stepscope.export.format_names import FormatName
from stepscope.export.made import Made
from stepscope.export.placing import check_place, put, staging
from stepscope.run import Run
from stepscope.selection import Choice


class Write(Protocol):
    """Writes a run below an empty directory.

    Raises:
        StepscopeError: If nothing at all can be made of it.
    """

    def __call__(self, run: Run, directory: Path, wishes: Wishes) -> Made: ...


@dataclass(frozen=True)
class Wishes:
    """What a user wants of the files.

    Args:
        limit_mb: Size limit of each timeline; None for that of the format.
        strict: Raise faults of our own instead of leaving out what they concern.
    """

    limit_mb: float | None = None
    strict: bool = False

    @property
    def limit_bytes(self) -> int | None:
        """The limit in bytes."""
        return None if self.limit_mb is None else max(int(self.limit_mb * 1e6), 1)

    def on_fault(self, what: str, fault: Exception) -> None:  # noqa: ARG002 - what it concerns is in its traceback
        """Raise a fault, if that is wanted and it is no lack of data."""
        if self.strict and not isinstance(fault, (OSError, StepscopeError)):
            raise fault


@dataclass(frozen=True)
class Format:
    """A format.

    Args:
        name: Its name.
        meaning: What it is, for which tools.
        write: Writes a run.
        extra: The extra of the package that it needs.
        limited: Whether it has timelines, whose size can be limited.
        taken: The files and directories that are made of a run in any case, relative to the directory.
    """

    name: FormatName
    meaning: str
    write: Write
    extra: str | None = None
    limited: bool = False
    taken: Callable[[Run], Iterable[str]] = lambda _: ()


def _chrome(run: Run, directory: Path, wishes: Wishes) -> Made:
    return _timeline(run, directory / CHROME_FILE, wishes)


def _perfetto(run: Run, directory: Path, wishes: Wishes) -> Made:
    return _timeline(run, directory / PERFETTO_FILE, wishes)


CHROME_FILE, PERFETTO_FILE = "timeline.json.gz", "timeline.pftrace"


def _timeline(run: Run, file: Path, wishes: Wishes) -> Made:
    from stepscope.timeline import TimelineOptions, write_timeline  # noqa: PLC0415 - other formats do not need it

    written = write_timeline(run, file, TimelineOptions(limit_bytes=wishes.limit_bytes))
    return Made([written.file], written.left_out, written.notes)


def _classic(run: Run, directory: Path, wishes: Wishes) -> Made:
    from stepscope.export.rank_files import write_classic  # noqa: PLC0415 - other formats do not need its modules

    return write_classic(run, directory, limit_bytes=wishes.limit_bytes, on_fault=wishes.on_fault)


def _ascend_text(run: Run, directory: Path, wishes: Wishes) -> Made:
    from stepscope.export.rank_files import write_ascend_text  # noqa: PLC0415

    return write_ascend_text(run, directory, limit_bytes=wishes.limit_bytes, on_fault=wishes.on_fault)


def _ascend_db(run: Run, directory: Path, wishes: Wishes) -> Made:  # noqa: ARG001 - it has no timeline to limit
    from stepscope.export.ascend_db.directory import write_ascend_db  # noqa: PLC0415

    return write_ascend_db(run, directory)


def _parquet(run: Run, directory: Path, wishes: Wishes) -> Made:  # noqa: ARG001
    from stepscope.export.parquet import write_parquet  # noqa: PLC0415

    return write_parquet(run, directory)


def _otlp(run: Run, directory: Path, wishes: Wishes) -> Made:  # noqa: ARG001
    from stepscope.export.otlp import write_otlp  # noqa: PLC0415

    return write_otlp(run, directory)


def _classic_names(run: Run) -> Iterable[str]:
    return (f"profiler/profiler_info_{rank.rank}.json" for rank in run.ranks)


def _ascend_names(run: Run) -> Iterable[str]:
    from stepscope.export.ascend_ms.directory import directory_names  # noqa: PLC0415

    return directory_names(run).values()


_MOST_REASONS = 3
_LARGEST_MB = 1e9

FORMATS: tuple[Format, ...] = (
    Format(
        "chrome",
        "a timeline as trace events (JSON), for viewers of these",
        _chrome,
        limited=True,
        taken=lambda _: [CHROME_FILE],
    ),
    Format(
        "perfetto",
        "a timeline for ui.perfetto.dev and `stepscope view`",
        _perfetto,
        limited=True,
        taken=lambda _: [PERFETTO_FILE],
    ),
    Format("classic", "profiler/ of MindSpore, for MindInsight", _classic, limited=True, taken=_classic_names),
    Format(
        "ascend-text",
        "*_ascend_pt or *_ascend_ms directories with text files, for msprof-analyze and MindStudio Insight",
        _ascend_text,
        limited=True,
        taken=_ascend_names,
    ),
    Format(
        "ascend-db",
        "the same directories with databases, for what these tools read of databases only",
        _ascend_db,
        taken=_ascend_names,
    ),
    Format("parquet", "all tables, for data tools", _parquet, taken=lambda _: ["schema.json"]),
    Format("otlp", "spans and metrics of OpenTelemetry, for its collector", _otlp),
)
"""All formats."""


def format_named(name: str) -> Format:
    """The format of a name.

    Raises:
        StepscopeError: If there is none.
    """
    found = next((each for each in FORMATS if each.name == name), None)
    if found is None:
        raise StepscopeError(f"there is no format {name!r}. There are: {', '.join(get_args(FormatName))}")
    return found


def check_wishes(format_name: str, limit_mb: float | None) -> Format:
    """The format of a name, if it can be written as wished.

    Raises:
        StepscopeError: If there is none, or its files cannot be limited.
    """
    found = format_named(format_name)
    if limit_mb is not None and not 0 < limit_mb < _LARGEST_MB:
        raise StepscopeError(f"the limit is {limit_mb:g} MB: give a size above 0 and below 1e9")
    if limit_mb is not None and not found.limited:
        limited = ", ".join(each.name for each in FORMATS if each.limited)
        raise StepscopeError(f"{format_name} has no timeline whose size could be limited. These have one: {limited}")
    return found


def export_run(
    run: Run,
    directory: str | Path,
    format: FormatName,  # noqa: A002 - as the option of the command is called
    *,
    ranks: Choice = None,
    steps: Choice = None,
    limit_mb: float | None = None,
    inputs: Sequence[Path] = (),
    strict: bool = False,
) -> Made:
    """Write a run as files for other tools, all of them or none, readable by this user alone.

    Args:
        run: The run.
        directory: Where to write: a new or empty directory, or one without files of these names.
        format: Name of the format; see `FORMATS`.
        ranks: Only these ranks: `0,3-5` or numbers.
        steps: Only these steps.
        limit_mb: Size limit of each timeline in MB.
        inputs: Files and directories into which nothing is written, besides those of the run.
        strict: Raise faults of our own instead of leaving out what they concern.

    Returns:
        The files, what was left out and why, and notes.

    Raises:
        StepscopeError: If nothing can be made, or the directory cannot be written, has such files, or is an input.
    """
    chosen, place = check_wishes(format, limit_mb), Path(directory)
    asked = run if ranks is None and steps is None else run.select(ranks, steps)
    apart = [*inputs, *_inputs_of(run)]
    check_place(place, list(chosen.taken(asked)), apart)
    with staging(place) as staged:
        try:
            made = chosen.write(asked, staged, Wishes(limit_mb, strict))
        except StepscopeError as error:
            raise StepscopeError(str(error).replace(str(staged), str(place))) from error
        if not any(path.is_file() for path in staged.rglob("*")):
            reasons = "; ".join(f"{what}: {why}" for what, why in list(made.left_out.items())[:_MOST_REASONS])
            raise StepscopeError(f"{run.name}: nothing can be made of it as {format}. {reasons or 'It has no data'}")
        files = put(staged, place, apart)

    def placed(text: str) -> str:
        return text.replace(str(staged), str(place))

    left_out = {placed(what): placed(why) for what, why in made.left_out.items()}
    return Made(files, left_out, [placed(note) for note in made.notes])


def _inputs_of(run: Run) -> list[Path]:
    """What the ranks of a run were read from, as far as that is on this machine."""
    recordings = [rank.recording for rank in run.original.ranks]
    return [place for one in recordings for place in (one.path, *one.files) if place.is_absolute() and place.exists()]
