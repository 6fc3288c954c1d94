"""Rows of `collectives`: one per call, from the device if there is one, otherwise from the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from stepscope.sources.communication_names import library_kernels
from stepscope.sources.distinct import Distinct
from stepscope.sources.kineto import communication as comm
from stepscope.sources.kineto import header as head
from stepscope.sources.kineto.events import Events
from stepscope.sources.kineto.host import HostTree
from stepscope.sources.kineto.layout import COMM_COLUMNS, COMM_SPLITS
from stepscope.sources.kineto.segments import Segment
from stepscope.sources.kineto.steps import Steps
from stepscope.tables.communication import PART, POINT_TO_POINT, WHOLE


class Calls:
    """Collects the calls of a rank, segment by segment: one row each, small compared with the events."""

    def __init__(self, groups: Sequence[Mapping[str, Any]], steps: Steps) -> None:
        self._groups = groups
        """Rows of `groups` that the recording lists."""
        self._steps = steps
        self._parts: list[pl.DataFrame] = []
        self._by_id = _recorded_calls(Segment({"call": []}, None), 0).drop("call_row")

    def add(self, segment: Segment, tree: HostTree, work: pl.DataFrame | None) -> None:
        """Take in the calls of one more segment."""
        annotations = _annotations(segment, tree)
        new = annotations.filter(pl.col("slice") >= segment.first_slice)
        self._parts.append(_host_calls(new, self._steps, self._only_group))
        calls = _recorded_calls(segment, tree.offsets["call"])
        identified = pl.concat([self._by_id, calls.drop("call_row").drop_nulls("call_id")])
        self._by_id = identified.unique("call_id", keep="first", maintain_order=True)
        if work is not None:
            kernels = _with_splits(work.filter(pl.col("kind") == "communication"))
            self._parts.append(_device_calls(kernels, tree, calls, self._by_id, annotations, self._only_group))

    def found(self) -> pl.DataFrame:
        """All calls, not yet numbered."""
        calls = pl.concat([p for p in self._parts if p.height] or self._parts[:1], how="diagonal_relaxed")
        sizes = {row["group"]: len(row["members"]) for row in self._groups if row["members"]}
        listed_size = pl.col("group").replace_strict(sizes, default=None, return_dtype=pl.Int64)
        return calls.with_columns(group_size=pl.coalesce("group_size", listed_size))

    @property
    def _only_group(self) -> str | None:
        """The group of all calls if there is only one."""
        return self._groups[0]["group"] if len(self._groups) == 1 else None


def group_rows(events: Events, listed: Sequence[Mapping[str, Any]]) -> pl.DataFrame | None:
    """Rows of `groups`: those that are listed, then those that only calls name."""
    rows = {row["group"]: dict(row) for row in listed}
    columns = ["start_ns", "comm_group", "comm_group_name", "comm_members"]
    for name in ("call", "device"):
        for frame in events.frames(name, columns):
            seen = frame.select(columns[1:]).drop_nulls("comm_group").unique(maintain_order=True)
            for group, description, members in seen.iter_rows():
                row = rows.setdefault(group, {"group": group, "name": None, "members": None})
                row["members"] = row["members"] or head.member_list(members)
                if row["name"] is None and description not in (None, "", "undefined"):
                    row["name"] = description
    schema = {"group": pl.String(), "name": pl.String(), "members": pl.List(pl.Int32())}
    return pl.DataFrame(list(rows.values()), schema=schema) if rows else None


def _annotations(segment: Segment, tree: HostTree) -> pl.DataFrame:
    """Annotations of communication calls (`nccl:all_reduce`, `gloo:broadcast`), with bytes and data type."""
    pattern = f"{comm.HOST_CALL}|{comm.DEVICE_CALL}"
    texts = ["name", "input_shapes", "input_types"]
    numbers = ["start_ns", "duration_ns", "slice"]
    schema = {**dict.fromkeys(texts, pl.String()), **dict.fromkeys([*numbers, "row"], pl.Int64()), "place": pl.Int32()}
    found = []
    for name in ("annotation", "operator"):
        rows = pl.int_range(tree.offsets[name], tree.offsets[name] + pl.len(), dtype=pl.Int64)
        named = segment.whole(name, [*texts, *numbers, "place"]).with_columns(row=rows).select(list(schema))
        found.append(named.filter(Distinct(named["name"]).matching(pattern)))
    all_found = pl.concat([pl.DataFrame(schema=schema), *found])
    pairs = all_found.select("input_shapes", "input_types").rows()
    sizes = {pair: comm.tensor_bytes(*pair) for pair in set(pairs)}  # few differ
    sized = [sizes[pair] for pair in pairs]
    described = all_found.with_columns(
        pl.Series("size_bytes", [s for s, _ in sized], dtype=pl.Int64),
        pl.Series("element_type", [t for _, t in sized], dtype=pl.String),
        peer=comm.peer_in(pl.col("name")),
    )
    return _with_peers(described, segment)


def _with_peers(annotations: pl.DataFrame, segment: Segment) -> pl.DataFrame:
    """Annotations with the other side of sends and receives that their names do not state, from the inputs of the
    operator in which they begin, where shapes were recorded."""
    unknown = pl.col("peer").is_null() & pl.col("name").str.contains(comm.TRANSFER)
    if annotations.filter(unknown).is_empty():
        return annotations
    operators = segment.whole("operator", ["name", "start_ns", "duration_ns", "place", "input_values"])
    made = operators.filter(Distinct(operators["name"]).matching(comm.TRANSFER_CALL)).sort("start_ns")
    peers = [comm.peer_of(values) for values in made["input_values"]]
    known = made.select(
        "place",
        begun_ns="start_ns",
        over_ns=pl.col("start_ns") + pl.col("duration_ns"),
        made=pl.Series(peers, dtype=pl.Int32),
    )
    ordered = annotations.with_row_index("at").sort("start_ns", maintain_order=True)
    found = ordered.join_asof(known, left_on="start_ns", right_on="begun_ns", by="place", check_sortedness=False)
    inside = unknown & (pl.col("start_ns") <= pl.col("over_ns"))
    return (
        found.with_columns(peer=pl.when(inside).then("made").otherwise("peer")).sort("at").select(annotations.columns)
    )


def _host_calls(annotations: pl.DataFrame, steps: Steps, only_group: str | None) -> pl.DataFrame:
    """Calls that run on the host: their annotation spans them."""
    calls = annotations.filter(pl.col("name").str.contains(comm.HOST_CALL))
    operation = comm.operation_of(pl.col("name"))
    return calls.select(
        *("name", "start_ns", "duration_ns", "size_bytes", "element_type"),
        group=pl.lit(only_group, pl.String),
        operation=operation,
        # an annotation knows the input, which of a gather is one member's part; of a scatter, recorders differ
        size_of=pl.when(operation.is_in(["all_gather", "gather"]))
        .then(pl.lit(PART))
        .when(operation != "scatter")
        .then(pl.lit(WHOLE)),
        group_size=pl.lit(None, pl.Int64),
        peer="peer",
        on_device=pl.lit(False),
        step=steps.of(calls["start_ns"]),
    )


def _device_calls(
    kernels: pl.DataFrame,
    tree: HostTree,
    calls: pl.DataFrame,
    by_id: pl.DataFrame,
    annotations: pl.DataFrame,
    only_group: str | None,
) -> pl.DataFrame:
    """Communication kernels with their own data and that of the framework's record and annotation of the call.

    A kernel that was launched before the recording began stays without a group, as how many such kernels there
    are differs from rank to rank and would shift the count in the group. Kernels that are only a part of a call,
    or whose meaning is unknown, are no calls unless something else describes them. `calls` are the records in the
    segment, `by_id` those in it and in all earlier ones; calls that name no group are of `only_group`.
    """
    marks = annotations.filter(pl.col("name").str.contains(comm.DEVICE_CALL)).select(
        mark_row="row", mark="name", mark_bytes="size_bytes", mark_type="element_type", mark_peer="peer"
    )
    # the record that encloses the launch, otherwise the one with the same id
    rows = (
        kernels.with_columns(
            call_row=tree.climb(kernels["launch_row"], calls["call_row"]),
            mark_row=tree.climb(kernels["launch_row"], marks["mark_row"]),
        )
        .join(calls.drop("call_id"), on="call_row", how="left", suffix="_call", maintain_order="left")
        .join(by_id, left_on="external_id", right_on="call_id", how="left", suffix="_id", maintain_order="left")
        .join(marks, on="mark_row", how="left", maintain_order="left")
    )
    enclosed = pl.col("call_row").is_not_null()
    rows = rows.with_columns(
        pl.coalesce(c, pl.when(enclosed).then(f"{c}_call").otherwise(f"{c}_id")).alias(c)
        for c in (*COMM_COLUMNS, *COMM_SPLITS)
    )
    said = Distinct(rows["name"]).judged(lambda names: library_kernels(names).to_struct()).struct.unnest()
    described = pl.any_horizontal(pl.col("mark", "comm_name", "comm_group").is_not_null())
    rows = rows.with_columns(said.select("is_call", said="operation")).filter(pl.col("is_call") | described)
    sizes = [comm.size_bytes(*row) for row in rows.select("comm_in", "comm_out", "comm_type").iter_rows()]
    operation = comm.operation_of(pl.coalesce("comm_name", "mark", "said", "name"))
    rows = rows.with_columns(pl.Series("comm_bytes", sizes, dtype=pl.Int64), operation=operation)
    # an annotation knows the input only; of a gather that is one member's part
    launched = pl.col("launch_row").is_not_null()
    parts = pl.when(pl.col("operation") == "all_gather").then("comm_group_size").otherwise(1)
    return rows.select(
        *("name", "start_ns", "duration_ns", "operation", "stream", "correlation", "step"),
        group=pl.coalesce("comm_group", pl.when(launched).then(pl.lit(only_group, pl.String))),
        group_size="comm_group_size",
        recorded="comm_sequence",
        size_bytes=pl.coalesce("comm_bytes", pl.col("mark_bytes") * parts),
        size_of=pl.lit(WHOLE),
        element_type=pl.coalesce("comm_type", "mark_type"),
        peer=pl.when(pl.col("operation") == "send")
        .then(pl.coalesce("comm_destination", "mark_peer"))
        .when(pl.col("operation") == "recv")
        .then(pl.coalesce("comm_source", "mark_peer")),
        on_device=pl.lit(True),
        input_splits="comm_input_splits",
        output_splits="comm_output_splits",
    )


def _with_splits(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with columns for their splits, which are null if none has them."""
    missing = [name for name in COMM_SPLITS if name not in calls.columns]
    return calls.with_columns(pl.lit(None, pl.String).alias(name) for name in missing)


