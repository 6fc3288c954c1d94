"""The longest gaps of a rank: what the host did in them, at which layer, and what ended them."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, with_last
from stepscope.analysis.methods.own_time import own_times
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.gap_ends import LIMIT, PLACES, near_gaps
from stepscope.analysis.step.marks import ANNOTATIONS
from stepscope.sources.nesting import enclosing
from stepscope.tables import SLICES, SYNCHRONIZATIONS
from stepscope.tables.base import Column
from stepscope.text_columns import filled_in

LAYERS = (
    "framework",
    "python",
    "runtime",
    "driver",
    "data loader",
    "checkpoint",
    "garbage collection",
    "compiler",
    "nothing recorded",
)

OF_CAUSES = {
    "data_loading": "data loader",
    "checkpoint": "checkpoint",
    "garbage_collection": "garbage collection",
    "compile": "compiler",
}
"""Causes of idle time that are layers of their own."""

OF_CATEGORIES = {
    "operator": "framework",
    "queue": "framework",
    "python": "python",
    "gc": "garbage collection",
    "compile": "compiler",
}

DRIVER = r"^(cu[A-Z]|hsa_|Runtime@|rt[A-Z])"
"""Calls of the driver: of CUDA, of ROCm, and of the lower library of CANN, whose upper one is `AscendCL`."""

STEP_MARK = r"^(ProfilerStep#\d+|PyTorch Profiler.*|Default)$"
"""Annotations of whole steps, which explain nothing."""

LIBRARY = r"(^|/)(torch|site-packages|dist-packages|lib/python\d|mindspore)/|<frozen|<built-in"
"""Python functions that are not the user's."""

FUNCTION = r"^.+\(\d+\): .+$"
"""A Python function with its file and line."""

MOST = 0.5
"""Share of a gap from which a range covers most of it, chosen by us."""

_MARKS = {"data_loading": "data", "checkpoint": "checkpoint", "compile": "compile"}
"""Causes whose ranges are marked by name (`marks`)."""

_HOST = ("operator", "annotation", "runtime", "queue", "gc", "compile", "python")
_THREAD = ["gap", "process", "thread"]

HOST = (
    Column("layer", "string", "Where the host spent most of the gap.", values=LAYERS),
    Column("during", "string", "Innermost host range that covers most of the gap; null if there is none."),
    Column("during_ratio", "float64", "Share of the gap that it covers."),
    Column("mostly", "string", "Host range with most time outside of the ranges in it, summed by name; null if none."),
    Column("mostly_ratio", "float64", "Share of the gap that it takes."),
    Column(
        "place", "string", "Python function, with file and line, of the script around most of the gap, if recorded."
    ),
    Column("process", "string", "Process of the host thread that these are about; null if none was recorded."),
    Column("thread", "string", "This thread: the one that launched the next work, unless that one was idle."),
)
"""What the host did."""

COLUMNS = columns(
    *PLACES,
    *HOST,
    Column("waits_for", "string", "What the stream waited for meanwhile, as recorded; null if nothing was recorded."),
    nulls="before_name next_name next_stream launched ahead_ns during during_ratio mostly mostly_ratio place process "
    "thread waits_for",
    keep="rank step duration_ns cause layer during next_name mostly launched start_ns",
)


@analysis("rank", COLUMNS, together=True, passes=("limit", "chosen"))
def gaps(
    gap_ends: pl.DataFrame,
    slices: pl.LazyFrame | None,
    synchronizations: pl.LazyFrame | None,
    limit: int = LIMIT,
) -> pl.DataFrame:
    """Explain the longest gaps of each rank, in which nothing ran: one row per gap, longest first.

    The host is seen on the thread that launched the work after the gap or, if that one ran nothing in most of the gap,
    on the one that did most; for a cause that is marked, on that of its mark. `layer` is where this thread spent most
    of the gap; time in a range counts for the innermost one. For data loading, checkpoints, garbage collection and
    compiling, it is what `cause` says.

    Args:
        limit: Number of gaps of each rank.
    """
    longest = gap_ends.sort("rank", -pl.col("duration_ns"), "start_ns").group_by("rank", maintain_order=True)
    chosen = longest.head(limit)
    explained = explained_gaps(chosen, slices, synchronizations)
    return explained.select(names(COLUMNS)).sort("rank", -pl.col("duration_ns"), "start_ns")


def explained_gaps(
    gaps: pl.DataFrame, slices: pl.LazyFrame | None, synchronizations: pl.LazyFrame | None
) -> pl.DataFrame:
    """Some gaps (`gap_ends`) with what the host did in them (`HOST`) and `waits_for`, in the order of time."""
    numbered = gaps.sort("rank", "start_ns").with_columns(gap=pl.int_range(pl.len(), dtype=pl.Int64), end_ns=END)
    ran = _ran(numbered, slices)
    threads = _threads(numbered, ran, _launchers(numbered, slices))
    ran = ran.join(threads.select(_THREAD), on=_THREAD, how="semi", nulls_equal=True)
    found = (
        numbered.join(threads, on="gap", how="left")
        .join(_during(ran), on="gap", how="left")
        .join(_mostly(ran), on="gap", how="left")
        .join(_place(ran), on="gap", how="left")
        .join(_layer(ran), on="gap", how="left")
        .join(_waits(numbered, synchronizations), on="gap", how="left")
    )
    by_cause = pl.col("cause").replace_strict(OF_CAUSES, default=None, return_dtype=pl.String)
    return found.with_columns(layer=pl.coalesce(by_cause, "layer", pl.lit(LAYERS[-1]))).sort("gap")


