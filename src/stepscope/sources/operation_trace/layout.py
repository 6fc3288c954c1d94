"""What all ranks of an operation-level trace share: steps on one time axis, places of ranks, numbers of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from stepscope.sources.operation_trace.columns import in_ns
from stepscope.sources.operation_trace.kinds import COMMUNICATION, communication

CHUNK = pl.when(pl.col("mc") >= 0).then("mc").otherwise(0)
"""Model chunk of the rank; ranks without virtual stages have one."""

MICRO_BATCH = pl.when(pl.col("mb_id") >= 0).then("mb_id").otherwise("seq_id")


@dataclass(frozen=True)
class Layout:
    """Facts about a whole trace.

    Args:
        steps: `step`, `base_ns` (its start on the time axis), `length_ns`, `number` (from 0), in order.
        places: `rank`, `stage`, `dp_rank`, `optype`, `model_chunk` (the highest) and `operations` (how many).
        numbers: More than the highest position or micro-batch.
    """

    steps: pl.DataFrame
    places: pl.DataFrame
    numbers: int

    @cached_property
    def ranks(self) -> pl.DataFrame:
        """`rank`, `stage`, `dp_rank` of each rank; of one at several places, the one with most operations."""
        counted = self.places.group_by("rank", "stage", "dp_rank").agg(pl.col("operations").sum())
        ordered = counted.sort("rank", "operations", "stage", "dp_rank", descending=[False, True, False, False])
        return ordered.unique("rank", keep="first", maintain_order=True).select("rank", "stage", "dp_rank").sort("rank")

    @cached_property
    def calls(self) -> list[str]:
        """Names of operations in which several ranks join other than in pairs, in the order of their kinds."""
        kinds = [(communication(name), name) for name in sorted(set(self.places["optype"]))]
        joined = [(kind, name) for kind, name in kinds if kind is not None and kind.members != "neighbours"]
        return [name for _, name in sorted(joined, key=lambda one: COMMUNICATION.index(one[0]))]

    @cached_property
    def chunks(self) -> int:
        """Model chunks of a rank."""
        return _highest(self.places["model_chunk"]) + 1

    @cached_property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return _highest(self.ranks["stage"]) + 1

    @cached_property
    def by_place(self) -> Mapping[tuple[int, int], int]:
        """Stage and data-parallel rank to rank."""
        return {(stage, replica): rank for rank, stage, replica in reversed(self.ranks.rows())}

    def having(self, optype: str, dp_rank: int) -> list[int]:
        """The ranks of a data-parallel rank that have an operation."""
        found = self.places.filter((pl.col("optype") == optype) & (pl.col("dp_rank") == dp_rank))
        ranks: list[int] = found["rank"].unique().sort().to_list()
        return ranks


def steps_of(rows: pl.LazyFrame) -> pl.LazyFrame:
    """`Layout.steps`."""
    ends = rows.group_by("step").agg(length_ns=(in_ns(pl.col("start_ts") + pl.col("duration"))).max()).sort("step")
    base = pl.col("length_ns").cum_sum() - pl.col("length_ns")
    return ends.select("step", "length_ns", base_ns=base, number=pl.int_range(pl.len(), dtype=pl.Int64))


def places_of(rows: pl.LazyFrame) -> pl.LazyFrame:
    """`Layout.places`."""
    counted = rows.group_by("rank", "stage", "dp_rank", "optype").agg(
        operations=pl.len().cast(pl.Int64), model_chunk=CHUNK.max()
    )
    return counted.sort("rank", "stage", "dp_rank", "optype")


def numbers_of(rows: pl.LazyFrame) -> pl.LazyFrame:
    """`Layout.numbers`."""
    return rows.select(pl.max_horizontal(pl.max("seq_id"), pl.max("mb_id"), 0).fill_null(0) + 1)


def faults_of(layout: Layout) -> list[str]:
    """What the ranks of a trace lack, or have twice."""
    told = []
    many = layout.places.select("rank", "stage", "dp_rank").unique().group_by("rank").len().filter(pl.col("len") > 1)
    if many.height:
        told.append(f"ranks {_listed(many['rank'].sort())} are at several places in the job; most operations decide")
    replicas = _highest(layout.ranks["dp_rank"]) + 1
    every = ((stage, replica) for stage in range(layout.stages) for replica in range(replicas))
    if lacking := [place for place in every if place not in layout.by_place]:
        shown = ", ".join(f"stage {stage} of data-parallel rank {replica}" for stage, replica in lacking[:4])
        more = f" and {len(lacking) - 4} more" if len(lacking) > 4 else ""
        told.append(f"no operation of {shown}{more} is there: waiting for these ranks cannot be told from transmission")
    kinds = layout.places.group_by("stage", "optype").agg(having=pl.col("rank").unique())
    whole = layout.ranks.group_by("stage").agg(every=pl.col("rank"))
    short = kinds.join(whole, on="stage").with_columns(lacks=pl.col("every").list.set_difference("having").list.sort())
    for optype, ranks in (
        short.filter(pl.col("lacks").list.len() > 0).sort("stage", "optype").select("optype", "lacks").rows()
    ):
        told.append(f"ranks {_listed(ranks)} have no {optype}, which others of their stage have")
    present = set(layout.places["optype"])
    told.extend(f"no rank has {kind}" for kind in ("forward-compute", "backward-compute") if kind not in present)
    senders = {name.removesuffix("-send") for name in present if name.endswith("-send")}
    receivers = {name.removesuffix("-recv") for name in present if name.endswith("-recv")}
    told.extend(f"{name}-send and {name}-recv are not both there" for name in sorted(senders ^ receivers))
    if layout.stages > 1 and not senders | receivers:
        told.append("transfers between stages are not there, so stages are not replayed as waiting for each other")
    return told


def _highest(numbers: pl.Series) -> int:
    highest = numbers.max()
    return highest if isinstance(highest, int) else 0


def _listed(ranks: Iterable[int]) -> str:
    numbers = [str(rank) for rank in ranks]
    return ", ".join(numbers[:8]) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")
