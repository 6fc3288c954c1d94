"""The FLOPs of a training step, their rate, and the share of the device's peak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, meaning
from stepscope.analysis.methods.step_windows import is_whole_recording
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import RANK_FIGURES, RANKS, STEPS
from stepscope.tables.base import Column, schema_of

_STATED = (
    *("flops", "cube_flops", "vector_flops", "flops_per_s", "cube_flops_per_s", "vector_flops_per_s"),
    *("flops_utilization_ratio", "device_peak_flops_per_s"),
)
"""Names in `rank_figures`."""

COLUMNS = columns(
    "rank",
    meaning("steps", "Number of steps in which operators were counted."),
    meaning("step_ns", "Mean length of a step."),
    Column("step_flops", "float64", "FLOPs of one step; null if no steps are known."),
    Column("step_cube_flops", "float64", "FLOPs of one step on the cube (matrix) unit; null if unknown."),
    Column("step_vector_flops", "float64", "FLOPs of one step on the vector unit; null if unknown."),
    Column("recorded_flops", "float64", "FLOPs of all recorded calls."),
    meaning("total_ns", "Time of the operators that performed them, over all steps."),
    "flops_per_s cube_flops_per_s vector_flops_per_s",
    Column("step_flops_per_s", "float64", "`step_flops` divided by `step_ns`."),
    Column("device_name", "string", "Name of the device."),
    meaning("data_type", "Data type of most FLOPs."),
    Column("peak_flops_per_s", "float64", "Peak rate of the device; null if unknown."),
    Column(
        "peak_by", "string", "Where the peak comes from: `argument`, `stated`, `device` (cores and clock) or `table`."
    ),
    Column("utilization_ratio", "float64", "`flops_per_s` over the peak."),
    Column("mfu_ratio", "float64", "`step_flops_per_s` over the peak; recomputation counts as work."),
    Column("known_ratio", "float64", "Share of the counted operators' calls whose FLOPs are known."),
    "found_by",
    Column("stated_flops", "float64", "FLOPs as the source states them."),
    Column("stated_cube_flops", "float64", "FLOPs on the cube unit, as stated."),
    Column("stated_vector_flops", "float64", "FLOPs on the vector unit, as stated."),
    Column("stated_flops_per_s", "float64", "Rate as stated."),
    Column("stated_cube_flops_per_s", "float64", "Rate of the cube unit as stated."),
    Column("stated_vector_flops_per_s", "float64", "Rate of the vector unit as stated."),
    Column("stated_flops_utilization_ratio", "float64", "Utilization as stated; the files do not define it."),
    keep="step_ns step_flops recorded_flops step_flops_per_s mfu_ratio flops_per_s utilization_ratio",
    titles={
        "step_flops": "FLOPs per {step}",
        "step_cube_flops": "cube FLOPs per {step}",
        "step_vector_flops": "vector FLOPs per {step}",
        "recorded_flops": "FLOPs in total",
        "total_ns": "operator time",
        "flops_per_s": "rate while busy",
        "cube_flops_per_s": "cube rate while busy",
        "vector_flops_per_s": "vector rate while busy",
        "step_flops_per_s": "rate over {the_step}",
        "peak_flops_per_s": "peak rate",
        "utilization_ratio": "of peak while busy",
        "mfu_ratio": "of peak (MFU)",
        "known_ratio": "calls with known FLOPs",
    },
)


@analysis("rank", COLUMNS, together=True)
def model_flops(
    operator_flops: pl.DataFrame | None,
    stated_operator_flops: pl.DataFrame | None,
    steps: pl.LazyFrame | None,
    rank_figures: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    peak_flops_per_s: float | None = None,
) -> pl.DataFrame:
    """Sum the FLOPs of a rank's operators: one row for each rank.

    Rates are operations divided by time, never a mean of rates. The peak is never inferred from a stated utilisation,
    as no file defines its unit or what it is a share of.

    Args:
        peak_flops_per_s: Peak rate of the device, instead of the known one.

    Raises:
        Unavailable: If neither operators nor the source state FLOPs.
    """
    operators = _with_stated(operator_flops, stated_operator_flops)
    about = {row["rank"]: row for row in RANKS.or_empty(ranks).collect().iter_rows(named=True)}
    stated = _stated_values(rank_figures)
    used = STEPS.or_empty(steps).select("rank", "recorded", "window", "window_start_ns", "window_end_ns")
    sums = {} if operators is None else _sums(operators, used.collect())
    unknown = [rank for rank in about if rank not in sums and not {*_STATED[:6]}.intersection(stated.get(rank, {}))]
    if unknown or not (sums or stated):
        why = "neither operators nor the source itself state floating point operations"
        raise Unavailable(why, of=unknown)
    rows = [_row(rank, facts, sums.get(rank), stated.get(rank, {}), peak_flops_per_s) for rank, facts in about.items()]
    return pl.DataFrame(rows, schema=schema_of(COLUMNS))


def _with_stated(found: pl.DataFrame | None, stated: pl.DataFrame | None) -> pl.DataFrame | None:
    """The operators, with those of which the source states totals of all steps; None if there are none.

    Where the user selects steps, these totals are of no step, but the mean of all is that of each as well.
    """
    if stated is None or stated.is_empty():
        return found
    if found is None:
        return stated
    return pl.concat([found, stated.join(found.select("rank").unique(), on="rank", how="anti")]).sort(
        "rank", maintain_order=True
    )


def _row(
    rank: int,
    about: Mapping[str, Any],
    sums: Mapping[str, Any] | None,
    stated: Mapping[str, float],
    peak_flops_per_s: float | None,
) -> dict[str, Any]:
    """The answer about one rank."""
    row: dict[str, Any] = {f"stated_{name}": stated.get(name) for name in _STATED[:7]}
    row |= {"rank": rank, "device_name": about.get("device_name")}
    row |= _of_stated(stated) if sums is None else sums
    return row | _peak(row, stated, about, peak_flops_per_s)


def _stated_values(rank_figures: pl.LazyFrame | None) -> dict[int, dict[str, float]]:
    """The figures that the source states, by rank and name."""
    is_stated = pl.col("name").is_in(_STATED) & pl.col("value").is_not_null()
    rows = RANK_FIGURES.or_empty(rank_figures).filter(is_stated)
    found: dict[int, dict[str, float]] = {}
    for rank, name, value in rows.select("rank", "name", "value").sort("rank", "name", "value").collect().iter_rows():
        found.setdefault(rank, {})[name] = value
    return found


_SUMMED = ("vector_flops", "cube_flops", "flops")


def _sums(operators: pl.DataFrame, steps: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """The FLOPs of the operators of each rank, in total and per step."""
    facts: dict[str, pl.Expr] = {}
    for column in _SUMMED:
        flops, made = pl.col(column), pl.col(column) > 0
        facts |= {
            f"{column} known": flops.count() > 0,
            f"{column} whole": (flops * pl.col("count")).filter(made).sum(),
            f"{column} of steps": (flops * pl.col("step_count")).filter(made).sum(),
            f"{column} ns": pl.col("total_ns").filter(made).sum(),
        }
    by_rank = operators.group_by("rank", maintain_order=True).agg(
        pl.col("found_by").first(),
        pl.col("step_count").sum(),
        known_ratio=pl.col("count").filter(pl.col("flops").is_not_null()).sum() / pl.col("count").sum(),
        usual_count=pl.col("count").mode().max(),
        **facts,
    )
    spans, types = _steps_of(steps), _data_types(operators)
    found = {}
    for one in by_rank.iter_rows(named=True):
        rank = one["rank"]
        counted, step_ns = spans.get(rank, (0, None))
        # A source that states FLOPs may have counted fewer steps than its step table has. Most operators run once per
        # step, so the number of steps is the most frequent count of calls.
        count = one["usual_count"] if one["found_by"] == "stated" else counted
        row: dict[str, Any] = {"found_by": one["found_by"], "steps": count or None, "step_ns": step_ns}
        for column in _SUMMED:
            is_known, whole = one[f"{column} known"], float(one[f"{column} whole"])
            spent = float(one[f"{column} of steps"]) if count and one["step_count"] else whole
            time_ns = one[f"{column} ns"]
            row[f"step_{column}"] = spent / count if is_known and count else None
            row[f"{column}_per_s"] = whole / time_ns * 1e9 if time_ns else None
            if column == "flops":
                row |= {"total_ns": time_ns, "recorded_flops": whole if is_known else None}
        per_step = row["step_flops"]
        row["step_flops_per_s"] = per_step / step_ns * 1e9 if step_ns and per_step is not None else None
        found[rank] = {**row, "data_type": types.get(rank), "known_ratio": float(one["known_ratio"])}
    return found


def _data_types(operators: pl.DataFrame) -> dict[int, str]:
    """The data type of most FLOPs of each rank."""
    made = (pl.col("flops") * pl.col("count")).sum()
    types = operators.drop_nulls("data_type").group_by("rank", "data_type").agg(made=made)
    return dict(types.sort("made", "data_type").select("rank", "data_type").iter_rows())


def _steps_of(steps: pl.DataFrame) -> dict[int, tuple[int, int | None]]:
    """The recorded steps of each rank and the mean time of its known ones."""
    is_step, is_recorded = ~is_whole_recording(), pl.col("recorded").fill_null(True)
    is_known = is_step & (is_recorded | (pl.col("window") == "stated"))
    length = pl.col("window_end_ns") - pl.col("window_start_ns")
    found = steps.group_by("rank").agg(count=(is_recorded & is_step).sum(), mean_ns=length.filter(is_known).mean())
    return {rank: (count, None if mean is None else round(mean)) for rank, count, mean in found.iter_rows()}


def _of_stated(stated: Mapping[str, float]) -> dict[str, Any]:
    """The figures of a source that states totals only: its FLOPs are those of one step."""
    parts = [stated[name] for name in ("cube_flops", "vector_flops") if name in stated]
    row: dict[str, Any] = {f"step_{name}": stated.get(name) for name in ("cube_flops", "vector_flops")}
    row |= {name: stated.get(name) for name in ("flops_per_s", "cube_flops_per_s", "vector_flops_per_s")}
    return {**row, "found_by": "stated", "step_flops": stated.get("flops", sum(parts) if parts else None)}


def _peak(
    row: Mapping[str, Any], stated: Mapping[str, float], about: Mapping[str, Any], given: float | None
) -> dict[str, Any]:
    """The device's peak rate and the shares of it."""
    ways = {
        "argument": given,
        "stated": stated.get("device_peak_flops_per_s"),
        "device": cube_peak(about.get("ai_cores") or 0, about.get("nominal_clock_mhz") or 0),
        "table": peak_of(row.get("device_name"), row.get("data_type")),
    }
    by, peak = next(((by, peak) for by, peak in ways.items() if peak), (None, None))
    found: dict[str, Any] = {"peak_flops_per_s": peak, "peak_by": by}
    for column, of in (("utilization_ratio", "flops_per_s"), ("mfu_ratio", "step_flops_per_s")):
        found[column] = row[of] / peak if peak and row.get(of) is not None else None
    return found


