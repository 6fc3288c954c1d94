"""When a rank was computing, communicating, moving memory, loading data and so on, as all time splits use it.

On an accelerator the first three are its kernels. In a CPU-only recording, computing is the framework's operators on
any thread, communication is the backend's collective work (e.g. `gloo:*`) and the calls that start or await it (see
`host_work`).
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, lengths, pieces
from stepscope.analysis.registry import analysis, ranks_of, without_rows
from stepscope.analysis.step.host_work import host_work
from stepscope.analysis.step.marked_steps import LIMITS, Limits, phases_of_unrecorded
from stepscope.analysis.step.marks import KINDS as MARKS
from stepscope.analysis.step.marks import merged
from stepscope.errors import Unavailable
from stepscope.tables import COLLECTIVES, KERNELS
from stepscope.tables.base import Column

WORK = ("computing", "communication", "memory")
KINDS = (*WORK, *MARKS)
SPLIT = (*WORK, "data", "phase", "compile", "gc")
"""The kinds that classify a piece of time, besides `computing`."""

LAUNCH = r"^(cuda|cu|hip)\w*Launch\w*Kernel"
"""Host calls that launch device work."""

DOING = {"compute": "computing", "communication": "communication", "memory": "memory"}
"""Kind of a kernel to what the rank is doing."""


@analysis(
    "rank",
    columns(
        "rank",
        Column("what", "string", "What the rank, or its host (see `marks`), was doing.", values=KINDS),
        "start_ns end_ns",
        meaning("on_device", "True if the rank's work was recorded on a device, false if on the host."),
        nulls="",
    ),
    together=True,
    every_step=True,
)
def activity(
    steps: pl.LazyFrame,
    kernels: pl.LazyFrame | None,
    collectives: pl.LazyFrame | None,
    operators: pl.LazyFrame | None,
    marks: pl.DataFrame | None,
    ranks: pl.LazyFrame | None,
    slices: pl.LazyFrame | None = None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Merge each rank's ranges by kind: one row per merged range.

    If a rank has no device work, the host's operators and collectives count. `slices` show calls that launch device
    work, and garbage collections.

    Raises:
        Unavailable: If no work of a rank was recorded, or only its communication but not what its device computed:
            nothing recorded does not mean nothing done.
    """
    device, computing = _device_work(KERNELS.or_empty(kernels))
    calls = COLLECTIVES.or_empty(collectives).select("rank", "on_device", "start_ns", "duration_ns").collect()
    on_device = {*device["rank"].unique(), *calls.filter("on_device")["rank"].unique()}
    if uncertain := on_device - computing:
        why = "device work was recorded without compute kernels, so what it computed is unknown"
        raise Unavailable(why, of=sorted(uncertain))
    is_host = ~pl.col("rank").is_in(sorted(on_device))
    parts = [
        device,
        _named(calls.filter(pl.col("on_device") | is_host), pl.lit("communication")),
    ]
    if operators is not None and not on_device.issuperset(ranks_of(steps)):
        _not_launched(slices, is_host)
        parts.append(host_work(operators.filter(is_host), calls, slices))
    found = merged(pl.concat(parts))
    if marks is not None:
        found = pl.concat([found, _explaining(marks, found, on_device, ranks, steps, limits)])
    if unknown := without_rows(ranks_of(steps), found.filter(pl.col("what").is_in([*WORK, "phase"]))):
        raise Unavailable("no work of the rank was recorded", of=unknown)
    return found.with_columns(on_device=~is_host)


def _device_work(kernels: pl.LazyFrame) -> tuple[pl.DataFrame, set[int]]:
    """Ranges of the kernels by kind, and the ranks that compute."""
    parts: list[pl.DataFrame] = []
    computing: set[int] = set()
    for batch in batches(kernels.select("rank", "kind", "start_ns", "duration_ns")):
        computing.update(batch.filter(pl.col("kind") == "compute")["rank"].unique())
        parts.append(merged(_named(batch, pl.col("kind").replace_strict(DOING, default="computing"))))
    return pl.concat(parts), computing


