"""How much slower a job is than with ideal operations, what makes it so, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Page, Section
from stepscope.pages.replayed import GOOD_ERROR, other_pages

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_SHADES = " ░▒▓█"
"""Slowdowns of a rank, from none to the largest of all."""

_MOST_STEPS = 48
"""Steps that a row of shades has room for; of more, the slowest of several neighbours stands for them."""

_CAUSES = {
    "worker": "slow ranks",
    "replica": "slow data-parallel ranks",
    "stage": "stage imbalance",
    "sequence": "sequence length imbalance",
    "communication": "communication",
    "unknown": "unknown",
}


def _cause(causes: pl.DataFrame) -> Iterator[str]:
    """The main cause in a sentence."""
    first = causes.row(0, named=True)
    if not first["lost_ns"]:
        yield "Nothing is uneven."
        return
    named = causes.filter("is_named")
    what = _CAUSES[first["cause"]] if named.height else "no single one"
    who = f", {first['cause']} {first['unit']}" if named.height and first["unit"] else ""
    share = f" ({first['explained']:.0%} of what is lost{who})" if named.height else ""
    yield f"Main cause: {what}{share}."
    if named.height and first["cause"] in ("worker", "replica"):
        yield (
            "Savings are against the ideal times of the other ranks. S below is against the mean of all, as published, "
            "so it states a smaller loss."
        )
    known = first["correlation"]
    if known is not None:
        yield f"Forward and backward times of micro-batches correlate by {known:.2f}; near 1, their lengths differ."


def _job(rows: pl.DataFrame) -> Iterator[str]:
    """The figures of the whole job."""
    job = rows.filter(kind="job").row(0, named=True)
    if job["slowdown_factor"] is None:
        return
    times = [f"{job[name] / 1e9:.3f} s" for name in ("replayed_ns", "ideal_ns", "recorded_ns")]
    yield (
        f"S = {job['slowdown_factor']:.3f}: the mean {{step}} takes {times[0]} without delays between operations, and "
        f"{times[1]} if all operations are ideal."
    )
    if job["launch_factor"] is not None and abs(job["launch_factor"] - 1) >= GOOD_ERROR:
        yield (
            f"Careful: recorded are {times[2]}, {job['launch_factor'] - 1:+.1%}. Something delays operations, or what "
            "they wait for was not recorded; then these figures are not certain."
        )
    elif job["launch_factor"] is not None:
        yield f"Recorded are {times[2]}, {job['launch_factor'] - 1:.1%} more: delays between operations."
    for kind, name, text in (
        ("slowest_ranks", "M_W", "the slowest ranks ({unit})"),
        ("last_stage", "M_S", "the last stage ({unit})"),
    ):
        for row in rows.filter(kind=kind).iter_rows(named=True):
            if row["explained"] is not None:
                who = text.format(unit=row["unit"])
                gone = f"the share of the slowdown that is gone with ideal times of {who}"
                yield f"{name} = {row['explained']:.4f}: {gone}."
    if job["error_ratio"] >= GOOD_ERROR:
        yield (
            f"Careful: a replay with the recorded delays is {job['error_ratio']:.1%} off, so operations do not follow "
            "one another as these figures take for granted."
        )
    if job["unmatched"]:
        yield f"{job['unmatched']} calls have members that were not recorded: their times include waiting for these."


def _units(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Kinds of operations, replicas, stages and ranks."""
    import polars as pl

    shown = rows.filter(~pl.col("kind").is_in(["job", "slowest_ranks", "last_stage"]))
    return Derived(shown.select("kind", "unit", "replica", "stage", "slowdown_factor", "explained", "alone_ns"))


def _steps(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Each step and the rank that slows it most."""
    import polars as pl

    slowest = (
        rows.filter((pl.col("kind") == "rank") & pl.col("slowdown_factor").is_not_null())
        .sort("step", -pl.col("slowdown_factor"), pl.col("unit").cast(pl.Int32))
        .unique("step", keep="first", maintain_order=True)
        .select("step", slowest_rank="unit", rank_factor="slowdown_factor")
    )
    jobs = rows.filter(kind="job").join(slowest, on="step", how="left", maintain_order="left")
    times = ("recorded_ns", "replayed_ns", "ideal_ns")
    return Derived(jobs.select("step", *times, "slowdown_factor", "launch_factor", "slowest_rank", "rank_factor"))


def _ranks(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Each rank with its slowdown in the steps: a row of the heat map."""
    import polars as pl

    ranks = rows.filter((pl.col("kind") == "rank") & pl.col("slowdown_factor").is_not_null())
    if ranks.is_empty():
        return Derived(ranks.select("replica", "stage"))
    largest = max(ranks["slowdown_factor"])
    slow = pl.col("slowdown_factor")
    by_rank = (
        ranks.sort("step")
        .group_by("unit", "replica", "stage", maintain_order=True)
        .agg(
            slow.mean(),
            least=slow.min(),
            most=slow.max(),
            slowest_step=pl.col("step").get(slow.arg_max()),
            each=slow,
        )
    )
    shaded = by_rank.with_columns(by_step=pl.Series([_shades(each, largest) for each in by_rank["each"].to_list()]))
    ordered = shaded.sort(pl.col("unit").cast(pl.Int32)).rename({"unit": "rank"}).drop("each")
    return Derived(ordered, f", darkest: {largest:.2f}x")


def _shades(factors: Sequence[float], largest: float) -> str:
    """A character per step, or per few neighbouring ones: the darker, the slower."""
    every = -(-len(factors) // _MOST_STEPS)
    bins = [max(factors[at : at + every]) for at in range(0, len(factors), every)]
    span = max(largest - 1, 0.05)
    return "|" + "".join(_SHADES[min(round(max(one - 1, 0) / span * 4), 4)] for one in bins) + "|"


PAGE = Page(
    "slowdowns",
    "Show how much slower a job is than with ideal operations, and which ranks, stages or micro-batches make it so.",
    [
        Section(
            "slowdown_causes",
            "What makes {steps} longer",
            hidden=(
                "lost_ns",
                "replayed_ns",
                "slowdown_factor",
                "steps",
                "is_alone",
                "is_last",
                "is_named",
                "correlation",
            ),
            sentences=_cause,
        ),
        Section(
            "slowdowns",
            "Slowdown by kind of operation, data-parallel rank (replica), stage and rank",
            derived=_units,
            sentences=_job,
            rows=40,
        ),
        Section(
            "step_slowdowns",
            "Slowdown of each rank {by_step}",
            name="rank_slowdowns",
            derived=_ranks,
            drawn="by_step",
            rows=64,
        ),
        Section("step_slowdowns", "{Steps}", derived=_steps),
    ],
    more="For recordings that state the micro-batch of each operation, such as operation-level traces of large jobs. "
    'Definitions are those of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025): '
    "S is the time of a step in a replay without delays over that with ideal operations; the slowdown of a unit is "
    "that with all others ideal. Causes are found by replays without slow ranks, uneven stages and micro-batches.",
    scope="job",
    instead=other_pages,
)
