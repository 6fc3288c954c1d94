"""How fast copies and fills of memory are, by direction, in total and over time."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.levels import AT, levels, sampled
from stepscope.analysis.methods.statistics import first_label
from stepscope.analysis.registry import analysis
from stepscope.tables.base import Column

DIRECTIONS = {
    "fill": r"(?i)memset|memory.?set|fill",
    "host to device": r"(?i)h(ost)?[_ ]?(to|2)[_ ]?d(ev)?|host -> dev",
    "device to host": r"(?i)d(evice)?[_ ]?(to|2)[_ ]?h(ost)?|dev\w* -> (host|pageable|pinned)",
    "peer to peer": r"(?i)p(eer)?[_ ]?(to|2)[_ ]?p(eer)?|peer",
    "device to device": r"(?i)d(evice)?[_ ]?(to|2)[_ ]?d(evice)?|device -> device",
    "host to host": r"(?i)h(ost)?[_ ]?(to|2)[_ ]?h(ost)?",
}
"""Directions by the words that profilers use in names: CUDA's `Memcpy HtoD (Pinned -> Device)`, Ascend's
`host to device` (in the column of that name). The first that fits counts."""

NOT_TOLD = "unknown"
NO_COPIES = "no copies or fills of memory were recorded on a device"

_KEYS = ("rank", "direction", "host_memory")
_DIRECTION = Column("direction", "string", "From where to where; `fill` sets memory.", values=(*DIRECTIONS, NOT_TOLD))
_HOST_MEMORY = Column("host_memory", "string", "`pinned` or `pageable` memory of the host; null if not recorded.")
_RATES = tuple(
    Column(f"{which}_bytes_per_s", "float64", f"{word} of a single one; null if unknown.", importance=30 - place)
    for place, (which, word) in enumerate(
        (("mean", "Mean rate"), ("std", "Standard deviation of the rate"), ("min", "Lowest rate"),
         ("median", "Median rate"), ("max", "Highest rate"))
    )
)  # fmt: skip


@analysis(
    "rank",
    columns(
        "rank",
        _DIRECTION,
        _HOST_MEMORY,
        Column("count", "int64", "Copies or fills.", importance=61),
        meaning("size_bytes", "Bytes of those with a known size; null if none is known."),
        meaning("total_ns", "Their time."),
        meaning("bandwidth_bytes_per_s", "Bytes of known size over the time of these copies; null if unknown."),
        Column("least_bytes_per_s", "float64", "The same if each took one tick of the clock longer.", importance=42),
        Column("tick_ns", "int64", "Tick of the clock: 1, or 1000 if all times are whole microseconds.", importance=20),
        *_RATES,
        Column("without_size", "int64", "Copies of unknown size.", importance=22),
        Column("without_time", "int64", "Copies shorter than a tick, whose rate is unknown.", importance=21),
        nulls="host_memory size_bytes bandwidth_bytes_per_s least_bytes_per_s " + " ".join(c.name for c in _RATES),
    ),
    together=True,
    nothing=NO_COPIES,
)
def copies(kernels: pl.LazyFrame) -> pl.DataFrame:
    """Sum up copies and fills of memory: one row per direction and kind of host memory, in order."""
    rows = pl.concat(_copied(kernels)).join(_ticks(kernels), on="rank", how="left", maintain_order="left")
    time, size = pl.col("duration_ns"), pl.col("size_bytes")
    has_size = size.is_not_null()
    rate = pl.when(time > 0).then(size * 1e9 / time)
    sums = rows.with_columns(rate=rate).group_by(_KEYS).agg(
        count=pl.len().cast(pl.Int64),
        bytes=size.sum(),
        total_ns=time.sum(),
        sized_ns=time.filter(has_size).sum(),
        sized=has_size.sum().cast(pl.Int64),
        tick_ns=pl.col("tick_ns").first(),
        mean_bytes_per_s=pl.col("rate").mean(),
        std_bytes_per_s=pl.col("rate").std(),
        min_bytes_per_s=pl.col("rate").min(),
        median_bytes_per_s=pl.col("rate").quantile(0.5, "lower"),
        max_bytes_per_s=pl.col("rate").max(),
        without_size=(~has_size).sum().cast(pl.Int64),
        without_time=(time == 0).sum().cast(pl.Int64),
    )  # fmt: skip
    known = pl.when(pl.col("sized") > 0)
    least = pl.col("sized_ns") + pl.col("sized") * pl.col("tick_ns")
    return sums.sort(*_KEYS, nulls_last=True).select(
        *_KEYS,
        "count",
        size_bytes=known.then("bytes"),
        total_ns="total_ns",
        bandwidth_bytes_per_s=known.then(
            pl.when(pl.col("sized_ns") > 0).then(pl.col("bytes") * 1e9 / pl.col("sized_ns"))
        ),
        least_bytes_per_s=known.then(pl.col("bytes") * 1e9 / least),
        tick_ns="tick_ns",
        **{column.name: pl.col(column.name) for column in _RATES},
        without_size="without_size",
        without_time="without_time",
    )


@analysis(
    "rank",
    columns(
        "rank",
        _DIRECTION,
        "start_ns duration_ns",
        Column("mean_bytes_per_s", "float64", "Mean rate in this time, also while nothing is copied.", importance=58),
        Column(
            "max_bytes_per_s", "float64", "Highest rate in this time, of all copies that run together.", importance=57
        ),
        nulls="",
    ),
    together=True,
    nothing=NO_COPIES,
)
def copy_rates(kernels: pl.LazyFrame, points: int = 200) -> pl.DataFrame:
    """Show how fast memory is copied over time, by direction, in order.

    Bytes are taken as moved evenly during a copy. Copies of unknown size or without a duration are left out.

    Args:
        kernels: Device work.
        points: Equal parts into which the time of each rank is cut; 0 for one row a change.
    """
    keys = ["rank", "direction"]
    timed = [batch.filter(pl.col("size_bytes") > 0, pl.col("duration_ns") > 0) for batch in _copied(kernels)]
    rows = pl.concat(timed).with_columns(rate=pl.col("size_bytes") * 1e9 / pl.col("duration_ns"))
    end = pl.col("start_ns") + pl.col("duration_ns")
    changed = levels(
        pl.concat(
            [
                rows.select(*keys, pl.col("start_ns").alias(AT), change="rate"),
                rows.select(*keys, end.alias(AT), change=-pl.col("rate")),
            ]
        ),
        keys,
        down_first=True,
    ).with_columns(level=_without_dust())
    if not points:
        rows = changed.rename({AT: "start_ns"})
        return rows.select(*keys, "start_ns", "duration_ns", mean_bytes_per_s="level", max_bytes_per_s="level")
    parts = sampled(changed, keys, points)
    mean = pl.col("mean").clip(lower_bound=0)
    return parts.select(*keys, "start_ns", "duration_ns", mean_bytes_per_s=mean, max_bytes_per_s="highest")


def _without_dust() -> pl.Expr:
    """A rate of less than a byte a second is what adding and taking away fractions leaves."""
    return pl.when(pl.col("level").abs() < 1).then(0.0).otherwise("level")


def _copied(kernels: pl.LazyFrame) -> list[pl.DataFrame]:
    """Copies and fills with their direction, in batches."""
    memory = kernels.filter(pl.col("kind") == "memory")
    name = pl.col("name")
    host = {"pinned": name.str.contains("(?i)pinned"), "pageable": name.str.contains("(?i)pageable")}
    keys = ["name", "told"]
    rows = memory.select("rank", "name", "start_ns", "duration_ns", "size_bytes", told="direction")
    words = pl.coalesce("told", name)
    known = rows.select(keys).unique().collect(engine="streaming").with_columns(
        direction=first_label({label: words.str.contains(pattern) for label, pattern in DIRECTIONS.items()}, NOT_TOLD),
        host_memory=first_label(host),
    )  # fmt: skip
    parts = (batch.join(known, on=keys, how="left", nulls_equal=True, maintain_order="left") for batch in batches(rows))
    return [part.drop(keys) for part in parts]


def _ticks(kernels: pl.LazyFrame) -> pl.DataFrame:
    """The tick of each rank's times: 1000 ns if all its device work starts and ends at whole microseconds."""
    rest = pl.col("start_ns") % 1000  # the same of all where a time base that is no whole microsecond was added
    whole = (pl.col("duration_ns") % 1000 == 0).all() & (rest.min() == rest.max())
    tick = pl.when(whole).then(1000).otherwise(1).cast(pl.Int64)
    return kernels.group_by("rank").agg(tick_ns=tick).collect(engine="streaming")
