"""What each rank's host spent its time on in its steps: calls of all layers, by name and by what they are for."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.own_time import own_times
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis, ranks_of
from stepscope.analysis.step.host_work import COMMUNICATION_CALL
from stepscope.analysis.step.marks import CHECKPOINTS, COMPILING, DATA_LOADING, SYNCHRONISATION
from stepscope.errors import Unavailable
from stepscope.sources.ancestors import climb
from stepscope.tables import OPERATORS, STACKS
from stepscope.tables.base import Column

WHAT = (
    *("garbage_collection", "compile", "checkpoint", "device_memory", "synchronisation", "data_loading", "logging"),
    *("communication", "launch", "operator", "python", "outside", "runtime"),
)
"""What a call is for. `outside` is time in an annotated range, e.g. the step, in which nothing else was recorded."""

PATTERNS = {
    "garbage_collection": r"(?i)^gc$|^gc\.collect|built-in (function|method) collect|garbage.?collect",
    "compile": rf"{COMPILING}|(?i)aclop\w*Compile|torch/_(dynamo|inductor)/|triton/compiler|nvrtc|hiprtc"
    r"|^(cu|hip)(Module|Library)Load|compile_fx|mindspore/common/api\.py.*compile",
    "checkpoint": rf"{CHECKPOINTS}|(?i)torch/serialization\.py.*: (save|_save)|torch\.save|save_checkpoint"
    r"|distributed/checkpoint/",
    "device_memory": r"(?i)^(cuda|hip|cu|aclrt|acl|rt)\w*(Malloc|Free)|^(cu|hip)Mem(Create|Map|Unmap|Release|SetAccess)"
    r"|^(cuda|hip)Host(Alloc|Register)|emptycache|empty_cache",
    "synchronisation": rf"{SYNCHRONISATION}|(?i)^(cuda|hip)Memcpy$|built-in method (item|cpu|tolist|asnumpy) "
    r"|run_backward|^(## ?)?backward( ?##)?$|^backward: ",
    "data_loading": rf"{DATA_LOADING}|(?i)torch/utils/data/|mindspore/dataset/engine",
    "logging": r"(?i)logging/__init__\.py|/logging\.py|tensorboard|wandb|built-in function print|tqdm",
    "communication": rf"{COMMUNICATION_CALL}|(?i)^hccl|^nccl|distributed_c10d\.py|^hcom_",
    "launch": r"(?i)launch|^Dequeue@|^Enqueue@|^aclnn|^aclrt?Memcpy\w*Async|^(cuda|hip)Memcpy\w*Async",
}
"""What calls are for by their names; the first that fits decides. A thread that called backward waits for another."""

_WHOLE = ("compile", "checkpoint", "logging", "data_loading")
"""All that runs inside these is part of them."""

_UNDER_THEIR_NAME = ("compile", "checkpoint", "logging")
"""What runs inside these is counted under the name of the outermost; what a loader does, is of interest itself."""

_HOST = ("operator", "annotation", "python", "runtime", "queue", "gc", "compile")
_PYTHON = r"^.*\(\d+\): "
"""A Python function with a file."""

_LIBRARY = (
    r"(^|/)(torch|site-packages|dist-packages|lib/python\d|mindspore|importlib|threading\.py|contextlib\.py)|<frozen"
)
"""Files of libraries, which are not where a user looks first."""

ROWS_AT_ONCE = 500_000
"""Ranges that are nested at a time; the ranges of a step stay together."""

MOST_PLACED = 30

COLUMNS = columns(
    "rank",
    Column("what", "string", "What the calls are for.", values=WHAT),
    meaning("name", "Name of the call, without numbers of steps and addresses."),
    Column("calls", "int64", "Number of calls in all steps."),
    meaning("total_ns", "Their time in all steps, outside of the calls inside them."),
    Column("longest_ns", "int64", "The longest of them."),
    Column("longest_step", "int32", "Step of the longest."),
    Column("place", "string", "Python function that made the longest call, with file and line; null if not recorded."),
    meaning("steps", "Number of recorded steps of the rank."),
    nulls="place",
)


@analysis("rank", COLUMNS, together=True)
def host_calls(
    slices: pl.LazyFrame,
    steps: pl.LazyFrame,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Sum up what the host does in its steps: one row per kind of call and name, in order.

    All layers count together: a call's time is its duration without the calls inside it, whether of the framework,
    the runtime or Python.

    Raises:
        Unavailable: If no host calls of a rank were recorded.
    """
    found = pl.concat(_summed(rows) for rows in _portions(slices))
    if unknown := [rank for rank in ranks_of(steps) if rank not in {*found["rank"].unique()}]:
        raise Unavailable("no host calls were recorded in steps", of=unknown)
    counted = steps.filter(pl.col("recorded").fill_null(True)).group_by("rank").agg(steps=pl.len().cast(pl.Int64))
    longest = pl.col("longest_ns").arg_max()
    sums = found.sort("rank", "what", "name", "longest_step").group_by("rank", "what", "name").agg(
        pl.col("calls", "total_ns").sum(),
        pl.col("longest_ns").max(),
        pl.col("longest_step", "python", "slice").get(longest),
    )  # fmt: skip
    placed = _placed(sums, operators, stacks)
    return (
        placed.join(counted.collect(), on="rank")
        .with_columns(place=pl.coalesce("python", "place"))
        .select(names(COLUMNS))
        .sort("rank", "what", "name")
    )


