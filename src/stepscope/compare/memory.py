"""How much more or less memory the new side needs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.compare.differences import Side, differences, judged_values
from stepscope.compare.noise import LIMITS, VERDICTS, Limits
from stepscope.compare.registry import Sides, comparison
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of

PEAK, RESERVED, ALLOCATED = "peak", "reserved peak", "allocated in a step"
FIGURES = (PEAK, RESERVED, ALLOCATED)
"""The most that a rank uses at once, that its allocator holds, and what operators allocate, mean of the ranks."""

SMALL = 0.001
"""Share of all that is allocated in a step below which an operator's part is not tested, chosen by us."""

COLUMNS = columns(
    Column("figure", "string", "What is compared.", values=FIGURES),
    Column("name", "string", "Allocator, or the operator that allocates; null for the framework's own allocator."),
    Column(
        "base_bytes",
        "int64",
        "On the base: of peaks, in the whole recording, the rank that needs most; else mean of its steps and ranks.",
        title="base",
    ),
    Column("new_bytes", "int64", "On the new side.", title="new"),
    Column("difference_bytes", "int64", "`new_bytes` less `base_bytes`.", title="difference"),
    Column("change_factor", "float64", "`new_bytes` over `base_bytes`; null if the base has none.", title="change"),
    Column(
        "probability_ratio",
        "float64",
        "How probable so large a difference of the steps' figures is without any; null if not tested.",
        title="p",
        importance=35,
    ),
    Column(
        "verdict",
        "string",
        "Whether the difference is more than noise: of peaks, by the peaks of the steps; `untested` if these are not "
        "known or do not differ as the peaks of the whole recordings do.",
        values=VERDICTS,
    ),
    nulls="name change_factor probability_ratio",
    keep="figure name difference_bytes change_factor verdict new_bytes base_bytes",
)


@comparison(COLUMNS)
def memory_differences(
    memory_peak: Sides | None,
    memory_steps: Sides | None,
    allocation_steps: Sides | None,
    side_steps: Sides | None,
    limits: Limits = LIMITS,
) -> pl.DataFrame:
    """Compare peaks of memory, and what operators allocate: peaks first, then the largest difference.

    An allocator of which one side records no peak is left out.

    Raises:
        Unavailable: If no memory was recorded on a side.
    """
    found = [pl.DataFrame(schema=schema_of(COLUMNS))]
    if memory_peak is not None:
        for figure, column in ((PEAK, "peak_bytes"), (RESERVED, "reserved_peak_bytes")):
            found.append(_peaks(figure, column, memory_peak, memory_steps, side_steps, limits))
    if allocation_steps is not None and side_steps is not None:
        found.append(_allocated(allocation_steps, side_steps, limits))
    if len(found) == 1:
        raise Unavailable("memory was not recorded on both sides")
    return pl.concat(found)


def _peaks(
    figure: str, column: str, peaks: Sides, by_step: Sides | None, steps: Sides | None, limits: Limits
) -> pl.DataFrame:
    """The highest peak of each allocator on both sides, tested by the highest peaks of its steps."""
    tops = [
        side.filter(pl.col(column).is_not_null()).group_by(name="component").agg(bytes=pl.col(column).max())
        for side in peaks
    ]
    both = tops[0].join(tops[1], on="name", nulls_equal=True)
    for place in range(2):
        tested = _step_values(by_step, steps, place, column)
        both = both.join(tested, on="name", how="left", nulls_equal=True)
    both = both.sort("name", nulls_last=True).with_columns(
        mean=pl.col("bytes") * 1.0, mean_right=pl.col("bytes_right") * 1.0
    )
    counts = (0, 0) if steps is None else (Side.of(steps.base).steps, Side.of(steps.new).steps)
    of_steps = pl.col("values_right").list.mean() - pl.col("values").list.mean()
    is_tested = both.select(
        (pl.col("values").list.len() == counts[0])
        & (pl.col("values_right").list.len() == counts[1])
        & (of_steps * (pl.col("bytes_right") - pl.col("bytes")) > 0)
    ).to_series()
    filled = both.with_columns(pl.col("values", "values_right", "places", "places_right").fill_null([]))
    judged = zip(*judged_values(filled, counts, 0, limits), is_tested.fill_null(value=False), strict=True)
    told = [(p, verdict) if tested or verdict == "same" else (None, "untested") for p, verdict, tested in judged]
    figures = both.select("name", base_bytes="bytes", new_bytes="bytes_right")
    return _shown(figure, figures, [p for p, _ in told], [verdict for _, verdict in told])


def _step_values(by_step: Sides | None, steps: Sides | None, place: int, column: str) -> pl.DataFrame:
    """The highest peak of each step that counts, by allocator: `name`, `values`, `places`."""
    if by_step is None or steps is None:
        values, places = pl.List(pl.Float64), pl.List(pl.UInt32)
        return pl.DataFrame(schema={"name": pl.String(), "values": values, "places": places})
    counted = Side.of(steps[place]).rows.select("rank", "step", place=pl.col("step").rank("dense") - 1)
    rows = by_step[place].filter(pl.col(column).is_not_null()).join(counted, on=["rank", "step"])
    tops = rows.group_by("place", name="component").agg(value=pl.col(column).max().cast(pl.Float64))
    return tops.sort("place").group_by("name").agg(values="value", places="place")


def _allocated(rows: Sides, steps: Sides, limits: Limits) -> pl.DataFrame:
    """What each operator allocates in a step."""
    whole = max(
        float(side["size_bytes"].sum()) / max(of["step"].n_unique(), 1) for side, of in zip(rows, steps, strict=True)
    )
    found = differences(rows, steps, ["name"], value="size_bytes", calls=None, limits=limits, small=SMALL * whole)
    figures = found.select("name", base_bytes="base_ns", new_bytes="new_ns")
    return _shown(ALLOCATED, figures, found["probability_ratio"].to_list(), found["verdict"].to_list())


def _shown(
    figure: str, rows: pl.DataFrame, probabilities: Sequence[float | None], verdicts: Sequence[str]
) -> pl.DataFrame:
    change = pl.when(pl.col("base_bytes") > 0).then(pl.col("new_bytes") / pl.col("base_bytes"))
    return (
        rows.with_columns(
            figure=pl.lit(figure),
            difference_bytes=pl.col("new_bytes") - pl.col("base_bytes"),
            change_factor=change,
            probability_ratio=pl.Series(probabilities, dtype=pl.Float64),
            verdict=pl.Series(verdicts, dtype=pl.String),
        )
        .select(names(COLUMNS))
        .sort(-pl.col("difference_bytes").abs(), "name", nulls_last=True)
    )
