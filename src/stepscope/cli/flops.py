"""`stepscope flops`: floating point operations of a rank, their rate, and how much of the device's peak that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.asking import Table, asks

if TYPE_CHECKING:
    import polars as pl


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
        Table("operator_flops", "Operations by operator", hidden=("step_count",)),
        Table("model_flops", "Operations of a step", options, every_step=True, says=_shares),
        Table("flop_tree", "Operations by scope", hidden=("name",)),
    ]


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
        yield f"Shapes do not tell the operations of {1 - row['known_ratio']:.1%} of the calls that are counted."
