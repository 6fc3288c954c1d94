"""Floating point operations of a rank, their rate, and how much of the device's peak that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Option, Page, Section, View

if TYPE_CHECKING:
    import polars as pl


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
        yield "The peak of this device is unknown; give it with --peak-tflops to see the share."
    if (row["utilization_ratio"] or 0) > 1:
        yield (
            "This is more than the peak: fast convolution algorithms run fewer operations than are counted for them; "
            "otherwise times, shapes or the peak are not those of this device."
        )
    if row["known_ratio"] is not None and row["known_ratio"] < 1:
        yield f"FLOPs are unknown for {1 - row['known_ratio']:.1%} of the counted calls."


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
)
