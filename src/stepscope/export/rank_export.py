"""What an exporter works on: one rank of a run, what is wanted of it, and where to write.

A recording of our own has more than the tables say: raw files, and `recording.json`. Other recordings do not have
these, and what is made of them alone is left out.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl

from stepscope.errors import StepscopeError, UnreadableInput
from stepscope.json_files import value_in
from stepscope.json_values import whole_number
from stepscope.recording_format.reading import is_recording, read_about
from stepscope.recording_format.rows import TIMES, CsvFile
from stepscope.run import Run, open_run
from stepscope.run.iterations import BY_STEP, by_iterations
from stepscope.run.rank import narrowed
from stepscope.selection import Choice
from stepscope.sources.recording.lines import read_all_rows
from stepscope.tables import STEPS, TABLES
from stepscope.tables.memory import SHARED_MEMORY
from stepscope.tables.steps import WHOLE_RECORDING

TIMELINE_LIMIT_BYTES = 500 << 20
_PART_BYTES = 1 << 20

_log = logging.getLogger("stepscope")


def log_fault(what: str, fault: Exception) -> None:
    """Say in the log that something could not be made; a full disk or missing data needs no traceback."""
    is_ours = not isinstance(fault, (OSError, StepscopeError))
    _log.error("%s could not be made: %s", what, fault, exc_info=fault if is_ours else None)


@dataclass
class RankExport:
    """The export of one rank.

    Args:
        run: The recorded rank alone, as a run of one rank, narrowed to the wanted steps.
        rank: Its number, as in the names of files.
        recording: What was recorded: the directory of raw data if it is our own recording, else a file or directory.
        about: Its `recording.json`; empty if it is not our own recording.
        directory: Where to write: the `profiler` directory, and a staging directory while files are made.
        steps: The wanted steps; None for all.
        pretty: Indent JSON.
        timeline_limit_bytes: Timelines end before they grow beyond this.
        data_simplification: Leave out what can be made again from the rest.
    """

    run: Run
    rank: int
    recording: Path
    about: dict[str, Any]
    directory: Path
    steps: list[int] | None = None
    pretty: bool = False
    timeline_limit_bytes: int = TIMELINE_LIMIT_BYTES
    data_simplification: bool = True
    recorded: list[int] | None = None
    """All steps of the recording, wanted or not; None for those of `run`."""
    arrivals: Callable[[], pl.DataFrame | None] = lambda: None
    """The rank's rows of `arrival`; None if the recordings of its peers are not exported with it."""
    on_fault: Callable[[str, Exception], None] = log_fault
    """Called with what could not be made, and why."""
    written: list[str] = field(default_factory=list)
    """Files made so far, relative to `directory`."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What could not be made, by file name, and why."""
    began_ns: int = field(default_factory=time.time_ns)
    """When the export began."""

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The rank's row of `ranks`; what is missing there is taken from `recording.json`."""
        stated = {**self.about, "process": self.about.get("pid"), "device": self.about.get("device_id")}
        return {name: stated.get(name) if value is None else value for name, value in self.run.ranks[0].facts.items()}

    @property
    def is_own(self) -> bool:
        """Whether it is our own recording, with raw files and `recording.json`."""
        return bool(self.about)

    @cached_property
    def parallel(self) -> dict[str, Any]:
        """What is known of the kind of parallelism: `parallel_mode`, `stage_num`..."""
        known = self.about.get("parallel") or value_in(self.facts.get("parallelism"))
        return dict(known) if isinstance(known, dict) else {}

    @property
    def recorded_steps(self) -> frozenset[int]:
        """The numbers of all steps of the recording, wanted or not; not what ran before the first one."""
        return frozenset(step for step in (self.run.steps if self.recorded is None else self.recorded) if step > 0)

    @cached_property
    def step_numbers(self) -> list[int]:
        """The numbers of the wanted steps in order of time: in classic files the first of them is step 1."""
        return self.numbered_steps["step"].to_list()

    @cached_property
    def numbered_steps(self) -> pl.DataFrame:
        """The wanted steps in order of time, without what ran before the first one."""
        return self.rows("steps").filter(pl.col("step") > 0).sort("start_ns")

    @property
    def has_steps(self) -> bool:
        """Whether the recording has steps, and not only one window around all of it."""
        return bool((self.rows("steps")["window"] != WHOLE_RECORDING).any())

    @property
    def is_mindspore(self) -> bool:
        """Whether operator names carry MindSpore's scopes."""
        return bool(self.facts["framework"] == "mindspore")

    @property
    def on_gpu(self) -> bool:
        """Whether there is device work of a GPU."""
        return self.run.has("kernels") and self.facts["device_kind"] != "npu"

    @cached_property
    def window_ns(self) -> tuple[int, int] | None:
        """From the start of the first wanted step to the end of the last; None without steps."""
        found = self.numbered_steps
        return (found["start_ns"].min(), found["end_ns"].max()) if found.height else None  # type: ignore[return-value]

    def lazy(self, table: str) -> pl.LazyFrame:
        """A table in the wanted steps; empty, with its columns, if the rank has none.

        If others have recorded no steps, certain iterations stand for them, as for analyses.
        """
        if not self.run.has(table):
            return pl.LazyFrame(schema=TABLES[table].schema)
        found = None if self.is_own else self.run.iterations
        if found is None or table not in (STEPS.name, *BY_STEP):
            return self.run.table(table)
        rank = self.run.ranks[0]
        return narrowed(by_iterations(rank.whole.table(table), [rank], table, found.steps), table, rank.steps)

    def rows(self, table: str) -> pl.DataFrame:
        """The rows of a table in the wanted steps; empty, with its columns, if the rank has none."""
        return self.lazy(table).collect()

    def allocator_rows(self, table: Literal["allocations", "memory_curve"]) -> pl.DataFrame:
        """The rows of a memory table without blocks that processes share, which no allocator counts."""
        return self.rows(table).filter(pl.col("component").ne_missing(pl.lit(SHARED_MEMORY)))

    def raw(self, csv_file: CsvFile) -> pl.DataFrame:
        """The rows of a CSV file of the recording, by the clock of the tables; reading these reports damage.

        Only our own recordings have such files, so there are no rows of others.
        """
        shift_ns = whole_number((self.about.get("clock") or {}).get("offset_ns")) or 0
        rows = read_all_rows(self.recording if self.is_own else None, csv_file, lambda *_, **__: None)
        types = {"step": pl.Int32, "thread": pl.Int64}
        return rows.with_columns(
            *(pl.col(column) + shift_ns for column in TIMES if column in rows.columns),
            *(pl.col(name).cast(kind, strict=False) for name, kind in types.items() if name in rows.columns),
        )

    def within(self, rows: pl.DataFrame, column: str) -> pl.DataFrame:
        """Rows that have a time but no step: all of them, or those within the wanted steps."""
        if self.steps is None or self.window_ns is None:
            return rows
        return rows.filter(pl.col(column).is_between(*self.window_ns))

    def because(self, reason: str, of_ours: str) -> str:
        """Why something is missing, with what may have caused it in a recording of ours."""
        return f"{reason} ({of_ours})" if self.is_own else reason

    def leave_out(self, name: str, reason: str) -> None:
        """Note that a file could not be made, or not completely."""
        self.left_out[name] = reason

    def attempt(self, name: str, make: Callable[[], None]) -> None:
        """Make something; if that fails, the reason is kept under its name, and the rest can be made all the same."""
        try:
            make()
        except Exception as fault:
            self.on_fault(f"{name} of {self.recording}", fault)
            self.leave_out(name, f"{type(fault).__name__}: {fault}")

    def write_json(self, name: str, content: Any) -> None:
        """Write one JSON file, indented with `pretty`."""
        self.write(name, json.dumps(content, indent=4 if self.pretty else None, ensure_ascii=False))

    def json_text(self, content: Any) -> str:
        """JSON, indented with `pretty`; a value that JSON does not know becomes text."""
        return json.dumps(content, indent=4 if self.pretty else None, default=str)

    def copy(self, name: str, source: Path) -> None:
        """Copy a file of the recording; raises `OSError` if it cannot be read or written."""
        with source.open("rb") as file:
            self.write(name, iter(lambda: file.read(_PART_BYTES), b""))

    def write(self, name: str, text: str | bytes | Iterable[str] | Iterable[bytes]) -> None:
        """Write one file whole or not at all, for this user alone.

        Args:
            name: Relative to `directory`; missing directories are created.
            text: The content, or its parts in order.

        Raises:
            OSError: If it cannot be written.
        """
        path = self.directory / name
        make_private(path.parent)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for part in [text] if isinstance(text, (str, bytes)) else text:
                    file.write(part.encode("utf-8", "backslashreplace") if isinstance(part, str) else part)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if name not in self.written:
            self.written.append(name)


