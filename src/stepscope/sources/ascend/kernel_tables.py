"""`kernels`, `kernel_counters` and the totals of kernels and API calls."""

from __future__ import annotations

import polars as pl

from stepscope.sources.ascend.exported_rank import COMPUTE, first_of_each, in_order, nothing, shaped
from stepscope.sources.ascend.pmu import counters_of
from stepscope.sources.ascend.steps import step_at
from stepscope.sources.ascend.timeline import Piece
from stepscope.sources.communication_names import is_library_kernel
from stepscope.sources.distinct import Distinct
from stepscope.tables import KERNELS, OPERATOR_TOTALS
from stepscope.tables.base import repeated

LAUNCH_LAYERS = ("Node@", "HCCL@", "Runtime@", "Model@", "AscendCL@")
"""Layers of the host's API, best first, whose call is taken as the launch of device work."""
API_WORDS = {"acl": "AscendCL", "model": "Model", "node": "Node", "communication": "HCCL", "runtime": "Runtime"}
"""Level of an API call in `operator_totals` to the word that the text export puts before the `@` in its name."""
CALL_CORE = "COMMUNICATION"
"""Core of the rows of `kernels` that are whole calls of communication."""
IS_KERNEL = (pl.col("kind") != "memory") & (pl.col("core").fill_null("") != CALL_CORE)
"""Whether a row of `kernels` is a kernel, as the device and its totals count them, even if it communicates."""
API_LEVELS = {**{word: level for level, word in API_WORDS.items()}, "Communication": "communication"}
"""Word before the `@` in the name of an API call to its level."""
_LAUNCH = {"correlation": pl.Int64, "layer": pl.Int32, "launch_start_ns": pl.Int64, "launch_end_ns": pl.Int64}
_NO_KERNELS = nothing(COMPUTE)
_NO_LAUNCHES = nothing(_LAUNCH)
_LAUNCHES = (pl.col("category") == "runtime") & pl.col("correlation").is_not_null()
_LAUNCH_OF = {
    "correlation": pl.col("correlation"),
    "layer": pl.coalesce(
        *(pl.when(pl.col("name").str.starts_with(word)).then(at) for at, word in enumerate(LAUNCH_LAYERS)),
        pl.lit(len(LAUNCH_LAYERS)),
    ),
    "launch_start_ns": pl.col("start_ns"),
    "launch_end_ns": pl.col("start_ns") + pl.col("duration_ns"),
}
_WORK = {name: dtype for name, dtype in COMPUTE.items() if not name.startswith("launch_")}
"""Work of the device before its launch is known."""
_LAUNCHES_KEPT = 500_000
"""Device work may lag behind its launch by that many other launches."""
_API_PARTS = pl.col("name").str.splitn("@", 2).struct
_API_CALL = {
    "level": _API_PARTS.field("field_0").replace_strict(API_LEVELS, default=None),
    "name": _API_PARTS.field("field_1"),
}
"""Level and name of an API call by its recorded name, e.g. `AscendCL@aclnnAdd`."""
_FIGURES = {
    "count": pl.len(),
    "total_ns": pl.sum("duration_ns"),
    "min_ns": pl.min("duration_ns"),
    "max_ns": pl.max("duration_ns"),
}


class Launches:
    """The host's API calls by the device work that they launched, while it may still come."""

    def __init__(self) -> None:
        self.known = _NO_LAUNCHES()

    def add(self, piece: Piece | None) -> None:
        """Take in the calls of one more piece; of several with one number the best layer counts, then the first."""
        host = None if piece is None else piece.of("host")
        if host is None:
            return
        named = host.select("category", "correlation", "name", "start_ns", "duration_ns")
        calls = named.filter(_LAUNCHES).select(**_LAUNCH_OF)
        if self.known.height:
            calls = calls.sort("launch_start_ns", maintain_order=True)
            ordered = pl.concat([self.known.tail(_LAUNCHES_KEPT), calls]).sort("layer", maintain_order=True)
        else:
            ordered = calls.sort("layer", "launch_start_ns", maintain_order=True)
        best = first_of_each(ordered, "correlation")
        self.known = best if best.height <= _LAUNCHES_KEPT else best.sort("launch_start_ns", maintain_order=True)


