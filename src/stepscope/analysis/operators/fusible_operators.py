"""Short operators that follow one another again and again, and that one fused operator could do at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.device.operator_work import PIPES
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.launch_owners import owners
from stepscope.analysis.methods.recurring_windows import Row, recurring_windows
from stepscope.analysis.methods.work_classes import work_class
from stepscope.analysis.methods.written_sequences import written
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.limits import limit
from stepscope.tables import KERNEL_COUNTERS
from stepscope.tables.base import Column

NONE_FOUND = "no sequence of element-wise kernels recurs on a device that is idle, or only moves data, meanwhile"

HOST, MEMORY = BOUNDS = ("host", "memory")
"""What limits a sequence: launches, which leave the device idle between its kernels, or memory, through which each of
them moves its data again."""


@dataclass(frozen=True)
class Limits:
    """Which sequences could be fused. The Ascend advisor has the same limits, but adds up windows that overlap."""

    shortest: int = limit(3, "kernels of a sequence", "the Ascend advisor's limit")
    longest: int = limit(10, "kernels of a sequence", "the Ascend advisor's limit")
    times: int = limit(5, "occurrences in the mean step, which must be exceeded", "the Ascend advisor's limit")
    busy_ratio: float = limit(
        0.4, "of the sequence's time; the host limits what is busy for less", "the Ascend advisor's limit"
    )
    moving_ratio: float = limit(
        0.8,
        "of the kernels' time, in which moves are busy; memory limits what exceeds it",
        "the Ascend advisor's limit",
    )
    share_ratio: float = limit(0.01, "of the rank's steps, in a sequence", "the Ascend advisor's limit")


COLUMNS = columns(
    "rank",
    Column("sequence", "string", "Its kernels in order; `(x2)`: two in a row.", importance=64),
    Column("operators", "string", "Operators that launch them, in order; null if not known.", importance=62),
    Column("kernels", "int64", "Number of its kernels.", importance=40),
    Column("count", "int64", "How often it occurs; no kernel counts twice.", importance=63),
    Column("per_step", "float64", "How often it occurs in a step.", importance=30),
    Column("span_ns", "int64", "Time of all occurrences, from the start of their first kernel to the end of the last."),
    Column("busy_ns", "int64", "Time of their kernels.", title="busy", importance=61),
    Column("gaps_ns", "int64", "Time between them in which their stream runs nothing.", title="gaps", importance=60),
    Column("moving_ratio", "float64", "Share of the kernels' time with moves of data; null if not counted."),
    Column("bound", "string", "What limits it.", values=BOUNDS, importance=59),
    Column("share_ratio", "float64", "Share of the rank's steps.", title="share", importance=58),
    Column("shapes", "string", "Shapes of the inputs of its first kernel; null if not recorded.", importance=20),
    Column("place", "string", "User's function that called the first one, with file and line; null if not recorded."),
    Column("first_start_ns", "int64", "When the first one began.", moment=True, importance=5),
    nulls="operators moving_ratio shapes place",
    keep="rank sequence count busy_ns gaps_ns bound",
)

_FUSED = r"(?i)fused|fusion|triton_|multi_tensor|foreach|apply_?adam|flash|rms_?norm|layer_?norm|softmax|swi_?glu"
"""Kernels that do what several did: nothing is gained by fusing them again."""

_MOVES = ("mte1_ratio", "mte2_ratio", "mte3_ratio")
"""Pipes of a core that move data."""


@analysis("rank", COLUMNS, together=True, nothing=NONE_FOUND)
def fusible_operators(
    kernels: pl.LazyFrame,
    breakdown: pl.DataFrame,
    kernel_counters: pl.LazyFrame | None = None,
    operators: pl.LazyFrame | None = None,
    slices: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
    limits: Limits = Limits(),
) -> pl.DataFrame:
    """Find sequences of element-wise kernels and reductions that follow one another on a stream in every step, and that
    launches or memory limit: one row per rank and sequence, the longest time first.

    Kernels between which there is another one (a product of matrices, communication, a copy, work of the device's own
    processors, what is fused already) are in different sequences, as are those of different steps. The longest
    sequences are found first, and no kernel is in two of them, so their times add up to no more than the steps.

    Raises:
        Unavailable: If there are none.
    """
    rows = _in_runs(kernels)
    steps = breakdown.group_by("rank").agg(steps=pl.len(), window_ns=pl.col("window_ns").sum())
    members = _members(rows, {rank: number for rank, number, _ in steps.iter_rows()}, limits)
    if members.is_empty():
        raise Unavailable(NONE_FOUND)
    shares = [pl.when(pl.col(one).is_finite()).then(one) for name in _MOVES for one in PIPES[name]]
    moves = KERNEL_COUNTERS.or_empty(kernel_counters).select("rank", "kernel", moving=pl.max_horizontal(shares))
    found = members.join(moves.collect(engine="streaming"), on=["rank", "kernel"], how="left", maintain_order="left")
    sums = _sums(found).join(steps, on="rank", how="left").with_columns(
        per_step=pl.col("count") / pl.col("steps"), share_ratio=pl.col("span_ns") / pl.col("window_ns")
    )  # fmt: skip
    by_host = pl.col("busy_ns") < limits.busy_ratio * pl.col("span_ns")
    by_memory = (pl.col("moving_ratio") > limits.moving_ratio).fill_null(value=False)
    bound = pl.when(by_host).then(pl.lit(HOST)).when(by_memory).then(pl.lit(MEMORY))
    kept = sums.with_columns(bound=bound).filter(
        pl.col("bound").is_not_null() & (pl.col("share_ratio") >= limits.share_ratio)
    )
    if kept.is_empty():
        raise Unavailable(NONE_FOUND)
    return (
        kept.join(_launching(kept, members, kernels, operators, slices), on=["rank", "window"], how="left")
        .pipe(_placed, operators, stacks, slices)
        .with_columns(shapes=pl.col("shapes").replace("", None))
        .select(names(COLUMNS))
        .sort("rank", -pl.col("span_ns"), "sequence", "shapes", "first_start_ns")
    )


def _in_runs(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Kernels that could be fused, in order of their streams, with what they do (`what`, a number) and the run of such
    kernels that they are in (`run`)."""
    own = ["kind", "core", "type", "name", "input_shapes"]
    in_steps = kernels.filter(pl.col("step").is_not_null())
    rows = in_steps.select("rank", "device", "stream", "step", "start_ns", "duration_ns", "kernel", *own)
    named = rows.select(own).unique().collect(engine="streaming").sort(own, nulls_last=True).with_row_index("what")
    is_plain = (
        (pl.col("kind") == "compute")
        & (work_class(pl.coalesce("type", "name"), pl.col("core")) == "vector")
        & ~pl.coalesce("type", "name").str.contains(_FUSED)
        & ~pl.col("name").str.contains(_FUSED)
    )
    whats = named.with_columns(is_plain=is_plain)
    lane = ["rank", "device", "stream"]
    order = rows.join(whats.lazy(), on=own, how="left", nulls_equal=True).select(
        *lane, "step", "start_ns", "duration_ns", "kernel", "what", "is_plain", "name", "type", "input_shapes"
    )
    found = order.collect(engine="streaming").sort(*lane, "start_ns", "kernel")
    begins = pl.any_horizontal(pl.col(*lane, "step").ne_missing(pl.col(*lane, "step").shift(1)))
    return found.with_columns(run=(begins.fill_null(value=True) | ~pl.col("is_plain")).cum_sum()).filter("is_plain")


