"""How much of a rank's device work is made of short kernels."""

from __future__ import annotations

from stepscope.pages.base import Option, Page, Section
from stepscope.pages.instead import OPERATORS, TOTALS, recorded_by

_LIMIT = Option(
    "below_us", "number", "Length below which a kernel is short, in us. Default: 10.", "US", minimum=0, scale=1e3
)

PAGE = Page(
    "short-kernels",
    "Show how many kernels of a rank are short, how much of its time they take, and which they are.",
    [
        Section("kernel_lengths", "Kernels by length", bar="share_ratio"),
        Section("short_kernels", "Short kernels by name", takes={"below_us": "below_ns"}),
    ],
    options=[_LIMIT],
    more="Kernels that take less time than their launch leave the device waiting for the host («`stepscope "
    "launches`»): fuse them, compile the model, or launch them as a graph.",
    instead=recorded_by(
        "Record the device as well, e.g. activities=[CPU, CUDA] of PyTorch's profiler",
        OPERATORS,
        TOTALS,
    ),
)
