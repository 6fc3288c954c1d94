"""When the host loaded data, waited for the device, compiled, wrote a checkpoint, collected garbage or ran Python."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import END, union
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

DATA_LOADING = r"(?i)dataloader.*__next__|^data: |^## ?(data|wait_for_batch|dataload\w*) ?##$"
"""Annotations during which the training loop waits for its next batch: PyTorch's own
`enumerate(DataLoader)#<iterator>.__next__`, `data: <iterator>` of stepscope's recorder, and words commonly used by
training scripts."""

SYNCHRONISATION = r"(?i)synchronize|^(aten::item|aten::_local_scalar_dense)$"
"""Host calls that wait for the device."""

PHASES = r"^(forward|backward|optimizer)(: |$)|^(validation|warm_up): "
"""Annotations with which stepscope's recorder marks what a step computes (for validation: its forward passes)."""

COMPILING = r"^compile(: |$)"
"""Annotations with which stepscope's recorder marks compiling."""

COMPILE_CALLS = r"(?i)aclop\w*compile|^(nvrtc|hiprtc)\w*compile"
"""Host calls that compile an operator as it is launched."""

CHECKPOINTS = r"^checkpoint(: |$)"
"""Annotations with which stepscope's recorder marks the writing of a checkpoint."""

ANNOTATIONS = {"data": DATA_LOADING, "phase": PHASES, "compile": COMPILING, "checkpoint": CHECKPOINTS}
"""Kind to the annotations that mark it."""

KINDS = ("data", "compile", "sync", "gc", "checkpoint", "python", "phase")


@analysis(
    "rank",
    columns(
        "rank",
        Column("what", "string", "What the host was doing.", values=KINDS),
        "start_ns end_ns",
        nulls="",
    ),
    together=True,
    every_step=True,
)
def marks(slices: pl.LazyFrame) -> pl.DataFrame:
    """Find the host ranges that explain why a device, or the framework, was idle: one row per range, merged by kind."""
    category, name = pl.col("category"), pl.col("name")
    # There are few names and many slices, so match the names.
    names = slices.select(name.unique()).collect(engine="streaming")["name"]
    annotated = {kind: names.filter(names.str.contains(words)).to_list() for kind, words in ANNOTATIONS.items()}
    waiting = names.filter(names.str.contains(SYNCHRONISATION)).to_list()
    compiling = names.filter(names.str.contains(COMPILE_CALLS)).to_list()
    called = (category == "runtime") | (category == "operator")
    what = pl.coalesce(
        first_label({kind: (category == "annotation") & name.is_in(words) for kind, words in annotated.items()}),
        pl.when(category.is_in(["compile", "gc"])).then(category),
        # The outermost Python frames of a recording are the script itself and explain nothing.
        pl.when((category == "python") & (pl.col("depth") > 1)).then(category),
        pl.when((category == "runtime") & name.is_in(compiling)).then(pl.lit("compile")),
        pl.when(called & name.is_in(waiting)).then(pl.lit("sync")),
    )
    # labels of the few, not of all
    some = slices.filter(category.is_in(["annotation", "compile", "gc", "python"]) | name.is_in([*waiting, *compiling]))
    found = some.select("rank", what.alias("what"), "start_ns", end_ns=END).drop_nulls("what")
    return merged(found.collect(engine="streaming"))


def merged(ranges: pl.DataFrame) -> pl.DataFrame:
    """Merge ranges (`rank`, `what`, `start_ns`, `end_ns`) of one rank and kind that touch or overlap."""
    parts = sorted(ranges.partition_by("what", as_dict=True).items())
    columns = ("rank", "what", "start_ns", "end_ns")
    unions = [union(part, by=["rank"]).with_columns(what=pl.lit(what)).select(columns) for (what,), part in parts]
    return pl.concat(unions) if unions else ranges.select(columns)