def _members(rows: pl.DataFrame, steps: dict[int, int], limits: Limits) -> pl.DataFrame:
    """The kernels of sequences that recur, with the sequence (`window`: number of the kind of run and first kernel's
    place in it), its occurrence and their place in it."""
    runs = rows.group_by("rank", "run", maintain_order=True).agg("what").filter(
        pl.col("what").list.len() >= limits.shortest
    )  # fmt: skip
    of_rank: dict[int, Counter[Row]] = defaultdict(Counter)
    whole: list[Row] = [tuple(what) for what in runs["what"]]
    for rank, row in zip(runs["rank"], whole, strict=True):
        of_rank[rank][row] += 1
    planned: dict[tuple[frozenset[tuple[Row, int]], int], dict[Row, list[tuple[int, int]]]] = {}
    places: dict[int, dict[Row, list[tuple[int, int]]]] = {}
    for rank, counted in of_rank.items():  # most ranks do the same
        key = frozenset(counted.items()), steps.get(rank, 1)
        if key not in planned:
            planned[key] = recurring_windows(counted, limits.times * key[1], limits.shortest, limits.longest)
        places[rank] = planned[key]
    windows: dict[Row, int] = {}
    marks = [
        (rank, run, windows.setdefault(row[begin : begin + length], len(windows)), begin + offset, begin, offset)
        for rank, run, row in zip(runs["rank"], runs["run"], whole, strict=True)
        for begin, length in places[rank].get(row, ())
        for offset in range(length)
    ]
    numbers = dict.fromkeys(("window", "place", "begin", "offset"), pl.Int64())
    schema = {"rank": pl.Int32(), "run": rows.schema["run"], **numbers}
    marked = pl.DataFrame(marks, schema=schema, orient="row")
    placed = rows.with_columns(place=pl.int_range(pl.len(), dtype=pl.Int64).over("run"))
    return placed.join(marked, on=["rank", "run", "place"], maintain_order="left")