def _ran(gaps: pl.DataFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The host's ranges in gaps: one row per gap and range that overlap, with `inside_ns` (how long), `own_ns` (outside
    of the ranges in it), `ratio` (share of the gap), `layer` and `inner` (how many others are around it)."""
    host = SLICES.or_empty(slices).filter(pl.col("category").is_in(_HOST) & (pl.col("duration_ns") > 0))
    known = ("rank", "depth", "category", "name", "process", "thread")
    bounds = gaps.select("rank", "start_ns", "end_ns")
    parts = []
    for batch in batches(near_gaps(host, gaps).select(*known, "start_ns", end_ns=END)):
        # gaps are disjoint: a range overlaps one if it overlaps the last that begins before its end
        last = with_last(batch.rename({"start_ns": "since_ns", "end_ns": "at_ns"}), bounds, at="at_ns")
        near = last.filter(pl.col("until_ns") > pl.col("since_ns")).drop("until_ns")
        if near.height:
            parts.append(_overlapping(near, gaps))
    empty = _overlapping(pl.DataFrame(schema=_RANGES), gaps.clear())
    return _measured(pl.concat([empty, *parts]))


_RANGES = {name: SLICES.schema[name] for name in ("rank", "depth", "category", "name", "process", "thread")}
_RANGES |= {"since_ns": pl.Int64(), "at_ns": pl.Int64()}


def _overlapping(ranges: pl.DataFrame, gaps: pl.DataFrame) -> pl.DataFrame:
    """Each pair of a range and a gap of its rank that overlap."""
    inside = pl.min_horizontal("at_ns", "end_ns") - pl.max_horizontal("since_ns", "start_ns")
    spans = gaps.select("rank", "gap", "start_ns", "end_ns", "duration_ns")
    pairs = ranges.join_where(
        spans.rename({"rank": "gap_rank"}),
        pl.col("rank") == pl.col("gap_rank"),
        pl.col("since_ns") < pl.col("end_ns"),
        pl.col("at_ns") > pl.col("start_ns"),
    )
    return pairs.select(
        *("gap", "depth", "category", "name", "process", "thread", "since_ns", "at_ns"),
        start_ns=pl.max_horizontal("since_ns", "start_ns"),
        inside_ns=inside,
        ratio=inside / pl.col("duration_ns"),
    ).sort("gap", "process", "thread", "since_ns", -pl.col("at_ns"), nulls_last=True)


def _measured(ran: pl.DataFrame) -> pl.DataFrame:
    """The pairs with the time of each range outside of the ranges that begin in it, within its gap."""
    thread = pl.struct(_THREAD).alias("thread")
    places = enclosing(ran.select(thread, start_ns="since_ns", duration_ns=pl.col("at_ns") - pl.col("since_ns")))
    cut = ran.select(thread, "start_ns", duration_ns="inside_ns")
    own, _ = own_times(cut, places["parent"])
    layer = first_label({"driver": (pl.col("category") == "runtime") & pl.col("name").str.contains(DRIVER)})
    of_category = pl.col("category").replace_strict(OF_CATEGORIES | {"runtime": "runtime"}, default=None)
    return ran.with_columns(own, layer=pl.coalesce(layer, of_category), inner=places["depth"])


def _launchers(gaps: pl.DataFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """The thread that launched the work after each gap: `gap`, `process`, `thread`."""
    wanted = gaps.select("rank", "gap", correlation="next_correlation").drop_nulls()
    calls = SLICES.or_empty(slices).filter(
        (pl.col("category") == "runtime") & pl.col("correlation").is_in(wanted["correlation"].implode())
    )
    found = calls.select("rank", "correlation", "process", "thread").collect(engine="streaming")
    threads = found.join(wanted, on=["rank", "correlation"]).sort("gap", "process", "thread")
    return threads.unique("gap", keep="first", maintain_order=True).select(_THREAD)


def _threads(gaps: pl.DataFrame, ran: pl.DataFrame, launchers: pl.DataFrame) -> pl.DataFrame:
    """The thread that each gap's host columns are about: `gap`, `process`, `thread`."""
    explains = pl.col("layer").is_not_null() | ~_is_mark()
    caused = ran.join(gaps.select("gap", "cause"), on="gap", how="left", maintain_order="left")
    worked = caused.group_by(_THREAD).agg(
        caused_ns=pl.col("inside_ns").filter(_is_cause()).max().fill_null(0),
        did_ns=pl.col("own_ns").filter(pl.col("layer").is_not_null()).sum(),
        most_ns=pl.col("inside_ns").filter(explains).max().fill_null(0),
    )
    launching = launchers.with_columns(launches=pl.lit(value=True))
    found = worked.join(launching, on=_THREAD, how="left", nulls_equal=True).join(
        gaps.select("gap", "duration_ns"), on="gap"
    )
    is_busy = pl.col("launches").fill_null(False) & (pl.col("did_ns") >= MOST * pl.col("duration_ns"))
    most = pl.max_horizontal("did_ns", "most_ns")
    order = found.sort("gap", -pl.col("caused_ns"), ~is_busy, -most, "launches", "process", "thread", nulls_last=True)
    return order.unique("gap", keep="first", maintain_order=True).select(_THREAD)


