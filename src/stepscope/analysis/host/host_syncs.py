"""Where the host waits for its GPU, at whose request, and what the device loses by it."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.host_waits import waiting_calls
from stepscope.analysis.methods.launch_owners import Parents
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.analysis.step.marks import CHECKPOINTS, DATA_LOADING
from stepscope.sources.ancestors import climb
from stepscope.tables import KERNELS, SLICES
from stepscope.tables.base import Column, schema_of

CLIPPING, SCALING, LOGGING = "gradient clipping", "gradient scaling", "logging"
VALUE, SIZE, TO_HOST, TO_DEVICE, EXPLICIT = "value", "size", "copy to host", "copy to device", "call"

PURPOSES = {
    CLIPPING: r"(?i)clip_grad|get_total_norm|grad_norm",
    SCALING: r"(?i)grad_?scaler|unscale_|found_inf|_amp_",
    "checkpoint": rf"{CHECKPOINTS}|(?i)torch/serialization\.py|distributed/checkpoint/|save_checkpoint",
    LOGGING: r"(?i)logging/__init__\.py|/logging\.py|tensorboard|wandb|tqdm|mlflow|built-in function print"
    r"|_tensor_str\.py|torchmetrics|: (log|log_\w+|print_\w+)$|^(log|logging|metrics?)$",
    "data loading": DATA_LOADING,
}
"""What a wait is for, by the names of the ranges and functions around it; the innermost that fits counts."""

_HOW = {
    VALUE: r"^aten::(item|_local_scalar_dense|is_nonzero|equal|allclose|tolist)$",
    SIZE: r"^aten::(nonzero\w*|masked_select|unique\w*|_unique\w*|repeat_interleave|index|index_put_?|where|bincount)$",
}
"""What makes an operator wait: the host needs a value, or a size that depends on values."""

COLUMNS = columns(
    "rank",
    Column("purpose", "string", "What it is for, if ranges or functions around it say so.", importance=66),
    Column(
        "how",
        "string",
        "Why it waits: for a `value` of a tensor, for a `size` that depends on values, for a `copy to host` or a `copy "
        "to device`, or by an explicit `call`.",
        values=(VALUE, SIZE, TO_HOST, TO_DEVICE, EXPLICIT),
        importance=65,
    ),
    Column(
        "operator", "string", "Outermost operator of the framework around it; null if there is none.", importance=64
    ),
    Column("range", "string", "Innermost annotated range around it; null if there is none.", importance=50),
    Column("code", "string", "Line of the user's code around it; null if not recorded.", importance=63),
    meaning("count", "Number of waits."),
    Column("per_step", "float64", "Waits in a step.", importance=60),
    Column("wait_ns", "int64", "Time that the host waited.", title="waited", importance=62),
    Column("longest_ns", "int64", "Longest of these waits.", title="longest", importance=40),
    Column(
        "cost_ns",
        "int64",
        "Time for which the device then had no work, as more was launched only after the wait; at most the wait. Time "
        "with another cause, such as data loading, is not counted.",
        title="device idle",
        importance=61,
    ),
    Column("start_ns", "int64", "Start of the costliest wait.", moment=True),
    Column("duration_ns", "int64", "Length of the costliest wait."),
    nulls="purpose operator range code",
    keep="how",
)

_CAUSES = ("synchronisation", "dispatch")
"""Causes of idle time that a wait brings about: the host still waits, or launches only now."""

NO_WAITS = "no wait of the host for a GPU was recorded in steps"


@analysis("rank", COLUMNS, together=True, nothing=NO_WAITS)
def host_syncs(
    slices: pl.LazyFrame,
    kernels: pl.LazyFrame,
    ranks: pl.LazyFrame,
    steps: pl.LazyFrame,
    idle_pieces: pl.DataFrame,
    operators: pl.LazyFrame | None,
    stacks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Sum up waits of the host for its GPU by where they are called: one row per place, the costliest first.

    A wait is a synchronising call of the runtime, or a copy to pageable memory, which returns when it is done. Waits
    after which nothing is launched, such as that at the end of a recording, delay nothing and are left out.
    """
    gpus = ranks.filter(pl.col("device_kind").is_in(["cuda", "rocm"])).select("rank").collect()["rank"].to_list()
    if not gpus:  # spares reading the ranges of other devices
        return pl.DataFrame(schema=schema_of(COLUMNS))
    waits = _waits(slices.filter(pl.col("rank").is_in(gpus)), kernels)
    costly = _costs(waits, kernels, idle_pieces.filter(pl.col("cause").is_in(_CAUSES)))
    if costly.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    around = _around(costly, slices).join(
        places(costly.select("rank", "slice"), operators, stacks, slices), on=["rank", "slice"], how="left"
    )
    counted = steps.group_by("rank").agg(steps=pl.len()).collect()
    keys = ["rank", "purpose", "how", "operator", "range", "code"]
    costliest = around.sort("rank", -pl.col("cost_ns"), -pl.col("wait_ns"), "start_ns", "slice")
    found = costliest.group_by(keys, maintain_order=True).agg(
        count=pl.col("unit").n_unique().cast(pl.Int64),
        wait_ns=pl.col("wait_ns").sum(),
        longest_ns=pl.col("wait_ns").max(),
        cost_ns=pl.col("cost_ns").sum(),
        start_ns=pl.col("start_ns").first(),
        duration_ns=pl.col("wait_ns").first(),
    )  # fmt: skip
    return (
        found.join(counted, on="rank")
        .with_columns(per_step=pl.col("count") / pl.col("steps"))
        .sort("rank", -pl.col("cost_ns"), -pl.col("wait_ns"), *keys[1:], nulls_last=True)
        .select(column.name for column in COLUMNS)
    )


