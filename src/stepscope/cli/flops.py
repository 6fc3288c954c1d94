"""`stepscope flops`: floating point operations of a rank, their rate, and how much of the device's peak that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.asking import Table, View, asks

if TYPE_CHECKING:
    import polars as pl


_PER_CALL = {
    "flops": "FLOPs per call",
    "cube_flops": "cube FLOPs per call",
    "vector_flops": "vector FLOPs per call",
    "flops_per_s": "rate",
    "cube_flops_per_s": "cube rate",
    "vector_flops_per_s": "vector rate",
}

_OF_STEP = {
    "step_flops": "FLOPs per step",
    "step_cube_flops": "cube FLOPs per step",
    "step_vector_flops": "vector FLOPs per step",
    "recorded_flops": "FLOPs in total",
    "total_ns": "operator time",
    "flops_per_s": "rate while busy",
    "cube_flops_per_s": "cube rate while busy",
    "vector_flops_per_s": "vector rate while busy",
    "step_flops_per_s": "rate over the step",
    "peak_flops_per_s": "peak rate",
    "utilization_ratio": "of peak while busy",
    "mfu_ratio": "of peak (MFU)",
    "known_ratio": "calls with known FLOPs",
}


@asks
def flops(
    peak_tflops: Annotated[
        float | None,
        typer.Option(help="Peak of the device, in 10^12 operations a second.", metavar="NUMBER", min=1e-6),
    ] = None,
) -> Sequence[Table]:
    """Show floating point operations by operator, of a step and by scope, their rate and share of the device's peak."""
    options: dict[str, Any] = {} if peak_tflops is None else {"peak_flops_per_s": peak_tflops * 1e12}
    return [
        Table(
            "operator_flops",
            "Operations by operator, FLOPs per call",
            hidden=("step_count",),
            keeps=("name", "flops", "input_shapes", "share_ratio", "flops_per_s", "count", "total_ns", "data_type"),
            titles={**_PER_CALL, "total_ns": "total time", "share_ratio": "share of FLOPs"},
        ),
        Table(
            "model_flops",
            "Operations in the recording",
            options,
            every_step=True,
            says=_shares,
            keeps=(
                "step_ns",
                "step_flops",
                "recorded_flops",
                "step_flops_per_s",
                "mfu_ratio",
                "flops_per_s",
                "utilization_ratio",
            ),
            titles=_OF_STEP,
            views=[View("Operations of a step", needs=("step_flops",))],
        ),
        Table(
            "flop_tree",
            "Operations by scope, FLOPs in total",
            hidden=("name",),
            says=_of_what,
            keeps=("scope", "flops", "share_ratio", "parent"),
            titles={"flops": "FLOPs in total", "share_ratio": "share of parent"},
        ),
    ]


def _of_what(tree: pl.DataFrame) -> Iterator[str]:
    """Over which calls the operations of a scope are summed."""
    if "operators" in tree["found_by"]:
        yield "FLOPs in total: of all recorded calls."
    if "stated" in tree["found_by"]:
        yield "FLOPs in total: as the profile states them, of one run of the graph."


def _shares(model: pl.DataFrame) -> Iterator[str]:
    """How much of the peak that is, in words."""
    row = model.row(0, named=True)
    if row["peak_flops_per_s"] is None:
        yield "The device's peak is not known; give it with --peak-tflops to see the share."
    if (row["utilization_ratio"] or 0) > 1:
        yield (
            "That is more than the peak: fast algorithms for convolutions make fewer operations than they stand for, "
            "else times, shapes or the peak are not those of this device."
        )
    if row["known_ratio"] is not None and row["known_ratio"] < 1:
        yield f"The operations of {1 - row['known_ratio']:.1%} of the calls that are counted are unknown."
