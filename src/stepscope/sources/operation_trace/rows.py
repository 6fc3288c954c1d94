"""Rows of one rank's tables from its operations."""

from __future__ import annotations

import polars as pl

from stepscope.sources.operation_trace.columns import in_ns
from stepscope.sources.operation_trace.kinds import GARBAGE_COLLECTION, STREAMS, communication
from stepscope.sources.operation_trace.layout import CHUNK, MICRO_BATCH, Layout
from stepscope.sources.operation_trace.meta import Sizes
from stepscope.tables import COLLECTIVES, GROUPS, KERNELS, SLICES, STEPS
from stepscope.text_columns import filled_in

_THREAD = "host"
_PLACE = ["step", "way", "micro_batch", "model_chunk"]


def placed(rows: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Operations of a rank in order of time, on the time axis of the job, with the micro-batch that they serve."""
    start = pl.col("base_ns") + in_ns(pl.col("start_ts"))
    end = pl.col("base_ns") + in_ns(pl.col("start_ts") + pl.col("duration"))
    timed = (
        rows.join(layout.steps, on="step")
        .with_columns(
            start_ns=start,
            duration_ns=end - start,
            way=pl.col("optype").str.extract(r"^(forward|backward)"),
            seq_id=pl.col("seq_id").fill_null(0),
            model_chunk=CHUNK.cast(pl.Int32),
        )
        .with_columns(micro_batch=MICRO_BATCH.cast(pl.Int32))
        .sort("start_ns", "duration_ns", "optype", "seq_id", "model_chunk")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
    )
    computing = timed.filter(pl.col("way").is_not_null() & pl.col("optype").str.ends_with("-compute"))
    transfers = timed.filter(pl.col("optype").is_in(list(STREAMS)))
    served = (
        transfers.select("row", "step", "way", "optype", "seq_id").join(
            _served(computing), on=["step", "optype", "seq_id"], how="left"
        )
        if layout.chunks == 1
        else _in_turn(transfers, computing, layout)
    )
    known = served.unique("row", keep="first").select("row", mb="micro_batch", chunk="model_chunk")
    is_transfer = pl.col("optype").is_in(list(STREAMS))
    own = pl.col("way").is_not_null() & ~is_transfer
    return timed.join(known, on="row", how="left", maintain_order="left").with_columns(
        micro_batch=pl.when(is_transfer).then(pl.coalesce("mb", "seq_id")).when(own).then("micro_batch"),
        model_chunk=pl.when(is_transfer).then(pl.coalesce("chunk", 0)).when(pl.col("mc") >= 0).then("mc"),
    )


def _served(computing: pl.DataFrame) -> pl.DataFrame:
    """The micro-batch of each position, which transfers share with computing where ranks have one chunk."""
    found = computing.select("step", "way", "seq_id", "micro_batch", "model_chunk")
    both = [found.with_columns(optype=filled_in("{}-{}", "way", pl.lit(end))) for end in ("send", "recv")]
    return pl.concat(both).drop("way")


def _in_turn(transfers: pl.DataFrame, computing: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """The k-th transfer of a kind serves the k-th computing that needs one: the first chunk of the model receives no
    activations, the last one no gradients."""
    at = pl.col("model_chunk") * layout.stages + pl.col("stage")
    at = pl.when(pl.col("gmc") >= 0).then("gmc").otherwise(at)
    last = layout.chunks * layout.stages - 1
    parts = []
    for optype, needs in {
        "forward-recv": at > 0,
        "forward-send": at < last,
        "backward-recv": at < last,
        "backward-send": at > 0,
    }.items():
        way = optype.partition("-")[0]
        turn = pl.int_range(pl.len()).over("step")
        users = computing.filter((pl.col("way") == way) & needs).with_columns(turn=turn)
        ours = transfers.filter(pl.col("optype") == optype).sort("step", "seq_id", "row").with_columns(turn=turn)
        found = ours.select("row", "step", "turn").join(
            users.select("step", "turn", "micro_batch", "model_chunk"), on=["step", "turn"]
        )
        parts.append(found.select("row", "micro_batch", "model_chunk"))
    return pl.concat(parts)


def kernel_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `kernels`: computing and communication. Garbage collection is the host's."""
    work = rows.filter(pl.col("optype") != GARBAGE_COLLECTION)
    is_call = pl.col("operation").is_not_null()
    return KERNELS.shaped(
        work.select(
            *("start_ns", "duration_ns", "step", "micro_batch", "model_chunk", "stream"),
            kernel=pl.int_range(pl.len(), dtype=pl.Int64),
            name="optype",
            type="optype",
            kind=pl.when(is_call).then(pl.lit("communication")).otherwise(pl.lit("compute")),
            correlation="row",
        )
    )


def collective_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `collectives`."""
    calls = rows.filter(pl.col("operation").is_not_null())
    return COLLECTIVES.shaped(
        calls.select(
            *("start_ns", "duration_ns", "micro_batch", "model_chunk", "stream", "step"),
            *("group", "sequence", "operation", "peer"),
            collective=pl.int_range(pl.len(), dtype=pl.Int64),
            name="optype",
            group_size=pl.col("size"),
            on_device=True,
            correlation="row",
        )
    )


def collection_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of `slices`: garbage collections."""
    found = rows.filter(pl.col("optype") == GARBAGE_COLLECTION)
    return SLICES.shaped(
        found.select(
            *("start_ns", "duration_ns", "step"),
            slice=pl.int_range(pl.len(), dtype=pl.Int64),
            self_ns="duration_ns",
            category=pl.lit("gc"),
            name="optype",
            thread=pl.lit(_THREAD),
            depth=0,
        )
    )


def step_rows(rows: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """Rows of `steps`: all ranks begin and end a step together."""
    steps = layout.steps.join(rows.select("step").unique(), on="step", how="semi", maintain_order="left")
    end = pl.col("base_ns") + pl.col("length_ns")
    return STEPS.shaped(
        steps.select(
            "step",
            start_ns="base_ns",
            end_ns=end,
            window_start_ns="base_ns",
            window_end_ns=end,
            window=pl.lit("host"),
        )
    )


def with_calls(rows: pl.DataFrame, layout: Layout, sizes: Sizes, rank: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add `operation`, `group`, `sequence`, `peer`, `size` and `stream`; and the rows of `groups`."""
    stage, replica = layout.ranks.filter(pl.col("rank") == rank).select("stage", "dp_rank").row(0)
    members: dict[str, tuple[str, list[int]]] = {}
    calls = []
    for optype in sorted(rows["optype"].unique()):
        kind = communication(optype)
        if kind is None:
            continue
        if kind.members == "neighbours":
            calls.extend(_transfers(optype, kind.operation, rows, layout, (rank, stage, replica), members))
            continue
        group, name, of = {
            "stage": (f"data stage {stage}", "dp", layout.ranks.filter(pl.col("stage") == stage)["rank"].to_list()),
            "replica": (f"embedding data {replica}", "embedding", layout.having(optype, replica)),
            "job": ("job", "job", layout.ranks["rank"].to_list()),
        }.get(kind.members, (f"tensor {rank}", "tp", _tensor(rank, sizes)))
        members[group] = (name, of)
        calls.append((optype, None, kind.operation, group, None, len(of), 1, layout.calls.index(optype)))
    schema = {
        "optype": pl.String,
        "model_chunk": pl.Int32,
        "operation": pl.String,
        "group": pl.String,
        "peer": pl.Int32,
        "size": pl.Int32,
        "stream": pl.Int32,
        "turn": pl.Int64,
    }
    table = pl.DataFrame(calls, schema=schema, orient="row")
    transfers, others = (table.filter(pl.col("model_chunk").is_not_null() == way) for way in (True, False))
    found = rows.join(transfers, on=["optype", "model_chunk"], how="left", maintain_order="left").join(
        others.drop("model_chunk"), on="optype", how="left", maintain_order="left", suffix="_other"
    )
    added = [pl.coalesce(name, f"{name}_other").alias(name) for name in ("operation", "group", "peer", "size")]
    stream = pl.coalesce("stream", "stream_other", pl.lit(0, pl.Int32))
    # Positions must be the same on all members, whatever operations one of them lacks.
    turn = pl.coalesce("turn", "turn_other")
    of_kind = pl.col("seq_id").cast(pl.Int64) * layout.chunks + pl.col("model_chunk").fill_null(0)
    of_step = (
        pl.when(pl.col("stream") > 1).then("micro_batch").otherwise(turn * layout.numbers * layout.chunks + of_kind)
    )
    per_step = max(len(layout.calls), 1) * layout.numbers * layout.chunks
    with_all = found.with_columns(*added, stream=stream).with_columns(sequence=pl.col("number") * per_step + of_step)
    table_of_groups = GROUPS.frame(
        group=list(members), name=[name for name, _ in members.values()], members=[of for _, of in members.values()]
    )
    return with_all.drop(
        [name for name in with_all.columns if name.endswith("_other") or name == "turn"]
    ), table_of_groups


def _tensor(rank: int, sizes: Sizes) -> list[int]:
    first = rank - rank % sizes.tensor
    return list(range(first, first + sizes.tensor))


def _transfers(
    optype: str,
    operation: str,
    rows: pl.DataFrame,
    layout: Layout,
    own: tuple[int, int, int],
    members: dict[str, tuple[str, list[int]]],
) -> list[tuple[object, ...]]:
    """A row for each model chunk of the rank: the neighbour to which or from which it is moved."""
    rank, stage, replica = own
    way = 1 if optype.startswith("forward") == (operation == "send") else -1
    found: list[tuple[object, ...]] = []
    for chunk in range(layout.chunks):
        at = chunk * layout.stages + stage + way
        peer = layout.by_place.get((at % layout.stages, replica))
        low = min(at, at - way)
        ends = sorted([rank] if peer is None else [rank, peer])
        group = f"{optype.partition('-')[0]} {low}-{low + 1} of data {replica}"
        if rows.filter((pl.col("optype") == optype) & (pl.col("model_chunk") == chunk)).is_empty():
            continue
        members[group] = ("pp", ends)
        found.append((optype, chunk, operation, group, peer, 2, STREAMS[optype], 0))
    return found
