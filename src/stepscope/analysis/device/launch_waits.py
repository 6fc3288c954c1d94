"""How often the host waits for its device directly after it launched work."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.operators_around import call_places
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import SLICES
from stepscope.tables.base import Column

NO_LAUNCHES = "no launches of device work were recorded"

WAITS = r"(?i)^(\w+@)?(aclrt|rt|cuda|hip|cu)?(Synchronize(Stream|Device|Event)|(Stream|Device|Event|Ctx)Synchronize)"
"""Calls of the runtime in which the host waits for its device."""

LONG_NS = 20_000
"""Length of a kernel from which its launch can be told from one that waits, in ns: launching takes up to this."""

COLUMNS = columns(
    "rank step",
    Column("launches", "int64", "Pieces of device work whose launch was recorded."),
    Column("followed", "int64", "Waits of the host for its device after a launch, before the next one."),
    Column("followed_ratio", "float64", "`followed` over `launches`."),
    Column("long_kernels", "int64", "Launched kernels that are long enough to see whether their launch waits."),
    Column("blocking", "int64", "Of these, those whose launch returned only after the kernel had ended."),
    Column("wait_ns", "int64", "Time of these waits, and of launches that wait."),
    Column("idle_ns", "int64", "Idle time of the device, launched too late or around waits; null if unknown."),
    meaning("name", "Call that waits most often; null if launches wait themselves."),
    Column("first_start_ns", "int64", "When the longest of these waits began; null if there are none.", moment=True),
    Column("longest_ns", "int64", "How long it took."),
    Column("place", "string", "User's function around it, with file and line; null if not recorded."),
    nulls="idle_ns name first_start_ns longest_ns place",
    keep="rank step launches followed followed_ratio wait_ns idle_ns name",
)

_OF = ("dispatch", "synchronisation")
"""Causes of idle time that a host which waits after each launch makes."""


@analysis("rank", COLUMNS, together=True, nothing=NO_LAUNCHES)
def launch_waits(
    kernels: pl.LazyFrame,
    slices: pl.LazyFrame | None = None,
    idle: pl.DataFrame | None = None,
    operators: pl.LazyFrame | None = None,
    stacks: pl.LazyFrame | None = None,
) -> pl.DataFrame:
    """Count waits of the host directly after launches, and launches that wait themselves: one row per rank and step.

    A host that launches ahead waits once in many launches; one that waits after each leaves its device idle until the
    next one.

    Raises:
        Unavailable: If no launches were recorded.
    """
    known = kernels.filter(pl.col("launch_end_ns").is_not_null() & (pl.col("kind") != "memory"))
    launched = known.select("rank", "step", "launch_start_ns", "launch_end_ns", "duration_ns", end_ns=END)
    parts, times = [], []
    for batch in batches(launched):
        is_long = pl.col("duration_ns") >= LONG_NS
        blocks = is_long & (pl.col("launch_end_ns") >= pl.col("end_ns"))
        call_ns = pl.col("launch_end_ns") - pl.col("launch_start_ns")
        parts.append(
            batch.group_by("rank", "step").agg(
                launches=pl.len().cast(pl.Int64),
                long_kernels=is_long.sum().cast(pl.Int64),
                blocking=blocks.sum().cast(pl.Int64),
                blocked_ns=call_ns.filter(blocks).sum(),
            )
        )
        times.append(batch.select("rank", at="launch_end_ns"))
    counts = pl.concat(parts).group_by("rank", "step").sum()
    if counts.is_empty():
        raise Unavailable(NO_LAUNCHES)
    waits = _after_launches(SLICES.or_empty(slices), pl.concat(times))
    longest = pl.col("length_ns").arg_max()
    sums = waits.group_by("rank", "step").agg(
        followed=pl.len().cast(pl.Int64),
        waited_ns=pl.col("length_ns").sum(),
        name=pl.col("name").mode().sort().first(),
        first_start_ns=pl.col("start_ns").get(longest),
        longest_ns=pl.col("length_ns").max(),
        slice=pl.col("slice").get(longest),
        thread=pl.col("thread").get(longest),
    )
    ranked = sums.sort(-pl.col("longest_ns"), "rank", "step", nulls_last=True)
    placed = call_places(ranked.rename({"first_start_ns": "at_ns"}), slices, operators, stacks)
    lost = pl.DataFrame(schema={"rank": pl.Int32, "step": pl.Int32, "idle_ns": pl.Int64})
    if idle is not None:
        of_host = pl.col("idle_ns").filter(pl.col("cause").is_in(_OF)).sum()
        lost = idle.group_by("rank", "step").agg(idle_ns=of_host)
    on = ["rank", "step"]
    return (
        counts.join(sums, on=on, how="left")
        .join(placed, on=["rank", "slice"], how="left")
        .join(lost, on=on, how="left")
        .with_columns(
            pl.col("followed").fill_null(0),
            wait_ns=pl.col("blocked_ns") + pl.col("waited_ns").fill_null(0),
        )
        .with_columns(followed_ratio=pl.col("followed") / pl.col("launches"))
        .select(names(COLUMNS))
        .sort("rank", "step")
    )


def _after_launches(slices: pl.LazyFrame, launches: pl.DataFrame) -> pl.DataFrame:
    """Waits of the host before which it launched something since the one before."""
    calls = slices.filter(pl.col("category") == "runtime")
    wanted = named(calls, waits=pl.col("name").str.contains(WAITS))["waits"]
    found = calls.filter(wanted).select(
        "rank", "slice", "step", "thread", "name", "start_ns", length_ns="duration_ns", end_ns=END
    )
    waits = found.collect(engine="streaming").sort("rank", "start_ns", -pl.col("end_ns"), "name")
    reach = pl.col("end_ns").cum_max().over("rank")
    waits = waits.with_columns(before_ns=reach.shift(1).over("rank"))
    outer = waits.filter((pl.col("start_ns") >= pl.col("before_ns")).fill_null(value=True))
    last = launches.select("rank", launched_ns="at").sort("launched_ns")
    paired = outer.sort("start_ns").join_asof(
        last, left_on="start_ns", right_on="launched_ns", by="rank", check_sortedness=False
    )
    fresh = (pl.col("launched_ns") > pl.col("before_ns")).fill_null(pl.col("launched_ns").is_not_null())
    return paired.filter(fresh).with_columns(name=pl.col("name").str.replace(r"^\w+@", "")).sort("rank", "start_ns")