def _sums(members: pl.DataFrame) -> pl.DataFrame:
    """Each rank's sequences, with the kernels of the first occurrence in words."""
    end = pl.col("start_ns") + pl.col("duration_ns")
    is_counted = pl.col("moving").is_not_null()
    weight = pl.col("duration_ns").clip(lower_bound=1)
    each = members.group_by("rank", "window", "run", "begin", maintain_order=True).agg(
        kernels=pl.len().cast(pl.Int64),
        start_ns=pl.col("start_ns").first(),
        end_ns=end.max(),
        busy_ns=pl.col("duration_ns").sum(),
        moving=(pl.col("moving") * weight).filter(is_counted).sum(),
        weight=weight.filter(is_counted).sum(),
        words=pl.coalesce("type", "name"),
        shapes=pl.col("input_shapes").first(),
    )
    sums = each.sort("rank", "start_ns", "run").group_by("rank", "window", maintain_order=True).agg(
        pl.col("kernels", "words", "shapes").first(),
        count=pl.len().cast(pl.Int64),
        span_ns=(pl.col("end_ns") - pl.col("start_ns")).sum(),
        # kernels of one stream do not overlap, but times are rounded
        busy_ns=pl.min_horizontal("busy_ns", pl.col("end_ns") - pl.col("start_ns")).sum(),
        moving_ratio=pl.when(pl.col("weight").sum() > 0).then(pl.col("moving").sum() / pl.col("weight").sum()),
        first_start_ns=pl.col("start_ns").first(),
    )  # fmt: skip
    sequences = [written([short_name(word) for word in words]) for words in sums["words"]]
    return sums.with_columns(
        sequence=pl.Series(sequences, dtype=pl.String), gaps_ns=pl.col("span_ns") - pl.col("busy_ns")
    )


def short_name(kernel: str) -> str:
    """The name of a kernel without namespaces and parameters of templates.

    Examples:
        >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>(int, float)")
        'vectorized_elementwise_kernel'
    """
    return kernel.removeprefix("void ").partition("<")[0].partition("(")[0].rpartition("::")[2] or kernel


def _launching(
    kept: pl.DataFrame,
    members: pl.DataFrame,
    kernels: pl.LazyFrame,
    operators: pl.LazyFrame | None,
    slices: pl.LazyFrame | None,
) -> pl.DataFrame:
    """The operators that launch the kernels of each sequence's first occurrence: `rank`, `window`, `operators`, and the
    first of them (`slice`)."""
    keys = ["rank", "window"]
    nothing = kept.select(*keys, operators=pl.lit(None, pl.String), slice=pl.lit(None, pl.Int64)).clear()
    if operators is None:
        return nothing
    first = pl.col("start_ns") == pl.col("start_ns").filter(pl.col("offset") == 0).min().over(*keys)
    begins = members.join(kept.select(keys), on=keys, how="semi").filter(first).select(*keys, "run", "begin")
    firsts = members.join(begins.unique(keys, keep="first", maintain_order=True), on=[*keys, "run", "begin"])
    launched = kernels.join(firsts.lazy().select("rank", "kernel"), on=["rank", "kernel"], how="semi")
    known = owners(launched, operators, slices)
    called = operators.join(known.lazy().select("rank", "slice").unique(), on=["rank", "slice"], how="semi")
    named = known.join(called.select("rank", "slice", operator="name").collect(), on=["rank", "slice"])
    rows = firsts.join(named, on=["rank", "kernel"], how="left").sort(*keys, "offset")
    each = rows.group_by(keys, maintain_order=True).agg("operator", "slice").filter(
        ~pl.col("operator").list.contains(None)
    )  # fmt: skip
    texts = [
        written([name for place, name in enumerate(found) if not place or calls[place] != calls[place - 1]])
        for found, calls in each.select("operator", "slice").iter_rows()
    ]
    texts_of = pl.Series("operators", texts, dtype=pl.String)
    return each.select(*keys, texts_of, slice=pl.col("slice").list.first())


def _placed(
    rows: pl.DataFrame, operators: pl.LazyFrame | None, stacks: pl.LazyFrame | None, slices: pl.LazyFrame | None
) -> pl.DataFrame:
    """The rows with the line of code that calls their first operator, as `place`."""
    known = places(rows.drop_nulls("slice"), operators, stacks, slices).rename({"code": "place"})
    return rows.join(known, on=["rank", "slice"], how="left")
