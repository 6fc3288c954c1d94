"""Which links, or network interfaces or hosts with all their links, are slower than others of their kind, and when."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, meaning, names
from stepscope.analysis.communication.link_rates import pairs_of, timed_links
from stepscope.analysis.methods.chance import chance_of_late
from stepscope.analysis.methods.link_cuts import between_ranks
from stepscope.analysis.methods.statistics import MAD_TO_SIGMA
from stepscope.analysis.methods.timing import timing
from stepscope.analysis.rank_lists import as_rank_list
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables import RANKS
from stepscope.tables.base import Column, schema_of
from stepscope.text_columns import filled_in

UNITS = ("link", "nic", "host", "hosts", "links")
"""What may be slow, over one transport: the link between two ranks; all links of a rank; of a host; between two hosts;
more links than have separate causes, that form no such unit."""


@dataclass(frozen=True)
class Limits:
    """When a link, an interface or a host counts as slow."""

    bandwidth_ratio: float = limit(0.8, "of the median link's bandwidth", "healthy links of a kind agree within 10 %")
    score: float = limit(3.5, "robust deviations of log(bandwidth)", "Iglewicz and Hoaglin, 1993")
    floor: float = limit(0.05, "of log(bandwidth)", "smaller spread is noise")
    links: int = limit(3, "links of a transport", "fewer give no median to compare with")
    pair_ratio: float = limit(
        0.5, "of the only other link's bandwidth", "one other link shows no spread, so only a large difference counts"
    )
    pair_size_ratio: float = limit(
        0.5, "of the bytes moved by the only other link", "small transfers are slow because of latency"
    )
    end_ratio: float = limit(
        0.93, "of the bandwidth of other ranks' good links", "the best of several links varies less than one link"
    )
    end_floor: float = limit(0.02, "of log(bandwidth) of a rank's good links", "smaller spread is noise")
    end_quantile: float = limit(0.75, "of a rank's links", "most links of a rank are slow if its interface is")
    single: int = limit(4, "links at most that are named one by one", "more hardly have separate causes")
    steps: int = limit(2, "steps in which it is slow, if not in all of them together", "once may be chance")
    chance: float = limit(0.01, "probability, for all links together", "that one is slow in so many steps by chance")


_UNIT = ["unit", "ranks", "transport"]
_OF_KIND = ["transport", "window"]
"""Links that are compared: of a transport, in a step (window 1, 2...) or in all of them together (window 0)."""

WHOLE = 0

COLUMNS = columns(
    Column("suspect", "int32", "Number of what is slow, from 0."),
    Column("unit", "string", "What is slow: a `link`, a `nic`, a `host`, or all between two `hosts`.", values=UNITS),
    Column("ranks", "string", "Ranks of the links, interface or host, e.g. `0, 1`."),
    Column("host", "string", "The host, or both; null for links and interfaces."),
    Column("transport", "string", "Kind of link, e.g. `HCCS`, `RDMA`."),
    Column("first", "int32", "Lower rank of one of its links."),
    Column("second", "int32", "Higher rank of this link."),
    meaning("step", "A step in which it is slow; null if the recording has no steps."),
    Column("ratio", "float64", "Share of its time in the step that this link needs as a typical link; at most 1."),
    meaning("size_bytes", "Bytes that the link moves in the step."),
    meaning("duration_ns", "How long that takes."),
    meaning("score", "How far the unit stands out, in robust standard deviations; null if there are only two links."),
    Column("pattern", "string", "When it is slow, as in `late_ranks`."),
    Column("period", "int64", "Steps between recurrences; null if irregular."),
    meaning("steps", "Number of steps of the link."),
    nulls="host step period score",
)


@analysis("job", COLUMNS, whole_job=True)
def suspected_links(links: pl.LazyFrame, ranks: pl.LazyFrame | None = None, limits: Limits = Limits()) -> pl.DataFrame:
    """Compare each link's bandwidth with other links of the same transport, and name the smallest end that explains.

    Both directions of a pair of ranks are one link; the slower direction counts. Bandwidth is bytes over time, summed
    over all calls, and compared within operations and sizes: of all steps together, and of each. Links inside a rank
    (`LOCAL`) and links of unknown transport are left out. A link is as fast as the slower of its ends: an end is slow
    if even its good links are slower than those of other ends. If that holds for all ranks of a host, the host is
    named, otherwise the rank, otherwise the link; if nearly all links between two hosts are slow, these. Of only two
    links of a transport, one is slow if it is far slower than the other and moves a comparable amount of data. What
    they cost is `suspect_costs`.

    Returns:
        One row per slow unit, link of it and step in which the unit is slow.
    """
    rows = between_ranks(links)
    steps = rows["step"].drop_nulls().unique().sort().to_list()
    timed_rows = timed_links(rows, limits.links)
    del rows
    by_step = pairs_of(timed_rows, limits.links, by_step=True)
    numbers = pl.DataFrame({"step": steps, "window": range(1, len(steps) + 1)}, schema=_NUMBERS)
    each = by_step.join(numbers, on="step", maintain_order="left")
    whole = pairs_of(timed_rows, limits.links).with_columns(step=pl.lit(None, pl.Int32), window=pl.lit(WHOLE, pl.Int32))
    del timed_rows
    pairs = pl.concat([whole, each.select(whole.columns)]) if len(steps) > 1 else whole
    hosts = RANKS.or_empty(ranks).select("rank", "host").drop_nulls().unique("rank").sort("rank").collect()
    ends = _slow_ends(pairs, hosts, limits)
    found = pl.concat([_explained(pairs, ends, limits), _gathered(_alone(pairs, ends, limits), pairs, hosts, limits)])
    units = _recurring(found, whole, len(steps), limits)
    if units.is_empty():
        return pl.DataFrame(schema=schema_of(COLUMNS))
    timed = by_step if steps else whole
    members = found.join(units, on=_UNIT, how="semi").select(*_UNIT, "host", "first", "second").unique()
    return _timed(members.join(timed, on=["first", "second", "transport"]), units, limits)


_NUMBERS = {"step": pl.Int32, "window": pl.Int32}


def _recurring(found: pl.DataFrame, pairs: pl.DataFrame, steps: int, limits: Limits) -> pl.DataFrame:
    """The units that are slow in all steps together, or in more single steps than chance explains, with `score`."""
    units = found.group_by(_UNIT).agg(
        score=pl.coalesce(pl.col("score").filter(pl.col("window") == WHOLE).first(), pl.col("score").max()),
        steady=(pl.col("window") == WHOLE).any(),
        late=pl.col("window").filter(pl.col("window") != WHOLE).n_unique(),
    )
    total, count = int(units.filter(~pl.col("steady"))["late"].sum()), pairs.height
    chances = [
        count * chance_of_late(late, steps, max(total - late, 0), max(count - 1, 0) * steps) if late else 1.0
        for late in units["late"]
    ]
    often = (pl.col("late") >= limits.steps) & (pl.Series("chance", chances, dtype=pl.Float64) <= limits.chance)
    return units.filter(pl.col("steady") | often).select(*_UNIT, "score")


def _timed(rows: pl.DataFrame, units: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The answer, of the links of slow units in each step."""
    speeds = rows.group_by(*_UNIT, "step").agg(speed=pl.col("typical_ns").sum() / pl.col("duration_ns").sum())
    low = pl.col("speed") < limits.bandwidth_ratio
    slow = pl.coalesce(pl.col("speed").filter(low).median().over(_UNIT), pl.col("speed").min().over(_UNIT))
    late = speeds.filter(pl.col("speed") < (1 + slow) / 2).sort(*_UNIT, "step", nulls_last=True)
    order = (
        units.sort("unit", "transport", "ranks")
        .with_row_index("suspect")
        .with_columns(pl.col("suspect").cast(pl.Int32))
    )
    seen = speeds.sort("step").group_by(_UNIT, maintain_order=True).agg(seen="step")
    lists = late.group_by(_UNIT, maintain_order=True).agg("step").join(seen, on=_UNIT)
    times = [timing(all_steps, set(steps)) for all_steps, steps in lists.select("seen", "step").iter_rows()]
    when = lists.select(
        *_UNIT,
        pattern=pl.Series([one.pattern for one in times], dtype=pl.String),
        period=pl.Series([one.period for one in times], dtype=pl.Int64),
        steps=pl.col("seen").list.len().cast(pl.Int64),
    )
    return (
        rows.drop("steps")
        .join(late.select(*_UNIT, "step"), on=[*_UNIT, "step"], nulls_equal=True)
        .join(order, on=_UNIT)
        .join(when, on=_UNIT)
        .with_columns(ratio=pl.col("speed").clip(upper_bound=1.0))
        .select(names(COLUMNS))
        .sort("suspect", "step", "first", "second", nulls_last=True)
    )