def _recorded_calls(segment: Segment, first_row: int) -> pl.DataFrame:
    """The framework's records of calls (`record_param_comms`) in a segment, whose rows begin at `first_row`."""
    calls = _with_splits(segment.whole("call"))
    return calls.select(
        *COMM_COLUMNS,
        *COMM_SPLITS,
        call_id="external_id",
        call_row=pl.int_range(first_row, first_row + calls.height, dtype=pl.Int64),
    )


def numbered(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls in start order with their place in their group.

    The recorded sequence number is used where every call of a group has one, for it is the same on all members
    even if some recordings begin later. Point-to-point calls are counted for themselves: only two ranks make
    them, so counting them among the others would shift these.
    """
    if "recorded" not in calls.columns:
        calls = calls.with_columns(recorded=pl.lit(None, pl.Int64))
    calls = calls.sort("start_ns", maintain_order=True).with_columns(
        collective=pl.int_range(pl.len(), dtype=pl.Int64),
        between_two=pl.col("operation").is_in(POINT_TO_POINT) & pl.col("group").is_not_null(),
    )
    key = ["group", "on_device", "between_two"]
    position = pl.int_range(pl.len(), dtype=pl.Int64).over(key)
    all_recorded = pl.col("recorded").is_not_null().all().over(key)
    return calls.with_columns(sequence=pl.when(all_recorded).then("recorded").otherwise(position)).drop(
        "recorded", "between_two"
    )
