"""When the hosts of a CPU-only recording computed, and when they communicated, by their operators and calls."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, pieces
from stepscope.analysis.methods.names import named, names_of
from stepscope.analysis.step.marks import merged
from stepscope.tables import SLICES

COMMUNICATION_CALL = r"^(c10d::|gloo:|nccl:|hccl:|mpi:|ucc:|record_param_comms|_c10d_functional)"
"""Host operators that start or await communication."""

ENGINE = r"^autograd::engine::evaluate_function"
"""Operators that do nothing themselves: the engine of the backward pass around an operator and the hooks at it."""

COMPILED = r"(?i)compiled"
"""Operators that run compiled code, which computes without operators of its own."""

_CELL = ["rank", "thread"]


def host_work(operators: pl.LazyFrame, calls: pl.DataFrame, slices: pl.LazyFrame | None) -> pl.DataFrame:
    """Ranges of the host's operators by kind (`rank`, `what`, `start_ns`, `end_ns`), merged in part.

    Garbage collections inside operators are left out. What an operator does besides the operators inside it is waiting
    while a call is under way that it may have made: if it encloses the start of one, such as a function of autograd
    that sums over ranks, or runs hooks at the backward pass, in which FSDP waits for parameters.

    Args:
        operators: The operators of ranks without a device.
        calls: `rank`, `on_device`, `start_ns`, `duration_ns` of calls.
        slices: The table of that name, for garbage collections.
    """
    garbage = _garbage(slices)
    on_host = calls.filter(~pl.col("on_device")).select("rank", "start_ns", end_ns=END)
    words = {"call": COMMUNICATION_CALL, "engine": ENGINE, "compiled": COMPILED}
    known = named(operators, names_of(operators), **{name: pl.col("name").str.contains(p) for name, p in words.items()})
    asked = {f"is_{name}": one.fill_null(value=False) for name, one in known.items()}
    own = operators.filter(asked["is_call"]).select(*_CELL, "start_ns", end_ns=END).sort("start_ns", "end_ns")
    made = (own.limit(0) if on_host.is_empty() else own).collect()
    where = () if garbage.is_empty() and made.is_empty() else ("thread",)
    parts: list[pl.DataFrame] = []
    for batch in batches(operators.select("rank", "start_ns", "duration_ns", *where, **asked)):
        for what, rows in _by_kind(_not_among(calls, batch), made).items():
            found = _named(rows, what, *where)
            parts.append(merged(_not_stopped(found, garbage) if where else found))
    found = pl.concat(parts)
    waiting = pl.col("what") == _AROUND
    under_way = pl.concat([on_host, made.select(on_host.columns)])
    return pl.concat([found.filter(~waiting), _between(merged(found.filter(waiting)), under_way)])


_AROUND = "around"
"""Operators around calls, until it is known when they wait for these."""


def _by_kind(rows: pl.DataFrame, made: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Operators that communicate, those around communication, and those that compute."""
    is_call = pl.col("is_call")
    if made.is_empty():
        return {"communication": rows.filter(is_call), "computing": rows.filter(~is_call)}
    others = rows.filter(~is_call).sort("start_ns", maintain_order=True)
    first = made.unique([*_CELL, "start_ns"], keep="first", maintain_order=True)
    calls = first.select(*_CELL, made_ns="start_ns", over_ns="end_ns")
    encloses = others.join_asof(
        calls, left_on="start_ns", right_on="made_ns", by=_CELL, strategy="forward", check_sortedness=False
    ).with_columns(
        around=((pl.col("made_ns") < END) & (pl.col("over_ns") <= END)).fill_null(value=False) & ~pl.col("is_compiled")
    )
    around = pl.col("around") | pl.col("is_engine")
    return {
        "communication": rows.filter(is_call),
        _AROUND: encloses.filter(around),
        "computing": encloses.filter(~around),
    }


def _between(around: pl.DataFrame, under_way: pl.DataFrame) -> pl.DataFrame:
    """What operators around calls compute: all but the time of calls, as what runs inside them counts by itself."""
    windows = around.with_row_index("window").select("rank", pl.col("window").cast(pl.Int64), "start_ns", "end_ns")
    cut = pieces({"called": under_way}, windows, by=["rank"]).filter(~pl.col("called")).collect()
    return _named(cut, "computing")


def _not_among(calls: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows without those of collectives: MindSpore also records one as an operator, in addition to its call."""
    is_call = rows["start_ns"].is_in(calls["start_ns"].implode())  # which spares a join of all rows
    places = is_call.arg_true()
    if places.is_empty():
        return rows
    some = rows[places].with_columns(place=places)
    others = some.join(calls, on=["rank", "start_ns", "duration_ns"], how="anti")["place"]
    return rows.filter(~is_call.scatter(others, False))


def _garbage(slices: pl.LazyFrame | None) -> pl.DataFrame:
    """Python's garbage collections, in order of time."""
    collected = SLICES.or_empty(slices).filter((pl.col("category") == "gc") & pl.col("thread").is_not_null())
    return collected.select("rank", "thread", "start_ns", end_ns=END).sort("start_ns", "end_ns").collect()


def _not_stopped(work: pl.DataFrame, garbage: pl.DataFrame) -> pl.DataFrame:
    """Host work (with its `thread`) without Python's garbage collection inside it on the same thread, e.g. in the
    backward of a function written in Python. Other threads continue computing."""
    result = ["rank", "what", "start_ns", "end_ns"]
    if garbage.is_empty():  # the usual case; there may be millions of operators
        return work.select(result)
    last = garbage.select(*_CELL, end_ns="start_ns", until_ns="end_ns")
    ends = work.sort("end_ns")
    found = ends.join_asof(last, on="end_ns", by=_CELL, allow_exact_matches=False, check_sortedness=False)
    holds = (pl.col("until_ns") > pl.col("start_ns")).fill_null(False)
    if (around := found.filter(holds)).is_empty():
        return work.select(result)
    windows = around.group_by(_CELL).agg(pl.col("start_ns").min(), pl.col("end_ns").max()).with_row_index("window")
    layers = {what: rows.lazy() for (what,), rows in around.partition_by("what", as_dict=True).items()}
    cut = pieces({**layers, "stopped": garbage.lazy()}, windows.lazy(), by=_CELL).filter(~pl.col("stopped")).collect()
    running = [_named(cut.filter(what), what) for what in sorted(layers)]
    return pl.concat([found.filter(~holds).select(result), *running])


def _named(table: pl.DataFrame, what: str, *more: str) -> pl.DataFrame:
    return table.select("rank", pl.lit(what).alias("what"), "start_ns", *more, end_ns=END)
