"""When the host loaded data, waited for the device, compiled, wrote a checkpoint, collected garbage or ran Python."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.methods.intervals import union
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

DATA_LOADING = r"(?i)dataloader.*__next__|^data: |^## ?(data|wait_for_batch|dataload\w*) ?##$"
"""Annotations during which the training loop waits for its next batch: PyTorch names its own
`enumerate(DataLoader)#<iterator>.__next__`, stepscope's recorder `data: <iterator>`; the bare words are what training
scripts commonly mark."""

SYNCHRONISATION = r"(?i)synchronize|^(aten::item|aten::_local_scalar_dense)$"
"""Host calls that wait for the device."""

PHASES = r"^(forward|backward|optimizer)(: |$)|^(validation|warm_up): "
"""Annotations by which stepscope's recorder marks what a step computes: of validation, its forward passes."""

COMPILING = r"^compile(: |$)"
"""Annotations by which stepscope's recorder marks a compiler that runs."""

CHECKPOINTS = r"^checkpoint(: |$)"
"""Annotations by which stepscope's recorder marks that a checkpoint is written."""

ANNOTATIONS = {"data": DATA_LOADING, "phase": PHASES, "compile": COMPILING, "checkpoint": CHECKPOINTS}
"""Kind to the annotations that mark it."""

KINDS = ("data", "compile", "sync", "gc", "checkpoint", "python", "phase")


@analysis(
    "rank",
    columns(
        "rank",
        Column("what", "string", "What the host did.", values=KINDS),
        "start_ns end_ns",
        nulls="",
    ),
    together=True,
    every_step=True,
)
def marks(slices: pl.LazyFrame) -> pl.DataFrame:
    """Find the host ranges that explain why a device, or the framework, had nothing to do.

    Returns:
        One row for each range; ranges of one kind are merged.
    """
    category, name = pl.col("category"), pl.col("name")
    # Names are few and slices many, so the names are matched, not the slices.
    names = slices.select(name.unique()).collect(engine="streaming")["name"]
    annotated = {kind: names.filter(names.str.contains(words)).to_list() for kind, words in ANNOTATIONS.items()}
    waiting = names.filter(names.str.contains(SYNCHRONISATION)).to_list()
    called = (category == "runtime") | (category == "operator")
    what = pl.coalesce(
        *(
            pl.when((category == "annotation") & name.is_in(words)).then(pl.lit(kind))
            for kind, words in annotated.items()
        ),
        pl.when(category.is_in(["compile", "gc"])).then(category),
        # The outermost Python frames of a recording are the script itself and tell nothing.
        pl.when((category == "python") & (pl.col("depth") > 1)).then(category),
        pl.when(called & name.is_in(waiting)).then(pl.lit("sync")),
    )
    found = (
        slices.select("rank", what.alias("what"), "start_ns", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
        .filter(pl.col("what").is_not_null())
        .collect()
    )
    return merged(found)


def merged(ranges: pl.DataFrame) -> pl.DataFrame:
    """Merge ranges (`rank`, `what`, `start_ns`, `end_ns`) of one rank and kind that touch or overlap."""
    parts = ranges.sort("what").partition_by("what", as_dict=True, maintain_order=True)
    unions = [
        union(part.lazy(), by=["rank"]).select("rank", pl.lit(what).alias("what"), "start_ns", "end_ns")
        for (what,), part in parts.items()
    ]
    return pl.concat(pl.collect_all(unions)) if unions else ranges.select("rank", "what", "start_ns", "end_ns")
