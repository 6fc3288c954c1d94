"""Which sequences of kernels the operators of a rank launch."""

from __future__ import annotations

from stepscope.pages.base import Option, Page, Section

PAGE = Page(
    "sequences",
    "Show which sequences of kernels a rank's operators launch, with all that they call: how often and how long.",
    [
        Section(
            "kernel_sequences",
            "Sequences of kernels, by kernel time",
            takes={"operator": "operator", "shortest": "shortest", "shown": "shown"},
            chosen_heading="Sequences of kernels, by kernel time",
        )
    ],
    options=[
        Option("operator", "text", "Operator under which to look. Default: those that no other calls.", "NAME"),
        Option("shortest", "integer", "Leave out sequences of fewer kernels. Default: 1.", "N", minimum=1),
        Option("shown", "integer", "Kernels of a sequence to write out; 0 for all. Default: 20.", "N", minimum=0),
    ],
    more="Operators whose calls launch the same short kernels again and again can be fused or compiled: look for long "
    "sequences with a high count, e.g. with `--shortest 3 --sort -count`.",
)