class KernelTables:
    """Makes the rows of `kernels` and `kernel_counters`, piece by piece.

    Args:
        operator_starts: When the operator behind each connection id began.
        ranges: The steps.
        are_stated: Whether the source states the steps of kernels itself, and only the host's part is missing.
        on_gpu: Whether the work is that of a GPU, in our own export: as in other recordings of GPUs, its step is that
            of its launch, and what was launched before the recording is in none.
    """

    def __init__(
        self, operator_starts: pl.DataFrame, ranges: pl.DataFrame, *, are_stated: bool, on_gpu: bool = False
    ) -> None:
        self._starts = first_of_each(operator_starts, "correlation")
        self._ranges = ranges
        self._are_stated = are_stated
        self._on_gpu = on_gpu
        self._rows = 0

    def rows(self, piece: Piece, launches: Launches) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The device work of a piece in order of start, with its launch and step, and the counters that it has."""
        compute = with_details(piece)
        counted = counters_of(compute)
        parts = [shaped(compute, {**_WORK, **counted}).with_columns(kind=_kind(compute))]
        if (calls := piece.of("communication")) is not None:
            size = pl.lit(None, pl.Int64)
            called = calls.with_columns(kind=pl.lit("communication"), core=pl.lit(CALL_CORE), size_bytes=size)
            parts.append(shaped(called, _WORK))
        if (tasks := piece.of("tasks")) is not None:
            memory = copies(tasks, calls).with_columns(kind=pl.lit("memory"), type="name")
            parts.append(shaped(memory, _WORK))
        rows = pl.concat(parts, how="diagonal")
        rows = in_order(rows, "stream", "name", "duration_ns").join(
            launches.known.drop("layer"), on="correlation", how="left", maintain_order="left"
        )
        by_launch = self._on_gpu and launches.known.height > 0
        rows = self._with_step(rows, by_launch).with_row_index("kernel", offset=self._rows)
        self._rows += rows.height
        if not counted:
            return KERNELS.shaped(rows), rows.select("kernel").clear()
        own = rows[[name for name in rows.columns if name not in counted]]
        return KERNELS.shaped(own), measured(rows[["kernel", *counted]])

    def _with_step(self, rows: pl.DataFrame, by_launch: bool) -> pl.DataFrame:
        """Fill in missing steps: from the launch alone, or from the operator, the launch, else the start."""
        if self._are_stated or not rows["step"].null_count():
            return rows
        if by_launch:
            return rows.with_columns(step=step_at(rows["launch_start_ns"], self._ranges, inside=True))
        known, times = rows, ["launch_start_ns", "start_ns"]
        if self._starts.height:
            known = rows.join(self._starts, on="correlation", how="left", maintain_order="left")
            times = ["operator_start_ns", *times]
        began = known.select(pl.coalesce(times)).to_series()
        inferred = step_at(began, self._ranges, inside=False)
        return rows.with_columns(step=pl.coalesce(pl.col("step"), inferred))


def measured(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with a value in any column but the first."""
    counters = rows.columns[1:]
    # Usually a kernel has all counters or none: then one of them tells.
    most = pl.col(min(counters, key=lambda counter: rows[counter].null_count()))
    without = rows.filter(most.is_null())
    if all(without[counter].null_count() == without.height for counter in counters):
        return rows.filter(most.is_not_null())
    return rows.filter(pl.any_horizontal(pl.col(counters).is_not_null()))


def _kind(kernels: pl.DataFrame) -> pl.Series:
    """What kernels do: some that the device lists as computing only move data, as those of expert parallelism."""
    operators = kernels["type"]
    if operators.null_count():
        operators = kernels.select(pl.coalesce("type", pl.col("name").str.split("/").list.last())).to_series()
    communicates = Distinct(operators).judged(is_library_kernel)
    if not communicates.any():
        return repeated("kind", "compute", pl.String, kernels.height)
    kind = pl.when(communicates).then(pl.lit("communication"))
    return pl.select(kind=kind.otherwise(pl.lit("compute"))).to_series()


