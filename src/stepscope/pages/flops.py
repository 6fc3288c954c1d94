"""Floating point operations of a rank, their rate, and how much of the device's peak that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Option, Page, Section, View
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by
from stepscope.selection import named_numbers

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _of_what(tree: pl.DataFrame) -> Iterator[str]:
    """Over which calls the operations of a scope are summed."""
    if "operators" in tree["found_by"]:
        yield "FLOPs in total are the sum over all recorded calls."
    if "stated" in tree["found_by"]:
        yield "FLOPs in total are those stated in the profile, for one run of the graph."


def _shares(model: pl.DataFrame) -> Iterator[str]:
    """What the share of the peak depends on."""
    row = model.row(0, named=True)
    if row["peak_flops_per_s"] is None:
        yield "The peak of this device is unknown; give it with «--peak-tflops» to see the share."
    yield from above_peak(model)
    if row["known_ratio"] is not None and row["known_ratio"] < 1:
        yield f"FLOPs are unknown for {1 - row['known_ratio']:.1%} of the counted calls."


APART = 0.1
"""Share of the greater figure from which on a stated one is said to differ, as in `differing_sources`."""


def stated_otherwise(run: Run, found: pl.DataFrame) -> Iterator[str]:
    """Notes of a section of FLOPs: ranks whose operators add up to other FLOPs than the profile states of the rank."""
    from stepscope.present import cell

    if not run.has("rank_figures"):
        return
    far: list[tuple[float, int, float, float]] = []
    for row in run.analyse("model_flops").iter_rows(named=True):
        parts = [row[name] for name in ("stated_cube_flops", "stated_vector_flops") if row[name] is not None]
        stated = row["stated_flops"] if row["stated_flops"] is not None else sum(parts)
        ours = row["step_flops"] or 0
        if row["rank"] in found["rank"] and stated and ours:
            off = abs(stated - ours) / max(stated, ours)
            far += [(-off, row["rank"], ours, stated)] if off > APART else []
    if far:
        _, rank, ours, stated = min(far)
        of = f" (rank {rank})" if len(far) > 1 else ""
        yield (
            f"The operators of {named_numbers('rank', sorted(each[1] for each in far))} add up to "
            f"{cell('step_flops', ours)} in {{a_step}}; the profile states {cell('step_flops', stated)}{of}. Believe "
            "the operators: they are listed one by one."
        )


def above_peak(rows: pl.DataFrame) -> Iterator[str]:
    """That a rate cannot be above the peak, and what may be wrong with it."""
    ratios = [name for name in ("utilization_ratio", "mfu_ratio") if name in rows.columns]
    if any((rows[name] > 1).any() for name in ratios):
        yield (
            "No device is faster than its peak. Either the peak is that of another data type (float32 runs as TF32 "
            "where that is on), or the times or shapes are not those of this device; fast algorithms of convolutions, "
            "if there are any, run fewer operations than are counted. Give another peak with «`stepscope flops "
            "--peak-tflops`»."
        )


PEAK = Option(
    "peak_tflops",
    "number",
    "Peak of the device, in TFLOP/s. Default: as stated or known for the device.",
    "NUMBER",
    minimum=1e-6,
    scale=1e12,
)

PAGE = Page(
    "flops",
    "Show floating point operations by operator, step and scope, their rate, and the share of the device's peak.",
    [
        Section("operator_flops", "Operations by operator, FLOPs per call", hidden=("step_count",)),
        Section(
            "model_flops",
            "Operations in the recording",
            takes={"peak_tflops": "peak_flops_per_s"},
            every_step=True,
            sentences=_shares,
            notes=stated_otherwise,
            views=[View("Operations of {a_step}", needs=("step_flops",))],
        ),
        Section(
            "operator_utilization",
            "Share of the peak by operator",
            takes={"peak_tflops": "peak_flops_per_s"},
            rows=10,
        ),
        Section("flop_tree", "Operations by scope, FLOPs in total", hidden=("name",), sentences=_of_what),
    ],
    options=[PEAK],
    instead=recorded_by(
        "Record shapes, with record_shapes=True or `stepscope record --shapes`",
        OPERATORS,
        TOTALS,
    ),
)