def _slow_ends(pairs: pl.DataFrame, hosts: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Interfaces and hosts that are slow: `transport`, `rank`, `unit`, `host` (of a unit host), `score`."""
    both = [
        pairs.select(*_OF_KIND, rank=one, other=other, speed="speed")
        for one, other in (("rank_a", "rank_b"), ("rank_b", "rank_a"))
    ]
    of_ends = pl.concat(both).join(hosts, on="rank", how="left", maintain_order="left")
    # Even the good links of a slow interface are slow; those of others are not, though they have one with it.
    ends = of_ends.group_by(*_OF_KIND, "rank", "host").agg(
        good=pl.col("speed").quantile(limits.end_quantile, "higher"), links=pl.len()
    )
    typical = pl.col("good").quantile(0.5, "higher").over(_OF_KIND)
    off = -(pl.col("good") / typical).log()
    spread = pl.max_horizontal(off.abs().quantile(0.5, "lower").over(_OF_KIND) * MAD_TO_SIGMA, limits.end_floor)
    ends = ends.with_columns(score=off / spread).with_columns(
        is_slow=(pl.col("good") < limits.end_ratio * typical) & (pl.col("score") >= limits.score)
    )
    # A host has several ranks, and its fault more than one link.
    of_host = pl.col("is_slow").all().over(*_OF_KIND, "host") & pl.col("host").is_not_null()
    several = (pl.len().over(*_OF_KIND, "host") > 1) & (pl.col("links").sum().over(*_OF_KIND, "host") > 2)
    ends = ends.with_columns(is_host=of_host & several)
    sound = ends.filter(~pl.col("is_slow")).select(*_OF_KIND, other="rank")
    to_sound = of_ends.join(sound, on=[*_OF_KIND, "other"]).group_by(*_OF_KIND, "rank").agg(sound=pl.len())
    return (
        ends.join(to_sound, on=[*_OF_KIND, "rank"], how="left")
        .filter(pl.col("is_host") | (pl.col("is_slow") & (pl.col("sound") > 1)))
        .select(
            *(*_OF_KIND, "rank", "score"),
            unit=pl.when("is_host").then(pl.lit("host")).otherwise(pl.lit("nic")),
            host=pl.when("is_host").then("host"),
        )
        .sort(*_OF_KIND, "rank")
    )


def _explained(pairs: pl.DataFrame, ends: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The slow links that slow ends explain, each with its end; a link between two slow ends is of both."""
    members = ends.with_columns(
        ranks=pl.col("rank").cast(pl.String).str.join(", ").over(*_OF_KIND, "unit", "host", order_by="rank"),
        score=pl.col("score").median().over(*_OF_KIND, "unit", "host"),
    ).with_columns(ranks=pl.when(pl.col("unit") == "host").then("ranks").otherwise(pl.col("rank").cast(pl.String)))
    found = [
        pairs.join(members, left_on=[*_OF_KIND, end], right_on=[*_OF_KIND, "rank"], how="inner")
        for end in ("rank_a", "rank_b")
    ]
    return (
        pl.concat(found)
        .filter(pl.col("speed") < limits.end_ratio)
        .select(_SLOW)
        .unique([*_UNIT, "window", "first", "second"], keep="first", maintain_order=True)
    )


_SLOW = [*_UNIT, "host", "window", "first", "second", "score"]
"""Columns of slow links: what explains them, in which window, and the link."""


def _alone(pairs: pl.DataFrame, ends: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """Links that are slower than their ends explain."""
    speeds = (
        pl.concat([pairs.select(*_OF_KIND, rank=end, speed="speed") for end in ("rank_a", "rank_b")])
        .join(ends, on=[*_OF_KIND, "rank"])
        .group_by(*_OF_KIND, "rank")
        .agg(end_speed=pl.col("speed").quantile(limits.end_quantile, "higher"))
    )
    known = pairs
    for end in ("rank_a", "rank_b"):
        of_end = speeds.rename({"rank": end, "end_speed": f"speed_{end}"})
        known = known.join(of_end, on=[*_OF_KIND, end], how="left", maintain_order="left")
    ends_speed = pl.col("speed_rank_a").fill_null(1.0) * pl.col("speed_rank_b").fill_null(1.0)
    residual = known.with_columns(rest=pl.col("speed") / pl.min_horizontal(ends_speed, 1.0))
    log = pl.col("rest").log() - pl.col("rest").log().median().over(_OF_KIND)
    spread = pl.max_horizontal(log.abs().median().over(_OF_KIND) * MAD_TO_SIGMA, limits.floor)
    is_pair = (pl.col("links") == 2) & (limits.links > 2)
    low = (pl.col("score") >= limits.score) & (log < pl.lit(limits.bandwidth_ratio).log())
    of_many = (pl.col("links") >= limits.links) & low
    of_two = is_pair & (pl.col("busy_ratio") >= limits.pair_size_ratio) & (pl.col("speed") < limits.pair_ratio)
    return (
        residual.with_columns(score=pl.when(~is_pair).then(-log / spread))
        .filter(of_many | of_two)
        .with_columns(
            unit=pl.lit("link"),
            ranks=filled_in("{}, {}", "rank_a", "rank_b"),
            host=pl.lit(None, pl.String),
        )
        .select(_SLOW)
    )


def _gathered(found: pl.DataFrame, pairs: pl.DataFrame, hosts: pl.DataFrame, limits: Limits) -> pl.DataFrame:
    """The slow links, with those between two hosts as one unit if nearly all of these are slow, and the rest as one if
    they are many."""
    ends = pairs.select(*_OF_KIND, "first", "second", "speed")
    for end in ("first", "second"):
        of_end = hosts.rename({"rank": end, "host": f"{end}_host"})
        ends = ends.join(of_end, on=end, how="left", maintain_order="left")
    one, other = (way("first_host", "second_host") for way in (pl.min_horizontal, pl.max_horizontal))
    link = [*_OF_KIND, "first", "second"]
    between = [*_OF_KIND, "one", "other"]
    known = (
        ends.filter(pl.col("first_host") != pl.col("second_host"))
        .with_columns(one=one, other=other)
        .join(found.select(*link, "score"), on=link, how="left", maintain_order="left")
        .with_columns(slow=pl.col("score").is_not_null().sum().over(between), links=pl.len().over(between))
    )
    of_hosts = known.filter(
        (pl.col("slow") > 1)
        & (pl.col("slow") >= limits.end_quantile * pl.col("links"))
        & (pl.col("speed") < limits.end_ratio)
    ).with_columns(host=pl.concat_str("one", "other", separator=", "))
    rest = found.join(of_hosts, on=link, how="anti", maintain_order="left")
    many = pl.len().over(_OF_KIND) > limits.single
    return pl.concat(
        [
            _united(of_hosts.with_columns(unit=pl.lit("hosts")), [*_OF_KIND, "host"]),
            _united(rest.filter(many).with_columns(unit=pl.lit("links")), _OF_KIND),
            rest.filter(~many),
        ]
    )


def _united(links: pl.DataFrame, unit: list[str]) -> pl.DataFrame:
    """Slow links as one unit, with all their ranks."""
    ranks = pl.concat_list("first", "second").explode()
    of_unit = links.group_by(unit).agg(ranks=as_rank_list(ranks), middle=pl.col("score").median())
    return links.drop("ranks", strict=False).join(of_unit, on=unit).with_columns(score="middle").select(_SLOW)