def _not_launched(slices: pl.LazyFrame | None, is_host: pl.Expr) -> None:
    """Raise `Unavailable` if ranks without recorded device work launched any."""
    launches = (pl.col("category") == "runtime") & pl.col("name").str.contains(LAUNCH)
    if slices is not None and (launched := ranks_of(slices.filter(is_host & launches))):
        why = "kernels were launched but their times were not recorded, so what the device did is unknown"
        raise Unavailable(why, of=launched)


def _explaining(
    marks: pl.DataFrame,
    found: pl.DataFrame,
    on_device: set[int],
    ranks: pl.LazyFrame | None,
    steps: pl.LazyFrame,
    limits: Limits,
) -> pl.DataFrame:
    """`marks` without phases in ranks and steps whose work was recorded: elsewhere the phases are all that is known."""
    is_phase = pl.col("what") == "phase"
    working = [*on_device, *found.filter(pl.col("what") == "computing")["rank"].unique()]
    on_host = found.filter(~pl.col("rank").is_in(sorted(on_device)))
    left_out = phases_of_unrecorded(marks, on_host, steps, limits)
    kept = pl.concat([marks.filter(~is_phase | ~pl.col("rank").is_in(working)), left_out])
    marked = kept.filter(is_phase)["rank"].unique().to_list()
    on_other = pl.col("rank").is_in(marked) & (pl.col("device_kind") != "cpu")
    if ranks is not None and marked and (others := ranks_of(ranks.filter(on_other))):
        raise Unavailable("device work was not recorded, so what it computed is unknown", of=others)
    return kept


def split(
    activity: pl.DataFrame, windows: pl.LazyFrame, kinds: Iterable[str] = SPLIT, **more: pl.LazyFrame
) -> pl.LazyFrame:
    """Cut windows into pieces by each rank's activity.

    Args:
        activity: The ranges of each kind.
        windows: Disjoint ranges of each `rank`, with an integer `window`, `start_ns`, `end_ns`.
        kinds: The kinds that distinguish pieces, including those of `SPLIT`.
        **more: Other ranges (`rank`, `start_ns`, `end_ns`) that distinguish pieces.

    Returns:
        As `intervals.pieces`: `rank`, `window`, `start_ns`, `duration_ns` and a Boolean column for each kind and each
        of `more`. On a CPU, operators inside the data loader count as loading, not `computing`, and those around a
        compiler as compiling; if no operators were recorded, phases of the step count as computing except during
        communication and garbage collection.
    """
    return pieces({**_layers(activity, kinds), **more}, windows, by=["rank"]).with_columns(computing=_works(activity))


def split_lengths(
    activity: pl.DataFrame, windows: pl.LazyFrame, kinds: Iterable[str] = SPLIT, **more: pl.LazyFrame
) -> pl.DataFrame:
    """The sums of `split`, as `intervals.lengths`: how long each window had which activity."""
    found = lengths({**_layers(activity, kinds), **more}, windows, by=["rank"])
    return found.with_columns(computing=_works(activity))


def _layers(activity: pl.DataFrame, kinds: Iterable[str]) -> dict[str, pl.DataFrame]:
    ranges = activity.select("rank", "start_ns", "end_ns")
    parts: dict[str, list[pl.DataFrame]] = {what: [ranges.clear()] for what in kinds}
    start = 0
    for length, what in activity["what"].rle().struct.unnest().iter_rows():  # one kind follows the other
        parts.setdefault(what, []).append(ranges.slice(start, length))
        start += length
    return {what: pl.concat(parts[what]) for what in kinds}


def _works(activity: pl.DataFrame) -> pl.Expr:
    """Whether the work of a rank counts as computing."""
    marked = pl.col("phase") & ~pl.col("communication") & ~pl.col("gc")
    return (pl.col("computing") | marked) & (~(pl.col("data") | pl.col("compile")) | is_on_device(activity))


def is_on_device(activity: pl.DataFrame) -> pl.Expr:
    """Whether a rank's work runs on an accelerator; false if the recording is CPU-only."""
    return pl.col("rank").is_in(activity.filter("on_device")["rank"].unique().to_list())


def _named(table: pl.DataFrame, what: pl.Expr, *more: str) -> pl.DataFrame:
    return table.select("rank", what.alias("what"), "start_ns", *more, end_ns=END)