HALF, SINGLE = "half", "single"

PEAKS: dict[str, Mapping[str, float]] = {
    r"V100.*PCIE": {HALF: 112e12, SINGLE: 14e12},
    r"V100": {HALF: 125e12, SINGLE: 15.7e12},
    r"\bT4\b": {HALF: 65e12, SINGLE: 8.1e12},
    r"A100|A800": {HALF: 312e12, SINGLE: 19.5e12},
    r"\bA10\b": {HALF: 125e12, SINGLE: 31.2e12},
    r"\bL40S\b": {HALF: 362e12, SINGLE: 91.6e12},
    r"H100.*PCIe": {HALF: 756e12, SINGLE: 51e12},
    r"H100|H800|H200": {HALF: 989e12, SINGLE: 67e12},
    r"\bB200\b": {HALF: 2250e12, SINGLE: 75e12},
    r"MI300X": {HALF: 1307e12, SINGLE: 163.4e12},
    r"MI250X": {HALF: 191.5e12, SINGLE: 23.95e12},
}
"""Device name to peak without sparsity, from the makers' data sheets; the first match counts. `half` is fp16 and bf16
on matrix units, `single` is fp32 (on NVIDIA without TF32, which is opt-in). A device of an MI250X is one of its two
dies."""

_TYPES = {
    HALF: r"(?i)bfloat16|bf16|half|float16|fp16",
    SINGLE: r"(?i)^(dt_)?(float|float32|fp32)$",
}

CUBE_OPERATIONS = 16**3 * 2
"""Operations per cycle of a cube unit of an Ascend device, fp16: 16 x 16 x 16 multiplications and additions."""


def peak_of(device: str | None, data_type: str | None) -> float | None:
    """Peak of a device for inputs of a data type; None if either is unknown.

    Examples:
        >>> peak_of("NVIDIA H100 80GB HBM3", "c10::BFloat16") == 989e12, peak_of("NVIDIA H100 80GB HBM3", "double")
        (True, None)
    """
    kind = next((kind for kind, words in _TYPES.items() if data_type and re.search(words, data_type)), None)
    known = next((peaks for words, peaks in PEAKS.items() if device and re.search(words, device)), {})
    return known.get(kind) if kind else None


def cube_peak(cores: float, frequency_mhz: float) -> float:
    """Peak of an Ascend device's cube units for fp16: `cores x frequency x 16^3 x 2`."""
    return cores * frequency_mhz * 1e6 * CUBE_OPERATIONS
