"""Writing a run as files of OTLP/JSON lines: traces and metrics of each rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError, close_matches
from stepscope.export.made import NO_PLACE, Made
from stepscope.export.otlp.ids import Ids
from stepscope.export.otlp.line_files import LineFiles
from stepscope.export.otlp.linked_calls import SCHEMA, linked_calls
from stepscope.export.otlp.messages import LONGEST_TEXT, attributes, metrics_line, traces_line
from stepscope.export.otlp.parents import Parents
from stepscope.export.otlp.ranges import TABLE_OF, Ranges
from stepscope.export.otlp.samples import metrics as metrics_of
from stepscope.export.otlp.spans import STEP_CATEGORY, Root, Spans
from stepscope.export.run_tables import table_of
from stepscope.export.whole_directory import whole_directory
from stepscope.run import Run
from stepscope.run.rank import Rank
from stepscope.tables import STEPS, THREADS
from stepscope.timeline.clocks import clocks_of

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

_MOST_MB = 1e9
_SAMPLES = ("counters", "memory_curve")
_TABLES = ("steps", *TABLE_OF.values(), *_SAMPLES)
_NOWHERE = (
    *("kernel_counters", "kernel_resources", "collective_splits", "links", "transports", "allocations", "flows"),
    *("synchronizations", "stacks", "step_totals", "operator_totals", "operator_steps", "communication_totals"),
    *("graphs", "graph_nodes", "graph_tensors", "parallel_graphs", "parallel_nodes", "flop_scopes", "rank_figures"),
    *("host_events", "host_usage", "input_pipeline", "pipeline_operators", "recorded_calls"),
)
"""Tables whose rows are neither spans, attributes, links nor metrics."""
"""Tables whose times the files have."""

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
    Times are on the common clock of the ranks, as in timelines (`timeline/clocks.py`). Memory does not grow with the
    recording but for some tens of bytes a range.

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
    if not 0 < file_mb <= _MOST_MB:
        raise StepscopeError(f"file_mb is {file_mb}. Give a number of MB above 0, up to {_MOST_MB:g}")
    ranges = [Ranges(run, rank) for rank in run.ranks]
    made = Made()
    _require_ranges(run, ranges, chosen, chosen_by_user=categories is not None)
    clock = _Clock(run, ranges)
    calls, unmatched = linked_calls(run, ranges, chosen)
    if unmatched and len(run.ranks) > 1:
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
            shifts = {kind: clock.shift_ns(rank, table) for kind, table in TABLE_OF.items()}
            spans = Spans(rank.rank, ids, shifts, _threads(run, rank))
            with LineFiles(draft, f"traces-rank-{rank.rank}", partial(traces_line, resource), limit) as files:
                files.add(spans.roots(_roots(run, one, chosen, clock)))
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
                    files.add(metrics_of(run, rank, partial(clock.shift_ns, rank), lost))
                samples += files.names
                faults["samples that are no finite numbers"] += sum(lost)
        if not traces and not samples:
            raise StepscopeError(
                f"{run.name}: has neither ranges, steps nor samples of counters or memory. There is nothing to write"
            )
    made.files = [directory / name for name in (*traces, *samples)]
    _tell(made, run, ranges, chosen, written, faults, clock)
    if to is not None:
        from stepscope.export.otlp.sending import send  # noqa: PLC0415 - rarely needed

        for target, names in zip(to, (traces, samples), strict=True):
            number, rejected = send(target, [directory / name for name in names], directory)
            how = ", unencrypted" if target.goes_plain else ""
            made.notes.append(f"{number} requests were sent to {target.shown}{how}.")
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
    """The common clock of the ranks, and how its times become times since 1970 that OTLP can have: not before it."""

    def __init__(self, run: Run, ranges: Sequence[Ranges]) -> None:
        self._common = clocks_of(run, align=True, tables=_TABLES)
        self.notes = self._common.notes
        self.later_ns = 0
        """Whole seconds that are added to all times, so that none is before 1970."""
        firsts = [first + self.shift_ns(one.rank, table) for one in ranges for table, first in _firsts(run, one)]
        earliest = min(firsts, default=0)
        if earliest < 0:
            self.later_ns = (-earliest // _SECOND_NS + 1) * _SECOND_NS

    def offset_ns(self, rank: Rank) -> int:
        """How much the clock of a rank is ahead of the common one."""
        return self._common.by_rank.get(rank.rank, 0)

    def shift_ns(self, rank: Rank, table: str) -> int:
        """What is added to the times of a table of a rank."""
        return self.later_ns - self._common.of(rank.rank, (table,))


def _firsts(run: Run, ranges: Ranges) -> Iterator[tuple[str, int]]:
    """The earliest times of a rank, by table."""
    for kind, first in ranges.summary.select("kind", "first_ns").iter_rows():
        yield TABLE_OF[kind], first
    for table, column in {"steps": "start_ns", **dict.fromkeys(_SAMPLES, "time_ns")}.items():
        rows = table_of(run, table, [ranges.rank])
        first = None if rows is None else rows.select(pl.col(column).min()).collect().item()
        if first is not None:
            yield table, first


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
        "stepscope.clock_offset_ns": clock.offset_ns(rank),
        "stepscope.time_shift_ns": clock.later_ns or None,
    }


def _threads(run: Run, rank: Rank) -> dict[tuple[str | None, str | None], str]:
    """The names of a rank's threads by process and thread."""
    rows = THREADS.or_empty(table_of(run, "threads", [rank])).select("process", "thread", "thread_name").collect()
    return {(process, thread): name[:LONGEST_TEXT] for process, thread, name in rows.iter_rows() if name}


def _roots(run: Run, ranges: Ranges, chosen: frozenset[str], clock: _Clock) -> list[Root]:
    """The traces of a rank in order of time: its steps, and what has ranges without being one of these."""
    columns = ("step", "start_ns", "end_ns", "window", "graph")
    steps = STEPS.or_empty(table_of(run, "steps", [ranges.rank])).select(columns).collect()
    shift = clock.shift_ns(ranges.rank, "steps")
    found: dict[int | None, Root] = {}
    for step, start, end, window, graph in steps.iter_rows():
        found.setdefault(step, (step, start + shift, end + shift, window, graph))
    others: dict[int | None, Root] = {}
    spans = ranges.summary.filter(pl.col("category").is_in(chosen)).select("kind", "step", "first_ns", "last_ns")
    for kind, step, first, last in spans.iter_rows():
        shift = clock.shift_ns(ranges.rank, TABLE_OF[kind])
        _, start, end, *_ = others.get(step, (step, first + shift, last + shift))
        others[step] = (step, min(start, first + shift), max(end, last + shift), None, None)
    return sorted({**others, **found}.values(), key=lambda root: (root[1], root[2], root[0] is None, root[0] or 0))


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
    made.left_out |= dict.fromkeys((name for name in _NOWHERE if run.has(name)), NO_PLACE)
    spans = sum(number for name, number in written.items() if name != STEP_CATEGORY)
    made.notes.append(
        f"{spans} ranges are spans, in {written.get(STEP_CATEGORY, 0)} traces: one for each step of a rank, and for "
        "what is outside all steps."
    )
    made.notes += clock.notes
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
