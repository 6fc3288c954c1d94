"""Writing a run as files of OTLP/JSON lines: traces and metrics of each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.export.made import Made
from stepscope.export.otlp.ids import Ids
from stepscope.export.otlp.line_files import LineFiles
from stepscope.export.otlp.linked_calls import SCHEMA, linked_calls
from stepscope.export.otlp.messages import LONGEST_TEXT, attributes, metrics_line, traces_line
from stepscope.export.otlp.parents import Parents
from stepscope.export.otlp.ranges import Ranges
from stepscope.export.otlp.samples import metrics as metrics_of
from stepscope.export.otlp.spans import STEP_CATEGORY, Spans
from stepscope.export.run_tables import table_of
from stepscope.export.whole_directory import whole_directory
from stepscope.run import Run
from stepscope.run.rank import Rank
from stepscope.tables import STEPS, THREADS

CATEGORIES = (
    *("annotation", "operator", "kernel", "memory", "communication", "communication_task"),
    *("compile", "gc", "mark", "other"),
    *("python", "runtime", "queue", "device_annotation", "overhead"),
)
"""All categories of ranges."""

LEFT_OUT = ("python", "runtime", "queue", "device_annotation", "communication_task", "overhead", "other")
"""Categories that are only written if they are chosen: most ranges of many recordings, of which a trace viewer shows
few at once, what repeats others on the device, and what the profiler does itself."""

DEFAULT_CATEGORIES = tuple(name for name in CATEGORIES if name not in LEFT_OUT)

FILE_MB = 256.0
"""Size of a file, chosen by us."""

_SECOND_NS = 1_000_000_000
_FACTS = ("device_kind", "device", "device_name", "framework", "framework_version", "backend", "format")


def write_otlp(
    run: Run,
    directory: Path,
    *,
    endpoint: str | None = None,
    categories: Collection[str] | None = None,
    metrics: bool = True,
    file_mb: float = FILE_MB,
) -> Made:
    """Write the ranges of a run as OpenTelemetry's spans, in files that its collector reads (`otlpjsonfile`).

    Each step of a rank is a trace, with a span around the step; what is outside all steps is one more trace. In it,
    each range is below the one around it, and device work below its launch. Spans of one call between ranks are linked.
    Times are on the common clock of the ranks (see the analysis `clocks`), and memory does not grow with the recording
    but for some tens of bytes a range.

    Args:
        run: The run, perhaps narrowed to some ranks and steps.
        directory: Where to: new or empty. Gets `traces-rank-<n>.jsonl` and, with samples, `metrics-rank-<n>.jsonl`.
        endpoint: Also send all to this collector over HTTP, e.g. `http://localhost:4318`, with the headers of
            `OTEL_EXPORTER_OTLP_HEADERS`.
        categories: Of the ranges (see the table `slices`); None for `DEFAULT_CATEGORIES`.
        metrics: Whether to write counters and memory of allocators.
        file_mb: Files are split before they grow beyond so many MB.

    Returns:
        What was written and sent. Categories of which there are ranges that were not chosen are left out, by number.

    Raises:
        StepscopeError: If a category or the endpoint cannot be used, there is nothing to write, or the directory has
            files, is in a recording or cannot be written: then nothing is there. If the endpoint does not take it, the
            files are there.
    """
    chosen = _chosen(categories)
    to = None if endpoint is None else _targets(endpoint)
    if not file_mb > 0:
        raise StepscopeError(f"file_mb is {file_mb}. Give a number of MB above 0")
    ranges = [Ranges(run, rank) for rank in run.ranks]
    made = Made()
    _require_ranges(run, ranges, chosen, chosen_by_user=categories is not None)
    clock = _Clock(run, ranges)
    calls, unmatched = linked_calls(run, ranges, chosen)
    if unmatched:
        made.left_out["links between ranks"] = unmatched
    ids, limit = Ids(run), round(file_mb * 1e6)
    traces: list[str] = []
    samples: list[str] = []
    written: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    with whole_directory(directory, run) as draft:
        for one in ranges:
            rank = one.rank
            resource = attributes(_resource(run, rank, clock))
            spans = Spans(rank.rank, ids, clock.shift_ns(rank), _threads(run, rank))
            with LineFiles(draft, f"traces-rank-{rank.rank}", partial(traces_line, resource), limit) as files:
                files.add(spans.roots(_steps(run, one, chosen)))
                parents = Parents(one.slices, chosen)
                linked = calls.get(rank.rank, pl.DataFrame(schema=SCHEMA))
                for part in one.parts(chosen):
                    found = part.join(linked, on=["kind", "number"], how="left", maintain_order="left")
                    files.add(spans.of(parents.of(found)))
            traces += files.names
            written += spans.written
            faults += spans.faults
            if metrics:
                lost: list[int] = []
                with LineFiles(draft, f"metrics-rank-{rank.rank}", partial(metrics_line, resource), limit) as files:
                    files.add(metrics_of(run, rank, clock.shift_ns(rank), lost))
                samples += files.names
                faults["samples that are no finite numbers"] += sum(lost)
        if not traces and not samples:
            raise StepscopeError(f"{run.name}: has neither ranges, steps nor samples. There is nothing to write")
    made.files = [directory / name for name in (*traces, *samples)]
    _tell(made, run, ranges, chosen, written, faults, clock)
    if to is not None:
        from stepscope.export.otlp.sending import send  # noqa: PLC0415 - rarely needed

        for target, names in zip(to, (traces, samples), strict=True):
            number, rejected = send(target, [directory / name for name in names], directory)
            made.notes.append(f"{number} requests were sent to {target.shown}.")
            if rejected:
                made.left_out[target.shown] = f"the collector says that it did not take {rejected} spans or samples"
    return made


def _chosen(categories: Collection[str] | None) -> frozenset[str]:
    if categories is None:
        return frozenset(DEFAULT_CATEGORIES)
    for name in categories:
        if name not in CATEGORIES:
            raise StepscopeError(f"there is no category {name!r} of ranges. {close_matches(name, CATEGORIES)}")
    if not categories:
        raise StepscopeError(f"no category of ranges is chosen. There are: {', '.join(CATEGORIES)}")
    return frozenset(categories)


def _targets(endpoint: str) -> tuple[Any, Any]:
    from stepscope.export.otlp.sending import targets  # noqa: PLC0415 - rarely needed

    return targets(endpoint)


def _require_ranges(run: Run, ranges: Sequence[Ranges], chosen: frozenset[str], *, chosen_by_user: bool) -> None:
    """Ensure that there are ranges of the chosen categories, if there are any and the user chose some."""
    there = {name for one in ranges for name in one.summary["category"]}
    if there and chosen_by_user and not there & chosen:
        raise StepscopeError(
            f"{run.name}: has no ranges of {', '.join(sorted(chosen))}. It has {', '.join(sorted(there))}"
        )


class _Clock:
    """The common clock of the ranks, and how their times become times since 1970 that OTLP can have: not before it."""

    def __init__(self, run: Run, ranges: Sequence[Ranges]) -> None:
        self.offsets: Mapping[int, int] = {}
        try:
            rows = run.analyse("clocks").select("rank", "offset_ns").iter_rows()
            self.offsets = {rank: offset for rank, offset in rows if offset}
        except Unavailable:
            pass  # without calls between ranks nothing is known of their clocks
        firsts = [
            first - self.offsets.get(one.rank.rank, 0)
            for one in ranges
            for first in (*one.summary["first_ns"], *_first(run, one.rank))
        ]
        earliest = min(firsts, default=0)
        self.later_ns = 0 if earliest >= 0 else (-earliest // _SECOND_NS + 1) * _SECOND_NS
        """Whole seconds that are added to all times, so that none is before 1970."""

    def shift_ns(self, rank: Rank) -> int:
        """What is added to the times of a rank."""
        return self.later_ns - self.offsets.get(rank.rank, 0)


def _first(run: Run, rank: Rank) -> list[int]:
    """The earliest times of a rank's steps and samples."""
    times = {"steps": "start_ns", "counters": "time_ns", "memory_curve": "time_ns"}
    tables = [(table_of(run, name, [rank]), column) for name, column in times.items()]
    firsts = [rows.select(pl.col(column).min()).collect().item() for rows, column in tables if rows is not None]
    return [first for first in firsts if first is not None]