def make_private(directory: Path) -> None:
    """Create a directory and those above it, as far as they are missing, for this user alone."""
    for missing in reversed([place for place in (directory, *directory.parents) if not place.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def open_recording(recording: Path, opener: Callable[[Path], Run] = open_run, steps: Choice = None) -> RankExport:
    """Open a recording for export.

    Args:
        recording: Its directory.
        opener: Opens a recording as a run.
        steps: Only these steps; None for all.

    Raises:
        StepscopeError: If it is no recording, cannot be read, or has none of the steps.
    """
    about = read_about(recording).as_json()
    run = opener(recording)
    recorded = run.steps
    if steps:
        run = run.select(steps=steps)
    rank = about.get("rank")
    options = about.get("options") or {}
    limit_mb = options.get("timeline_limit")
    return RankExport(
        run,
        run.ranks[0].rank if rank is None else int(rank),
        recording,
        about,
        recording.parent.parent,
        [step for step in run.steps if step > 0] if steps else None,
        timeline_limit_bytes=limit_mb << 20 if type(limit_mb) is int and limit_mb > 0 else TIMELINE_LIMIT_BYTES,
        data_simplification=options.get("data_simplification") is not False,
        recorded=recorded,
    )


def export_of(run: Run, rank: int, directory: Path) -> RankExport:
    """The export of one rank of a run, whoever recorded it.

    Args:
        run: The run, narrowed to the wanted steps. How long the rank waited for others is taken from all its ranks.
        rank: The number of the rank.
        directory: Where to write.

    Raises:
        StepscopeError: If the run has no such rank.
    """
    alone, original = run.select(ranks=rank), run.original
    steps = run.rank(rank).steps
    source = run.rank(rank).path

    def arrivals() -> pl.DataFrame | None:
        if len(run.whole.ranks) < 2 or not run.whole.has("collectives"):
            return None
        try:
            return run.whole.analyse("arrival").filter(pl.col("rank") == rank)
        except StepscopeError:  # calls of its peers do not match; then its own times stand
            return None

    return RankExport(
        alone,
        rank,
        source,
        _about(source),
        directory,
        None if steps is None else [step for step in alone.steps if step > 0],
        recorded=original.select(ranks=rank).steps,
        arrivals=arrivals,
    )


def _about(source: Path) -> dict[str, Any]:
    """`recording.json` of our own recording; empty if it is another's, or damaged."""
    if not source.is_dir() or not is_recording(source):
        return {}
    try:
        return read_about(source).as_json()
    except UnreadableInput:
        return {}