def _during(ran: pl.DataFrame) -> pl.DataFrame:
    """The innermost range that covers most of each gap: `gap`, `during`, `during_ratio`."""
    # the outermost Python frames are the script itself
    is_script = (pl.col("category") == "python") & (pl.col("depth").fill_null(0) <= 1)
    covering = ran.filter((pl.col("ratio") >= MOST) & ~_is_mark() & ~is_script)
    order = covering.sort("gap", -pl.col("inner"), "name")
    first = order.unique("gap", keep="first", maintain_order=True)
    return first.select("gap", during=_plain(pl.col("name")), during_ratio="ratio")


def _mostly(ran: pl.DataFrame) -> pl.DataFrame:
    """The name with most time of its own in each gap: `gap`, `mostly`, `mostly_ratio`."""
    sums = ran.filter(pl.col("layer").is_not_null()).group_by("gap", mostly=_plain(pl.col("name"))).agg(
        own_ns=pl.col("own_ns").sum(), mostly_ratio=(pl.col("own_ns") * pl.col("ratio") / pl.col("inside_ns")).sum()
    )  # fmt: skip
    order = sums.filter(pl.col("own_ns") > 0).sort("gap", -pl.col("own_ns"), "mostly")
    return order.unique("gap", keep="first", maintain_order=True).select("gap", "mostly", "mostly_ratio")


def _place(ran: pl.DataFrame) -> pl.DataFrame:
    """The innermost Python function of the user around most of each gap: `gap`, `place`."""
    is_function = (pl.col("category") == "python") & pl.col("name").str.contains(FUNCTION)
    around = ran.filter((pl.col("ratio") >= MOST) & is_function & ~pl.col("name").str.contains(LIBRARY))
    order = around.sort("gap", -pl.col("inner"), "name")
    return order.unique("gap", keep="first", maintain_order=True).select("gap", place="name")


def _layer(ran: pl.DataFrame) -> pl.DataFrame:
    """Where the time of each gap went, if its thread ran something in most of it: `gap`, `layer`."""
    length = pl.col("inside_ns") / pl.col("ratio")
    sums = ran.group_by("gap", "layer").agg(own_ns=pl.col("own_ns").sum(), gap_ns=length.first())
    known = sums.filter(pl.col("layer").is_not_null())
    done = known.group_by("gap").agg(done_ns=pl.col("own_ns").sum())
    order = known.join(done, on="gap").sort("gap", -pl.col("own_ns"), "layer")
    first = order.unique("gap", keep="first", maintain_order=True)
    return first.filter(pl.col("done_ns") >= MOST * pl.col("gap_ns")).select("gap", "layer")


def _waits(gaps: pl.DataFrame, synchronizations: pl.LazyFrame | None) -> pl.DataFrame:
    """What the stream of the next work waited for at the end of each gap: `gap`, `waits_for`."""
    rows = SYNCHRONIZATIONS.or_empty(synchronizations).filter(pl.col("duration_ns") > 0)
    waits = rows.select("rank", "name", "stream", "waited_stream", since_ns="start_ns", at_ns=END).collect()
    spans = gaps.select("gap", "start_ns", "end_ns", "duration_ns", "rank", stream="next_stream")
    inside = pl.min_horizontal("at_ns", "end_ns") - pl.max_horizontal("since_ns", "start_ns")
    found = waits.join(spans, on=["rank", "stream"]).with_columns(inside_ns=inside)
    order = found.filter(pl.col("inside_ns") >= MOST * pl.col("duration_ns")).sort("gap", -pl.col("inside_ns"), "name")
    first = order.unique("gap", keep="first", maintain_order=True)
    on_stream = filled_in("{} (stream {})", "name", "waited_stream")
    return first.select(
        "gap", waits_for=pl.when(pl.col("waited_stream").is_not_null()).then(on_stream).otherwise("name")
    )


def _is_mark() -> pl.Expr:
    """Whether a range is the annotation of a step."""
    return (pl.col("category") == "annotation") & pl.col("name").str.contains(STEP_MARK)


def _is_cause() -> pl.Expr:
    """Whether a range shows by its name what the gap's cause says."""
    marks = {cause: pl.col("name").str.contains(ANNOTATIONS[kind]) for cause, kind in _MARKS.items()}
    return pl.any_horizontal((pl.col("cause") == cause) & is_mark for cause, is_mark in marks.items())


def _plain(name: pl.Expr) -> pl.Expr:
    """A name without addresses, which differ between calls."""
    return name.str.replace(r" at 0x[0-9a-fA-F]+", "").str.replace(r"^AscendCL@", "")
