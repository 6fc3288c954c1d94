"""The pieces of work of each rank: what its host and its device did one after the other, for replaying the job."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.intervals import END, Ranges, pieces
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.pauses import pauses
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.activity import is_on_device, split
from stepscope.limits import limit
from stepscope.tables import COLLECTIVES, KERNELS, OPERATORS
from stepscope.tables.base import Column, schema_of, with_schema
from stepscope.text_columns import filled_in

HOST = "host"
"""Lane of what the host did."""

CALLS = "communication"
"""Lane of the calls of a rank without a device: its host waits for them, whatever it does."""

ON_HOST = ("dispatch", "data_loading", "compile", "checkpoint", "garbage_collection")
"""Kinds of a host's work: launching device work and all that is not marked; waiting for the next batch; compiling;
writing a checkpoint; Python's garbage collection."""

WAITING = "waiting"

KINDS = ("computing", "memory", "communication", *ON_HOST, WAITING)
"""Kinds of work. A piece of kind `waiting` is the rest of a host's wait, after what it waited for had ended."""

MARKED = {"compile": "compile", "gc": "garbage_collection", "checkpoint": "checkpoint", "data": "data_loading"}
"""Marks of the host to kinds of work, first come first."""

_DEVICE_KINDS = {"compute": "computing", "memory": "memory", "communication": "communication"}


@dataclass(frozen=True)
class Limits:
    """What counts as waiting for something that has just ended."""

    wake_ns: int = limit(
        1_000_000, "ns", "a thread that waited for gloo goes on within this time, measured on two cores"
    )
    launch_ns: int = limit(
        50_000, "ns", "launching takes less (measured: 5 to 30 us), so a longer launch may be a wait"
    )
    ahead_factor: float = limit(
        3.0,
        "times the length of the launch, until its kernel begins",
        "chosen by us: such a launch is held back by a full queue",
    )
    resumed_ratio: float = limit(
        0.05,
        "of the host's time, from the end of all that it had launched to its next launch",
        "chosen by us: a host that works launches at any time, so one that does it so soon has waited",
    )
    rounding_ns: int = limit(
        1_000, "ns", "traces have whole microseconds, or fractions that are rounded: work that overlaps by less may not"
    )


COLUMNS = columns(
    "rank",
    Column("work", "int64", "Number of the piece in its rank, in order of start."),
    "step",
    Column(
        "lane",
        "string",
        "`host`, the stream that ran it, or the group of a call without one: pieces of a lane follow one another.",
    ),
    Column("kind", "string", "What it is.", values=KINDS),
    Column("name", "string", "Name of the kernel or call; null for the host."),
    "start_ns end_ns",
    Column(
        "waited",
        "bool",
        "Whether the host waited until it began: for its device, or a call of a CPU; as recorded or as the times show.",
    ),
    Column("launch_ns", "int64", "When the host had launched it; null if unknown."),
    Column("kernel", "int64", "Number of its row in `kernels`; null if it has none."),
    Column("collective", "int64", "Number of its row in `collectives`; null if it has none."),
    nulls="step name launch_ns kernel collective",
    keep="kind name start_ns end_ns lane step",
)

_ROW = names(COLUMNS)