def _resource(run: Run, rank: Rank, clock: _Clock) -> dict[str, Any]:
    """What is told of a rank with all its spans; names without `stepscope.` are OpenTelemetry's own."""
    facts = rank.facts
    return {
        "service.name": run.name[:LONGEST_TEXT],
        "service.instance.id": f"rank {rank.rank}",
        "host.name": facts["host"],
        "process.pid": facts["process"],
        "stepscope.rank": rank.rank,
        "stepscope.world_size": run.world_size,
        **{f"stepscope.{name}": facts[name] for name in _FACTS},
        "stepscope.times_since_epoch": facts["start_ns"] is not None and not clock.later_ns,
        "stepscope.clock_offset_ns": clock.offsets.get(rank.rank, 0),
        "stepscope.time_shift_ns": clock.later_ns or None,
    }


def _threads(run: Run, rank: Rank) -> dict[tuple[str | None, str | None], str]:
    """The names of a rank's threads by process and thread."""
    rows = THREADS.or_empty(table_of(run, "threads", [rank])).select("process", "thread", "thread_name").collect()
    return {(process, thread): name[:LONGEST_TEXT] for process, thread, name in rows.iter_rows() if name}


def _steps(run: Run, ranges: Ranges, chosen: frozenset[str]) -> pl.DataFrame:
    """The traces of a rank: its steps, and what has ranges without being one of these; see `Spans.roots`."""
    columns = ("step", "start_ns", "end_ns", "window", "graph")
    steps = STEPS.or_empty(table_of(run, "steps", [ranges.rank])).select(columns).collect()
    steps = steps.unique("step", keep="first", maintain_order=True)
    found = ranges.summary.filter(pl.col("category").is_in(chosen)).group_by("step")
    others = (
        found.agg(start_ns=pl.col("first_ns").min(), end_ns=pl.col("last_ns").max())
        .join(steps, on="step", how="anti", nulls_equal=True)
        .with_columns(window=pl.lit(None, pl.String), graph=pl.lit(None, pl.Int64))
    )
    return pl.concat([steps, others.select(columns)]).sort("start_ns", "step", nulls_last=True)