def _host(slices: pl.LazyFrame) -> pl.LazyFrame:
    rows = slices.filter(pl.col("category").is_in(_HOST) & pl.col("step").is_not_null())
    return rows.select("rank", "slice", "step", "category", "name", "thread", "start_ns", "duration_ns")


def _portions(slices: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The host's ranges, some steps of a rank at a time if they are many."""
    host = _host(slices)
    counts = host.group_by("rank", "step").agg(n=pl.len()).sort("rank", "step").collect(engine="streaming")
    turns = counts.with_columns(turn=pl.col("n").cum_sum() // ROWS_AT_ONCE)
    if turns["turn"].n_unique() <= 1:
        yield host.collect()
        return
    for part in turns.partition_by("turn", maintain_order=True):
        some = [
            (pl.col("rank") == rows["rank"][0]) & pl.col("step").is_in(rows["step"].to_list())
            for rows in part.partition_by("rank", maintain_order=True)
        ]
        yield host.filter(pl.any_horizontal(some)).collect()


def _summed(rows: pl.DataFrame) -> pl.DataFrame:
    """Sums by kind of call and name, with the step, slice and Python function of the longest."""
    rows = in_order(rows, "start_ns", "rank", "slice")  # of equal ranges, the first is outside
    rows = rows.join(_known(rows), on=["category", "name"], how="left", maintain_order="left")
    own, parent = own_times(rows.select("start_ns", "duration_ns", thread=pl.struct("rank", "thread")))
    each = pl.int_range(rows.height, dtype=pl.Int64, eager=True)
    outer = _outermost(rows, parent, each)
    user = rows["is_user"].arg_true().cast(pl.Int64)
    around = climb(parent, parent, user if len(user) else rows["is_python"].arg_true().cast(pl.Int64))
    named = rows["label"].gather(outer)
    kind, under = rows["what"].gather(outer), rows["what"].gather(outer).is_in(_UNDER_THEIR_NAME)
    is_garbage = rows["what"] == "garbage_collection"
    labelled = rows.with_columns(
        own,
        what=pl.select(pl.when(kind.is_null() | is_garbage).then(rows["what"]).otherwise(kind)).to_series(),
        label=pl.select(pl.when(under.fill_null(False) & ~is_garbage).then(named).otherwise(rows["label"])).to_series(),
        python=rows["name"].gather(around),
    )
    keys, longest = ["rank", "what", "label"], pl.col("own_ns").arg_max()
    return labelled.group_by(keys).agg(
        calls=pl.len().cast(pl.Int64),
        total_ns=pl.col("own_ns").sum(),
        longest_ns=pl.col("own_ns").max(),
        longest_step=pl.col("step").get(longest),
        python=pl.col("python").get(longest),
        slice=pl.col("slice").get(longest),
    ).rename({"label": "name"})  # fmt: skip


def _known(rows: pl.DataFrame) -> pl.DataFrame:
    """What is known of each category and name."""
    name, category = pl.col("name"), pl.col("category")
    plain = name.str.replace(r" at 0x[0-9a-fA-F]+", "").str.replace(r"^ProfilerStep#\d+$", "ProfilerStep")
    label = plain.str.replace(r"^AscendCL@", "")
    rest = {"python": "python", "annotation": "outside", "operator": "operator", "queue": "launch", "gc": WHAT[0]}
    cases = {what: label.str.contains(words) for what, words in PATTERNS.items()}
    by_category = {
        "garbage_collection": (category == "gc") | cases.pop("garbage_collection"),
        "compile": (category == "compile") | cases.pop("compile"),
    }
    is_python = (category == "python") & name.str.contains(_PYTHON)
    return rows.select("category", "name").unique().with_columns(
        label=label,
        what=pl.coalesce(
            first_label({**by_category, **cases}), category.replace_strict(rest, default="runtime")
        ),
        is_python=is_python,
        is_user=is_python & ~name.str.contains(_LIBRARY),
    )  # fmt: skip


def _outermost(rows: pl.DataFrame, parent: pl.Series, each: pl.Series) -> pl.Series:
    """The outermost range around each row (or itself) whose whole time is part of it; null if there is none."""
    whole = rows["what"].is_in(_WHOLE).arg_true().cast(pl.Int64)
    if whole.is_empty():
        return pl.repeat(None, rows.height, dtype=pl.Int64, eager=True)
    inside = climb(parent.gather(whole), parent, whole)
    return climb(each, parent, whole.filter(inside.is_null()))


def _placed(sums: pl.DataFrame, operators: pl.LazyFrame | None, stacks: pl.LazyFrame | None) -> pl.DataFrame:
    """The sums with the innermost function of the stack that an operator has (`place`), for the largest ones."""
    largest = sums.sort(-pl.col("total_ns"), "rank", "what", "name").group_by("rank", maintain_order=True)
    wanted = largest.head(MOST_PLACED).select("rank", "slice")
    calls = OPERATORS.or_empty(operators).filter(pl.col("stack").is_not_null()).select("rank", "slice", "stack")
    found = calls.join(wanted.lazy(), on=["rank", "slice"], how="semi")
    texts = found.join(STACKS.or_empty(stacks).select("rank", "stack", "text"), on=["rank", "stack"])
    lines = pl.col("text").str.split("\n")
    user = lines.list.eval(pl.element().filter(~pl.element().str.contains(_LIBRARY)))
    places = texts.select(
        "rank", "slice", place=pl.coalesce(user.list.first(), lines.list.first()).str.strip_chars("; \r")
    )
    return sums.join(places.unique(["rank", "slice"]).collect(), on=["rank", "slice"], how="left")