@analysis("rank", COLUMNS, together=True)
def work(
    steps: pl.LazyFrame,
    activity: pl.DataFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
    operators: pl.LazyFrame | None,
    replayed_steps: pl.DataFrame,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Cut what each rank did into pieces that follow one another: one row per piece, in order of start.

    On an accelerator, each kernel and each call is a piece on its stream, and the host's time between launches is cut
    at each launch and by what is marked. While the host waits for its device, only the time after the last device work
    is its own. It waits where that is marked (`sync` of `marks`) and in launches that take long although their kernel
    must wait for many others (the queue is full). On a rank without marked waits, it waits where it goes on just after
    all that it had launched has ended and, if its operators were not recorded either, wherever its device works. In a
    CPU-only recording, the host's time is cut at calls and by what it did, as `activity` knows it; its waits for
    communication end with the call. Of recordings that are too long, only the last steps are cut (`replayed_steps`).
    """
    steps, kernels, collectives = _limited(steps, kernels, collectives, replayed_steps)
    on_device = activity.filter("on_device")["rank"].unique().to_list()
    device = _apart(_device(KERNELS.or_empty(kernels), COLLECTIVES.or_empty(collectives), on_device), limits)
    calls = _host_calls(COLLECTIVES.or_empty(collectives), [r for r in ranks_of(steps) if r not in on_device])
    waited = [] if marks is None else marks.filter(pl.col("what") == "sync")["rank"].unique().to_list()
    hosts = ranks_of(OPERATORS.or_empty(operators))
    launching = _launching(device, steps, marks, _Recorded(hosts, waited), limits)
    parts = [device, calls, launching, _working(calls, steps, activity, limits)]
    rows = pl.concat([with_schema(part, schema_of(COLUMNS)) for part in parts])
    ordered = in_order(rows, "rank", "start_ns", "end_ns", "lane", "kernel", "collective", nulls_last=True)
    whole = ordered.with_columns(
        end_ns=pl.max_horizontal("start_ns", "end_ns"),  # some clocks go back
        waited=(pl.col("kind") == "waiting") | pl.col("waited").fill_null(value=False),
    )
    return whole.with_columns(work=pl.int_range(pl.len(), dtype=pl.Int64).over("rank")).select(_ROW)


def _limited(
    steps: pl.LazyFrame, kernels: pl.LazyFrame | None, collectives: pl.LazyFrame | None, kept: pl.DataFrame
) -> tuple[pl.LazyFrame, pl.LazyFrame | None, pl.LazyFrame | None]:
    """The tables without the steps that are not replayed."""
    known = pl.col("step").is_in(kept["step"].to_list())
    if steps.filter(~known).limit(1).collect().is_empty():
        return steps, kernels, collectives
    kept_kernels, kept_calls = (table if table is None else table.filter(known) for table in (kernels, collectives))
    return steps.filter(known), kept_kernels, kept_calls


def _device(kernels: pl.LazyFrame, collectives: pl.LazyFrame, ranks: list[int]) -> pl.DataFrame:
    """Kernels and device calls, which have the times of their kernel."""
    lane = filled_in("stream {}", pl.col("stream").cast(pl.String).fill_null(pl.lit("?")))
    # A launch may return after its kernel has begun.
    known = pl.col("launch_start_ns") <= pl.col("start_ns")
    launch = pl.when(known).then(pl.min_horizontal("launch_end_ns", "start_ns"))
    found = kernels.select(
        *("rank", "step", "name", "start_ns", "kernel"),
        end_ns=END,
        lane=lane,
        launch_ns=launch,
        call_ns="launch_start_ns",
        kind=pl.col("kind").replace_strict(_DEVICE_KINDS, default="computing"),
    ).collect()
    calls = (
        collectives.filter(pl.col("on_device") & pl.col("rank").is_in(ranks))
        .select("rank", "step", "name", "start_ns", "collective", "group", "stream", end_ns=END)
        .collect()
    )
    is_call = pl.col("kind") == "communication"
    same = ["rank", "start_ns", "end_ns"]
    own = found.filter(is_call).unique(same, keep="first", maintain_order=True)
    own = own.with_columns(own_lane=pl.when(pl.col("lane") != "stream ?").then("lane"))
    # Calls of one group follow one another, also where their stream was not recorded.
    with_kernel = calls.join(
        own.select(*same, "own_lane", "launch_ns", "call_ns", "kernel"), on=same, how="left"
    ).with_columns(
        lane=pl.when(pl.col("stream").is_not_null())
        .then(lane)
        .otherwise(pl.coalesce("own_lane", filled_in("group {}", pl.col("group").fill_null(pl.lit("?"))))),
        kind=pl.lit("communication"),
    )
    others = found.filter(is_call).join(calls, on=same, how="anti")
    return pl.concat(
        [found.filter(~is_call), others, with_kernel.drop("group", "stream", "own_lane")], how="diagonal_relaxed"
    )


def _apart(device: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Device work that ends where other work begins, if they overlap by no more than rounding: else nothing could have
    waited for it."""
    starts = in_order(device.select("rank", next_ns="start_ns"), "rank", "next_ns")
    rows = device.with_row_index("row")
    rounded = (
        rows.select("row", "rank", "start_ns", "end_ns", from_ns=_after_rounding(limits))
        .sort("from_ns")
        .join_asof(starts, left_on="from_ns", right_on="next_ns", by="rank", strategy="forward", check_sortedness=False)
        .filter(pl.col("next_ns") < pl.col("end_ns"))
    )
    if rounded.is_empty():
        return device
    ends = device["end_ns"].scatter(rounded["row"], rounded["next_ns"])
    return device.with_columns(end_ns=ends)


def _after_rounding(limits: Limits) -> pl.Expr:
    """The first moment, after the work began, from which on its end may be rounded."""
    return pl.max_horizontal(pl.col("end_ns") - limits.rounding_ns, pl.col("start_ns") + 1)


def _host_calls(collectives: pl.LazyFrame, ranks: list[int]) -> pl.DataFrame:
    """Calls of ranks without a device."""
    return (
        collectives.filter(pl.col("rank").is_in(ranks))
        .select("rank", "step", "name", "start_ns", "collective", end_ns=END)
        .with_columns(lane=pl.lit(CALLS), kind=pl.lit("communication"))
        .collect()
    )


@dataclass(frozen=True)
class _Recorded:
    """Ranks of whose hosts something is known."""

    operators: list[int]
    waits: list[int]


def _launching(
    device: pl.DataFrame, steps: pl.LazyFrame, marks: pl.DataFrame | None, recorded: _Recorded, limits: Limits
) -> pl.DataFrame:
    """What hosts of devices did between launches."""
    launched = device.filter(pl.col("launch_ns").is_not_null())
    launches = launched.select("rank", at="launch_ns")
    windows = _windows(launches, steps.filter(pl.col("rank").is_in(launched["rank"].unique().to_list())))
    # Of a step without launches nothing was recorded, e.g. after the end of a file that was cut.
    known = pl.col("at_cut").any().over("rank", "step") & pl.col("step").is_not_null()
    windows = _numbered(windows.filter(known))
    cut = pieces(_layers(marks, windows["rank"].unique().to_list()), windows, by=["rank"]).collect()
    kind = first_label({**{kind: mark for mark, kind in MARKED.items()}, "waiting": "sync"}, otherwise="dispatch")
    rows = _in_steps(cut, windows).with_columns(kind=kind, end_ns=END)
    found = _beside_device(rows, device, launched)
    length = pl.col("duration_ns")
    # A call that takes long while its kernel has to wait for many others is held back by a full queue.
    held = (pl.col("called_ns") >= limits.launch_ns) & (pl.col("ahead_ns") >= limits.ahead_factor * pl.col("called_ns"))
    long = (length >= limits.launch_ns) & (pl.col("kind") == "dispatch")
    marked = pl.col("kind") == "waiting"
    # Where no wait was recorded, it waited if it goes on just after all that it had launched has ended.
    rest, through = pl.col("end_ns") - pl.col("worked_ns"), pl.col("through_ns") <= pl.col("worked_ns")
    resumed = long & ~pl.col("rank").is_in(recorded.waits) & through & (rest <= limits.resumed_ratio * length)
    unknown = ~pl.col("rank").is_in([*recorded.waits, *recorded.operators])
    waiting = marked | (long & (held.fill_null(value=False) | unknown)) | resumed.fill_null(value=False)
    is_own = pl.col("worked_ns").is_null() | (pl.col("worked_ns") <= pl.col("start_ns"))
    kind = pl.when(is_own & marked).then(pl.lit("dispatch")).when(~is_own & long & held).then(pl.lit("waiting"))
    # While the host waits, the device works: of the wait only what follows the device's last work is the host's own.
    return found.with_columns(
        kind=kind.otherwise("kind"),
        waited=~is_own & resumed,
        start_ns=pl.when(waiting).then(pl.max_horizontal("start_ns", "worked_ns")).otherwise("start_ns"),
        lane=pl.lit(HOST),
    )


def _beside_device(rows: pl.DataFrame, device: pl.DataFrame, launched: pl.DataFrame) -> pl.DataFrame:
    """Pieces of hosts in order of rank and time, which is all that these joins need, with the last end of device work
    until they end (`worked_ns`), the end of all that was launched before they begin (`through_ns`), how long before its
    kernel began the launch with which they end returned (`ahead_ns`), and how long that took (`called_ns`)."""
    ends = device.select("rank", worked_ns="end_ns").sort("worked_ns")
    in_turn = launched.select("rank", "launch_ns", "end_ns").sort("launch_ns", maintain_order=True)
    through = in_turn.select("rank", "launch_ns", through_ns=pl.col("end_ns").cum_max().over("rank"))
    ahead = launched.group_by("rank", end_ns="launch_ns").agg(
        ahead_ns=(pl.col("start_ns") - pl.col("launch_ns")).min(),
        called_ns=(pl.col("launch_ns") - pl.col("call_ns")).max(),
    )
    return (
        rows.join_asof(ends, left_on="end_ns", right_on="worked_ns", by="rank", check_sortedness=False)
        .join_asof(through, left_on="start_ns", right_on="launch_ns", by="rank", check_sortedness=False)
        .join(ahead, on=["rank", "end_ns"], how="left", maintain_order="left")
    )


def _working(calls: pl.DataFrame, steps: pl.LazyFrame, activity: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """What hosts without devices did, cut at their calls' starts and ends."""
    own = activity.filter(~is_on_device(activity))
    if own.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    at = pl.concat([calls.select("rank", at=side) for side in ("start_ns", "end_ns")])
    windows = _windows(at, steps.filter(pl.col("rank").is_in(own["rank"].unique().to_list())))
    kinds = ("computing", "communication", "memory", *MARKED, "phase")
    cut = split(own, windows.lazy(), kinds).collect()
    kind = first_label(
        {**{kind: mark for mark, kind in MARKED.items()}, "computing": "computing", "waiting": "communication"}
    )
    rows = _in_steps(cut, windows).with_columns(kind=kind.fill_null("dispatch"), end_ns=END)
    # It waits for the call that ends when, or just before, it goes on.
    ends = calls.select("rank", over_ns="end_ns").sort("over_ns")
    found = rows.join_asof(ends, left_on="end_ns", right_on="over_ns", by="rank", check_sortedness=False)
    waiting = pl.col("kind") == "waiting"
    woken = (pl.col("over_ns") > pl.col("start_ns")) & (pl.col("end_ns") - pl.col("over_ns") <= limits.wake_ns)
    # If no call ended then, it is unknown what ended the wait, so it stays as long as it was.
    return found.with_columns(
        start_ns=pl.when(waiting & woken).then("over_ns").otherwise("start_ns"), lane=pl.lit(HOST)
    )


def _windows(cuts: pl.DataFrame, steps: pl.LazyFrame) -> pl.DataFrame:
    """Each rank's time from its first step to its last cut or step, cut there: numbered, with the step they are in (the
    last that began; null while the recording pauses) and whether they end at a cut (`at_cut`)."""
    bounds = steps.select("rank", "step", "start_ns", "end_ns").collect()
    extent = bounds.group_by("rank").agg(first_ns=pl.col("start_ns").min())
    sides = [bounds.select("rank", at=side, is_bound=pl.lit(value=True)) for side in ("start_ns", "end_ns")]
    at = pl.concat([cuts.select("rank", "at", is_bound=pl.lit(value=False)), *sides])
    ordered = in_order(at.join(extent, on="rank").filter(pl.col("at") >= pl.col("first_ns")), "rank", "at", "is_bound")
    again = (pl.col("rank") == pl.col("rank").shift(1)) & (pl.col("at") == pl.col("at").shift(1))
    once = ordered.filter(~again.fill_null(value=False))
    windows = once.select(
        "rank",
        start_ns="at",
        end_ns=pl.when(pl.col("rank") == pl.col("rank").shift(-1)).then(pl.col("at").shift(-1)),
        at_cut=~pl.col("is_bound").shift(-1),
    ).drop_nulls()
    begun = bounds.sort("start_ns", "step").with_columns(
        to_next=pl.col("step").shift(-1).over("rank") == pl.col("step") + 1
    )
    placed = windows.join_asof(
        begun.select("rank", "start_ns", "step", "to_next", over_ns="end_ns"),
        on="start_ns",
        by="rank",
        check_sortedness=False,
    )
    breaks = pauses(bounds).select("rank", "start_ns", until_ns="end_ns").sort("start_ns")
    placed = placed.join_asof(breaks, on="start_ns", by="rank", check_sortedness=False)
    # What follows a step belongs to it until the next one begins, unless steps lie between that were not recorded, or
    # the recording pauses.
    paused = (pl.col("start_ns") < pl.col("until_ns")).fill_null(value=False)
    of_step = (pl.col("start_ns") < pl.col("over_ns")) | (pl.col("to_next") & ~paused)
    return _numbered(placed.with_columns(step=pl.when(of_step).then("step")))


def _numbered(windows: pl.DataFrame) -> pl.DataFrame:
    return windows.with_columns(window=pl.int_range(pl.len(), dtype=pl.Int64))


def _layers(marks: pl.DataFrame | None, ranks: list[int]) -> dict[str, Ranges]:
    """The host's marks that tell its work apart, by kind."""
    empty = pl.DataFrame(schema={"rank": pl.Int32, "what": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64})
    rows = (empty if marks is None else marks).filter(pl.col("rank").is_in(ranks))
    return {what: rows.filter(pl.col("what") == what).drop("what") for what in (*MARKED, "sync")}


def _in_steps(cut: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    return cut.with_columns(step=windows["step"].gather(cut["window"]))
