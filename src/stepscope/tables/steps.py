"""Steps, and what sources state of them in sum."""

from stepscope.tables.base import RANK, STEP, Column, Table

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

STEP_TOTALS = Table(
    name="step_totals",
    doc="One row per rank and step, as a source's own step table gives it.",
    key=(
        "rank",
        "step",
    ),
    columns=(
        RANK,
        STEP,
        Column("computing_ns", "int64", "Union of compute."),
        Column(
            "computing_and_free_ns",
            "int64",
            "Step less communication that is not overlapped, where a source does not tell the two apart.",
        ),
        Column("communication_ns", "int64", "Union of communication."),
        Column("overlapped_ns", "int64", "Communication under compute."),
        Column("communication_not_overlapped_ns", "int64", "Communication not under compute."),
        Column("free_ns", "int64", "Neither compute nor communication."),
        Column("stage_ns", "int64", "Step less bubble."),
        Column("bubble_ns", "int64", "Receiving in a pipeline."),
        Column("communication_not_overlapped_exclude_receive_ns", "int64", "Not overlapped, less bubble."),
        Column("interval_ns", "int64", "End of the step before to start of forward."),
        Column("forward_backward_ns", "int64", "Start of forward to end of backward."),
        Column("tail_ns", "int64", "End of backward to end of the step."),
        Column("preparing_ns", "int64", "Step start on the host to first device task."),
    ),
)
