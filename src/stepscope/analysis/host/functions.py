"""Which Python functions take the host's time, and which ran while the rank was idle."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.intervals import END, union
from stepscope.analysis.methods.statistics import share
from stepscope.analysis.registry import analysis, without_rows
from stepscope.errors import Unavailable
from stepscope.tables import RANKS, SLICES
from stepscope.tables.base import Column
from stepscope.text_columns import filled_in

NO_FUNCTIONS = "no Python functions were recorded: record with `stepscope record --stacks` (with_stack=True)"

NEVER_RECORDED = "no Python functions were recorded: MindSpore's profiler records none here, but py-spy shows them"
"""Of profilers and on devices that have no such option."""

_NEVER = (pl.col("framework") == "mindspore") & (
    (pl.col("takes_functions") == pl.lit(value=False)).fill_null(value=False) | (pl.col("device_kind") != "npu")
)

FUNCTION = ("function", "file", "line", "called_by")
"""Columns that identify a function."""

_PLACE = r"^(.*)\((\d+)\): (.*)$"
"""How a profiler names a Python function: file, first line, name."""

_ADDRESS = r" at 0x[0-9a-fA-F]+"
"""The memory address of the object of a built-in method, which is meaningless."""

NOT_IDLE = ""


@analysis(
    "rank",
    columns(
        "rank", Column("process", "string", "Process, as recorded."), Column("thread", "string", "Thread, as recorded.")
    ),
    together=True,
)
def python_threads(slices: pl.LazyFrame | None, ranks: pl.LazyFrame | None) -> pl.DataFrame:
    """Find the threads with recorded Python functions: one row per thread, in order.

    The analyses of functions ask this first: most recordings have none, and the other tables are slow to read.

    Raises:
        Unavailable: If no Python functions were recorded.
    """
    places = ["rank", "process", "thread"]
    calls = SLICES.or_empty(slices).filter(pl.col("category") == "python")
    found = calls.group_by(places).agg(lasts=(pl.col("duration_ns") > 0).any()).collect()
    every = RANKS.or_empty(ranks).select("rank", never=_NEVER.fill_null(False)).collect()
    lacking = every.filter(pl.col("rank").is_in(without_rows(every["rank"], found))).sort("rank")
    if lacking.height or found.is_empty():
        never = lacking.height > 0 and lacking["never"][0]
        alike = lacking.filter(pl.col("never") == never)["rank"].to_list()
        raise Unavailable(NEVER_RECORDED if never else NO_FUNCTIONS, of=alike)
    return found.filter("lasts").select(places).sort(places, nulls_last=True)


@analysis(
    "rank",
    columns(
        "rank function file line called_by calls",
        meaning("total_ns", "Total time; a function that calls itself counts once."),
        meaning("self_ns", "Time outside the functions and operators that it called."),
        "share_ratio",
        Column("idle_ns", "int64", "Part of `self_ns` in which the rank was idle; null if unknown."),
        keep="function self_ns file line idle_ns total_ns calls share_ratio",
    ),
    together=True,
)
def functions(
    python_threads: pl.DataFrame, slices: pl.LazyFrame | None, idle_pieces: pl.DataFrame | None
) -> pl.DataFrame:
    """Sum up Python functions: one row per function, longest self time first.

    Built-in functions have no file; they are distinguished by the function that calls them.
    """
    called = _called(python_threads, slices)
    swept = _swept(called, idle_pieces)
    keys = ["rank", *FUNCTION]
    calls = _placed(called, swept)
    ranges = calls.lazy().with_columns(end_ns=END)
    total = union(ranges, by=[*keys, "process", "thread"]).group_by(keys)
    times = swept.group_by("call").agg(
        self_ns=pl.col("duration_ns").sum(), idle_ns=pl.col("duration_ns").filter(pl.col("cause") != NOT_IDLE).sum()
    )
    known = pl.lit(idle_pieces is not None)
    return (
        calls.join(times, on="call", how="left", maintain_order="left")
        .group_by(keys)
        .agg(pl.len().cast(pl.Int64).alias("calls"), pl.col("self_ns", "idle_ns").sum())
        .join(total.agg(total_ns=(pl.col("end_ns") - pl.col("start_ns")).sum()).collect(), on=keys, nulls_equal=True)
        .with_columns(share("self_ns"), idle_ns=pl.when(known).then("idle_ns"))
        .select(*keys, "calls", "total_ns", "self_ns", "share_ratio", "idle_ns")
        .sort("rank", -pl.col("self_ns"), *FUNCTION)
    )


@analysis(
    "rank",
    columns(
        "rank cause function file line called_by",
        Column("idle_ns", "int64", "Idle time while it was the innermost function."),
        keep="function idle_ns cause file line",
    ),
    together=True,
)
def idle_functions(
    python_threads: pl.DataFrame, slices: pl.LazyFrame | None, idle_pieces: pl.DataFrame
) -> pl.DataFrame:
    """Find the Python functions that ran on the training thread while the rank was idle: one row per cause and
    function, longest first."""
    called = _called(python_threads, slices)
    swept = _swept(called, idle_pieces)
    times = swept.filter(pl.col("cause") != NOT_IDLE).select("call", "cause", "duration_ns")
    return (
        times.join(_placed(called, swept).drop("duration_ns"), on="call", maintain_order="left")
        .group_by("rank", "cause", *FUNCTION)
        .agg(idle_ns=pl.col("duration_ns").sum())
        .sort("rank", -pl.col("idle_ns"), "cause", *FUNCTION)
    )


def _called(threads: pl.DataFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """Python functions and operators of the threads that run Python, numbered (`call`)."""
    is_call = pl.col("category").is_in(["python", "operator"]) & (pl.col("duration_ns") > 0)
    calls = SLICES.or_empty(slices).filter(is_call)
    rows = calls.select("rank", "category", "name", "process", "thread", "start_ns", "duration_ns").collect()
    kept = rows.join(threads, on=["rank", "process", "thread"], how="semi", nulls_equal=True, maintain_order="left")
    return kept.with_columns(call=pl.int_range(pl.len(), dtype=pl.Int64))


def _swept(called: pl.DataFrame, idle: pl.DataFrame | None) -> pl.DataFrame:
    """How long each call was the innermost of its thread: `call`, `caller`, `cause` (of idle time), `duration_ns`."""
    parts = [_innermost(called.clear(), None)]
    for (rank,), calls in called.partition_by("rank", as_dict=True, maintain_order=True).items():
        threads = calls.partition_by("process", "thread", maintain_order=True)
        # the training thread is the one that calls operators
        training = max(threads, key=lambda rows: (rows.filter(pl.col("category") == "operator").height, rows.height))
        own = None if idle is None else idle.filter(pl.col("rank") == rank)
        parts += (_innermost(rows, own if rows is training else None) for rows in threads)
    return pl.concat(parts)


def _innermost(rows: pl.DataFrame, idle: pl.DataFrame | None) -> pl.DataFrame:
    """One sweep over the starts and ends of a thread's calls and of the idle pieces.

    While `depth` calls are open, the innermost is the last one that began at this depth.
    """
    zero = pl.lit(0, pl.Int64)
    parts = [
        rows.select("call", at=END, turn=pl.lit(-1, pl.Int32), order=zero, cause=pl.lit(None, pl.String)),
        rows.select("call", at="start_ns", turn=pl.lit(1, pl.Int32), order=-pl.col("duration_ns")),
    ]
    if idle is not None:
        change = {"turn": pl.lit(0, pl.Int32), "order": zero}
        parts += [
            idle.select(at=END, **change, cause=pl.lit(NOT_IDLE)),
            idle.select(at="start_ns", **change, cause="cause"),
        ]
    swept = pl.concat(parts, how="diagonal").sort("at", "turn", "order", maintain_order=True)
    began = pl.when(pl.col("turn") == 1).then("call")
    return (
        swept.with_columns(depth=pl.col("turn").cum_sum())
        .with_columns(
            running=pl.when(pl.col("depth") > 0).then(began.forward_fill().over("depth")),
            cause=pl.col("cause").forward_fill().fill_null(NOT_IDLE),
            duration_ns=pl.col("at").shift(-1) - pl.col("at"),
        )
        .with_columns(caller=pl.when(pl.col("turn") == 1).then(pl.col("running").shift(1)))
        .with_columns(caller=pl.col("caller").max().over("running"))
        .filter(pl.col("running").is_not_null() & (pl.col("duration_ns") > 0))
        .group_by(call="running", cause="cause", maintain_order=True)
        .agg(pl.col("caller").first(), pl.col("duration_ns").sum())
    )


def _placed(called: pl.DataFrame, swept: pl.DataFrame) -> pl.DataFrame:
    """The Python functions among the calls, by name and location; those without a location by their caller."""
    calls = called.filter(pl.col("category") == "python")
    groups = pl.col("name").str.extract_groups(_PLACE)
    file, line, function = (groups.struct.field(str(number)) for number in (1, 2, 3))
    places = calls.select("name").unique().with_columns(
        file=file,
        line=line.cast(pl.Int64, strict=False),
        function=pl.coalesce(function, pl.col("name").str.replace(_ADDRESS, "")),
    )  # fmt: skip
    placed = calls.join(places, on="name", maintain_order="left")
    callers = placed.filter(pl.col("file").is_not_null()).select(
        caller="call", called_by=filled_in("{} ({}:{})", "function", "file", "line")
    )
    made = swept.group_by("call").agg(pl.col("caller").max()).join(callers, on="caller", how="left")
    found = placed.join(made.select("call", "called_by"), on="call", how="left", maintain_order="left")
    return found.with_columns(called_by=pl.when(pl.col("file").is_null()).then("called_by"))
