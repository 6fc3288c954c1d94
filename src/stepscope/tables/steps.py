"""The `steps` table."""

from stepscope.tables.base import RANK, Column, Table

WHOLE_RECORDING, REPETITION = "recording", "repetition"
"""`window` of the row that stands for a recording without steps, and of an iteration that was found by repetition."""

WINDOWS = ("device", "stated", "host", WHOLE_RECORDING, REPETITION)
"""How the window of a step may be set; repetition is found in answers and never stored."""

STEPS = Table(
    name="steps",
    doc="One row per rank and training step.",
    key=(
        "rank",
        "step",
    ),
    columns=(
        RANK,
        Column(
            "step",
            "int32",
            "Training step as the source numbers it; 0 where it has no steps.",
            nullable=False,
        ),
        Column("start_ns", "int64", "Start of the step on the host, ns since the epoch.", nullable=False),
        Column("end_ns", "int64", "End of the step on the host.", nullable=False),
        Column(
            "window_start_ns",
            "int64",
            "Start of the window in which the step's times are summed.",
            nullable=False,
        ),
        Column("window_end_ns", "int64", "End of that window.", nullable=False),
        Column(
            "window",
            "string",
            "How the window is set: `device` (first device task of the step to first of the next; empty for a step without any), `stated` (a step table of the device), `host` (the step's own range), `recording` (no steps: all of it).",
            nullable=False,
        ),
        Column(
            "recorded",
            "bool",
            "False where operators were recorded in other steps and not in this one, so what it did is not known; null where that is the same for all steps.",
        ),
        Column("graph", "int64", "Graph (model) that the step runs, where a source counts steps by graph."),
        Column("forward_start_ns", "int64", "Start of the forward pass, where marked."),
        Column("backward_end_ns", "int64", "End of the backward pass, where marked."),
    ),
)