def copies(tasks: pl.DataFrame, calls: pl.DataFrame | None) -> pl.DataFrame:
    """The copies among some tasks, without those that a call of communication makes, which are parts of the call:
    its tasks again, or run on a stream of its tasks while it lasts.
    """
    found = tasks.filter(pl.col("category") == "memory")
    parts = tasks.filter(pl.col("category") == "communication_task").drop_nulls("stream")
    if found.is_empty() or parts.is_empty():
        return found
    alone = found.join(parts, on=["start_ns", "stream"], how="anti", maintain_order="left")
    if calls is None or alone.is_empty():
        return alone
    end = pl.col("start_ns") + pl.col("duration_ns")
    spans = calls.sort("start_ns").select(at="start_ns", until=end.cum_max())
    around = alone.sort("start_ns", maintain_order=True).join_asof(spans, left_on="start_ns", right_on="at")
    within = (pl.col("start_ns") < pl.col("until")).fill_null(False)
    on_plane = pl.col("stream").is_in(parts["stream"].unique().implode())
    return around.filter(~(within & on_plane.fill_null(False))).drop("at", "until", strict=False)


def with_details(piece: Piece) -> pl.DataFrame:
    """Compute kernels of a piece: as the file of kernels lists them, with what only the trace knows."""
    traced, details = piece.of("compute"), piece.of("details")
    if details is None:
        return _NO_KERNELS() if traced is None else traced
    if traced is None:
        return details
    return joined(details, traced, ["start_ns", "name"], ["correlation", "stream"])


def joined(details: pl.DataFrame, traced: pl.DataFrame, key: list[str], taken: list[str]) -> pl.DataFrame:
    """`details` with the columns `taken` of the same events in the trace, and the trace's other events."""
    unique = traced.select(*key, *taken).unique(key, keep="first", maintain_order=True)
    both = details.join(unique, on=key, how="left", suffix="_traced", maintain_order="left").with_columns(
        pl.coalesce(name, f"{name}_traced") for name in taken
    )
    alone = traced.join(details, on=key, how="anti")
    return pl.concat([both.select(details.columns), alone], how="diagonal")


class Totals:
    """Sums up kernels and API calls for `operator_totals`, piece by piece."""

    def __init__(self) -> None:
        self._sums: list[pl.DataFrame] = []

    def add(self, kernel_rows: pl.DataFrame, host: pl.DataFrame | None) -> None:
        """Take in the rows of `kernels` and the host's ranges of one more piece."""
        work = kernel_rows.select("kind", "type", "core", "duration_ns")
        compute = work.filter(IS_KERNEL & pl.col("type").is_not_null())
        kernels = compute.group_by(name="type", core="core").agg(**_FIGURES)
        self._sums.append(kernels.with_columns(level=pl.lit("kernel")))
        if host is not None:
            calls = host.select("category", "duration_ns", "name").filter(pl.col("category") == "runtime")
            summed = calls.drop_nulls().group_by("name").agg(**_FIGURES)
            self._sums.append(summed.with_columns(**_API_CALL))

    def frame(self, stated: pl.DataFrame) -> pl.DataFrame:
        """Rows of `operator_totals`: summed from events, and as stated for levels that have no events."""
        named = pl.concat(self._sums, how="diagonal").drop_nulls(["level", "name"])
        again = (pl.sum("count", "total_ns"), pl.min("min_ns"), pl.max("max_ns"))
        summed = OPERATOR_TOTALS.shaped(named.group_by("level", "name", "core").agg(again))
        rest = stated.filter(~pl.col("level").is_in(summed["level"].unique().implode()))
        order = ("level", "total_ns", "name", "core")
        return pl.concat([summed, rest], how="vertical_relaxed").sort(order, descending=[False, True, False, False])