def _waits(slices: pl.LazyFrame, kernels: pl.LazyFrame) -> pl.DataFrame:
    """Waits in steps: `rank`, `slice`, `parent`, `unit` (the operator, or the call itself), `start_ns`, `wait_ns`, and
    `copied`: the direction of a copy by the same operator."""
    waits, copying = waiting_calls(slices, kernels)
    of_parent = copying.filter(pl.col("parent").is_not_null())
    copied = of_parent.group_by("rank", "parent").agg(copied=pl.col("copy").sort().first())
    return waits.join(copied, on=["rank", "parent"], how="left").select(
        "rank", "slice", "parent", "start_ns", "copied", unit=pl.coalesce("parent", "slice"), wait_ns="duration_ns"
    )


def _costs(waits: pl.DataFrame, kernels: pl.LazyFrame, idle: pl.DataFrame) -> pl.DataFrame:
    """The waits with `cost_ns`: the idle time from their start to the first work launched after them, at most as long
    as they are; of several before the same work, the longest has it."""
    work = KERNELS.or_empty(kernels).filter(pl.col("rank").is_in(waits["rank"].unique().implode()))
    launched = work.select("rank", "launch_start_ns", next_ns="start_ns").drop_nulls("launch_start_ns").collect()
    after = (
        waits.with_columns(end_ns=pl.col("start_ns") + pl.col("wait_ns"))
        .sort("end_ns", "slice")
        .join_asof(
            launched.sort("launch_start_ns", "next_ns"), left_on="end_ns", right_on="launch_start_ns", by="rank",
            strategy="forward", check_sortedness=False,
        )
        .drop_nulls("next_ns")
    )  # fmt: skip
    found = _idle_until(_idle_until(after, idle, "start_ns"), idle, "next_ns")
    free = pl.col("idle_until_next_ns") - pl.col("idle_until_start_ns")
    longest = pl.col("wait_ns") == pl.col("wait_ns").max().over("rank", "next_ns")
    first = pl.col("slice") == pl.col("slice").filter(longest).min().over("rank", "next_ns")
    cost = pl.when(first).then(pl.min_horizontal(free, "wait_ns").clip(lower_bound=0)).otherwise(0)
    return found.with_columns(cost_ns=cost).select(*waits.columns, "cost_ns")


def _idle_until(waits: pl.DataFrame, idle: pl.DataFrame, moment: str) -> pl.DataFrame:
    """The waits with `idle_until_<moment>`: how long their device had been idle until then."""
    pieces = idle.sort("start_ns").select(
        "rank",
        piece_ns="start_ns",
        end_of_piece_ns=pl.col("start_ns") + pl.col("duration_ns"),
        total_ns=pl.col("duration_ns").cum_sum().over("rank"),
    )
    found = waits.sort(moment).join_asof(
        pieces, left_on=moment, right_on="piece_ns", by="rank", check_sortedness=False
    )  # fmt: skip
    rest = (pl.col("end_of_piece_ns") - pl.col(moment)).clip(lower_bound=0)
    until = (pl.col("total_ns") - rest).fill_null(0)
    return found.with_columns(until.alias(f"idle_until_{moment}")).drop("piece_ns", "end_of_piece_ns", "total_ns")


def _around(waits: pl.DataFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """The waits with what runs around them: `operator`, `range`, `purpose` and `how`."""
    ranges = SLICES.or_empty(slices).filter(
        pl.col("rank").is_in(waits["rank"].unique().implode())
        & pl.col("category").is_in(["operator", "annotation", "python"])
    )
    name, category = pl.col("name"), pl.col("category")
    names = ranges.select("category", "name").unique().collect(engine="streaming").with_columns(
        is_operator=(category == "operator") & name.str.contains("^aten::"),
        is_range=(category == "annotation") & ~name.str.contains(r"^ProfilerStep"),
        purpose=first_label({what: name.str.contains(words) for what, words in PURPOSES.items()}),
    ).filter(pl.col("is_operator") | pl.col("is_range") | pl.col("purpose").is_not_null())  # fmt: skip
    known = ranges.select("rank", "slice", "parent", "category", "name").join(names.lazy(), on=["category", "name"])
    rows = known.collect(engine="streaming")
    parents = Parents(slices, waits["rank"])
    parts = []
    for (rank,), own in waits.sort("rank", "slice").partition_by("rank", as_dict=True, maintain_order=True).items():
        found = rows.filter(pl.col("rank") == rank).sort("slice")
        operators = found.filter("is_operator")
        # the first of a chain of operators that call one another
        tops = operators.filter(~pl.col("parent").is_in(operators["slice"].implode()).fill_null(False))
        parent = parents.of(rank, own["slice"], found["slice"])
        for column, wanted, what in (
            ("operator", tops, "name"),
            ("range", found.filter("is_range"), "name"),
            ("purpose", found.filter(pl.col("purpose").is_not_null()), "purpose"),
        ):
            at = climb(own["slice"], parent, wanted["slice"])
            own = own.with_columns(at=at).join(  # noqa: PLW2901 - column by column
                wanted.select(at="slice", **{column: what}), on="at", how="left", maintain_order="left"
            )
        parts.append(own.drop("at"))
    found = pl.concat(parts)
    operator = pl.col("operator")
    cases = {how: operator.str.contains(words) for how, words in _HOW.items()}
    cases |= {TO_DEVICE: pl.col("copied").str.contains("(?i)-> device"), TO_HOST: pl.col("copied").is_not_null()}
    return found.with_columns(how=first_label(cases, EXPLICIT))