def _tell(
    made: Made,
    run: Run,
    ranges: Sequence[Ranges],
    chosen: frozenset[str],
    written: Mapping[str, int],
    faults: Mapping[str, int],
    clock: _Clock,
) -> None:
    """Say what the files have, and what not."""
    there: Counter[str] = Counter()
    for one in ranges:
        there.update(dict(one.summary.group_by("category").agg(pl.col("ranges").sum()).iter_rows()))
    for name in sorted(there.keys() - chosen):
        made.left_out[f"{name} ranges"] = f"{there[name]} ranges: this category was not chosen"
    reasons = {
        "cut texts": f"were cut to {LONGEST_TEXT} characters",
        "negative durations": "were written as 0; `stepscope.duration_ns` has them",
        "samples that are no finite numbers": "were left out",
    }
    for fault, number in sorted(faults.items()):
        if number:
            made.left_out[fault] = f"{number} {reasons[fault]}"
    spans = sum(number for name, number in written.items() if name != STEP_CATEGORY)
    made.notes.append(
        f"{spans} ranges are spans, in {written.get(STEP_CATEGORY, 0)} traces: one for each step of a rank, and for "
        "what is outside all steps."
    )
    if clock.offsets:
        made.notes.append(
            f"Times of {len(clock.offsets)} of {len(run.ranks)} ranks were moved to the common clock of the ranks; "
            "`stepscope.clock_offset_ns` says by how much."
        )
    if clock.later_ns:
        made.notes.append(
            f"All times are {clock.later_ns // _SECOND_NS} s later than recorded, as OTLP has no times before 1970."
        )
    zeros = [rank.rank for rank in run.ranks if rank.facts["start_ns"] is None]
    if zeros:
        made.notes.append(
            f"Times of {len(zeros)} of {len(run.ranks)} ranks count from the zero of their recording, so viewers show "
            "them in 1970."
        )
