"""All ranks of a job side by side: their steps, stages, FLOPs and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stepscope.pages.base import PLACES, Derived, Page, Section, View
from stepscope.pages.flops import above_peak, stated_otherwise
from stepscope.pages.instead import CALLS, OPERATORS, TOTALS, recorded_by
from stepscope.pages.job import SLOW_RANKS_HIDDEN
from stepscope.pages.layout import LAYOUT
from stepscope.pages.links import BY_STEP
from stepscope.pages.sources import differing, left_out, together
from stepscope.present import cell
from stepscope.selection import named_numbers

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

_RANK = ("rank", "host", "device", "stage")
_POINTS = ("interval_ns", "forward_backward_ns", "tail_ns")
_PARTS = (
    *("computing_ns", "free_ns", "computing_and_free_ns", "communication_not_overlapped_ns"),
    *("stage_ns", "receiving_ns", "communication_not_overlapped_exclude_receive_ns"),
)


def _views(of: str, *named: str, stated: bool = True) -> list[View]:
    """The two ways in which a step splits; of means, also those that the profile states of more steps.

    Args:
        of: What the rows are about.
        named: Columns that name a row.
        stated: Whether they are means.
    """
    splits = {"steps": "", "stated": ", averages that the profile states"} if stated else {None: ""}
    ways = ((_POINTS, "by phase", "points_by"), (_PARTS, "by activity", "parts_by"))
    return [
        View(f"{of} {way}{more}", shows=(*named, "step_ns", *names), needs=names, split=split, by="" if more else by)
        for split, more in splits.items()
        for names, way, by in ways
    ]


_ADVICE = {
    "step_interval": "long interval before steps",
    "flops_per_second": "low rate of operations",
    "cluster_link": "slow link",
    "data_parallel_communication_rate": "data-parallel communication",
    "model_parallel_communication_rate": "model-parallel communication",
    "communication_rate": "communication",
    "pipeline_parallel_between_stage": "communication between stages",
    "pipeline_parallel_within_stage": "communication within a stage",
    "pipeline_parallel_flops": "more operations than other stages",
}
"""Keys of advice, in words."""


def _advice(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """What it is about and its figure, each in one column."""
    import polars as pl

    shown = [
        (_ADVICE.get(row["advice"], row["advice"]), _about(row), _figure(row), *(row[name] for name in _RATIOS))
        for row in rows.iter_rows(named=True)
    ]
    schema = {"advice": pl.String, "about": pl.String, "figure": pl.String, **dict.fromkeys(_RATIOS, pl.Float64)}
    return Derived(pl.DataFrame(shown, schema=schema, orient="row"))


def _about(row: Mapping[str, Any]) -> str:
    """The rank, link or stage that a row is about."""
    if row["source"] is not None:
        return f"link {row['source']}-{row['destination']} {row['transport'] or ''}".rstrip()
    return next((f"{name} {row[name]}" for name in ("rank", "stage") if row[name] is not None), "all ranks")


def _figure(row: Mapping[str, Any]) -> str | None:
    """The only figure of a row, with its unit."""
    figures = ("interval_ns", "flops_per_s", "bandwidth_bytes_per_s", "step_flops")
    return next((cell(name, row[name]) for name in figures if row[name] is not None), None)


_RATIOS = ("off_ratio", "limit_ratio", "summed_ratio")


def _plain(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """Without the sum of computing and idle time where both are known."""
    known = rows.height and not rows["computing_ns"].null_count()
    return Derived(rows.drop("computing_and_free_ns") if known else rows)


def _meaning(means: pl.DataFrame) -> Iterator[str]:
    """What the columns of a pipeline mean, and how to read them."""
    if means["receiving_ns"].count():
        yield (
            "Much receiving alone: the rank waits for another stage. Much collective alone: its stage is badly split. "
            "A long stage time: the stage is slow; within it, the rank that computes longest."
        )
    if "stated" in means["split"]:
        yield "The profile states averages of more {steps} than its files hold; they are shown as well."


def _known_in_some(run: Run, means: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    """That what the rank does is known of some steps only."""
    import polars as pl

    some = means.filter((pl.col("parts_steps") > 0) & (pl.col("parts_steps") < pl.col("steps"))).sort("rank")
    if some.height:
        rank, parts, steps = some.select("rank", "parts_steps", "steps").row(0)
        of = f" (rank {rank})" if some.height > 1 else ""
        does = "do" if some.height > 1 else "does"
        yield (
            f"What {named_numbers('rank', some['rank'].to_list())} {does} was recorded in some {{steps}} only: these "
            f"parts are means of {parts} of {steps}{of}, so they need not add up to the mean {{step}}."
        )


def _about_advice(advice: pl.DataFrame) -> Iterator[str]:
    """What these figures are not."""
    if advice.height:
        yield (
            "`off` is the distance from the mean, of communication its share of computing and communication; limits "
            "are those of MindSpore Insight, for jobs of any framework. What mending something saves, and who "
            "holds the others up, a replay of the job tells: «`stepscope analyze`»."
        )


def _components(run: Run, rows: pl.DataFrame) -> Iterator[str]:  # noqa: ARG001 - one signature for all
    """Which of several curves of memory is shown."""
    import polars as pl

    named = rows.drop_nulls("component").group_by("component").agg(pl.col("rank")).sort("component")
    shown = [f"{component} of {named_numbers('rank', ranks)}" for component, ranks in named.iter_rows()]
    if shown:
        yield (
            f"Of several curves of memory, the one closest to the capacity is shown: {', '.join(shown)}. Recordings "
            "that hold fewer curves, as other exports of the same job may, show another; «`stepscope memory`» lists "
            "all."
        )


PAGE = Page(
    "ranks",
    "Show all ranks side by side: their steps, pipeline stages, FLOPs and memory, and which are slow.",
    [
        Section(
            "rank_means",
            "Mean {step} of each rank",
            takes={"stage": "stage"},
            derived=_plain,
            views=_views("Mean {step} of each rank", *_RANK, "steps"),
            sentences=_meaning,
            notes=together(left_out, _known_in_some, differing("computing", "exposed communication")),
        ),
        Section("slow_ranks", "Slow ranks", rows=8, hidden=SLOW_RANKS_HIDDEN),
        Section(
            "stage_means",
            "Mean {step} of each pipeline stage",
            takes={"stage": "stage"},
            derived=_plain,
            views=_views("Mean {step} of each pipeline stage", "stage", "ranks"),
        ),
        Section(
            "rank_flops",
            "Floating point operations of each rank",
            takes={"stage": "stage"},
            hidden=("found_by",),
            sentences=above_peak,
            notes=stated_otherwise,
        ),
        Section("rank_memory", "Peak memory of each rank", takes={"stage": "stage"}, notes=_components),
        Section(
            "cluster_advice",
            "What is beyond simple limits",
            hidden=("summed_ratio",),
            derived=_advice,
            sentences=_about_advice,
        ),
        Section(
            "rank_steps",
            "{Steps} of each rank",
            takes={"stage": "stage"},
            derived=_plain,
            views=_views("{Steps} of each rank", *_RANK, "step", stated=False),
            only_with=("by_step",),
        ),
    ],
    options=[*PLACES, BY_STEP, LAYOUT],
    more="Sort by any column («--sort» -computing_and_free), choose ranks, steps or stages, search and filter. Who is "
    "to blame comes from a replay of the job, not from these means: «`stepscope analyze`».",
    scope="job",
    instead=recorded_by(
        "Record steps: call the profiler's step() after each one",
        CALLS,
        OPERATORS,
        TOTALS,
    ),
)
