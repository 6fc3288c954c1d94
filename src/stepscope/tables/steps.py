"""Steps, and recorded totals by step."""

from stepscope.tables.base import STEP, Column, Table

WHOLE_RECORDING, REPETITION = "recording", "repetition"
"""`window` of the only row of a recording without steps, and of an iteration found by repetition."""

WINDOWS = ("device", "stated", "host", WHOLE_RECORDING, REPETITION)
"""All values of `window`; repetition only occurs in answers and is never stored."""

STEPS = Table(
    name="steps",
    doc="One row per rank and training step.",
    key=("step",),
    columns=(
        Column(
            "step",
            "int32",
            "Training step as the source numbers it; 0 if it has no steps.",
            nullable=False,
        ),
        Column("start_ns", "int64", "Start of the step on the host, ns since the epoch.", nullable=False),
        Column("end_ns", "int64", "End of the step on the host.", nullable=False),
        Column(
            "window_start_ns",
            "int64",
            "Start of the window over which the step's times are summed.",
            nullable=False,
        ),
        Column("window_end_ns", "int64", "End of the window.", nullable=False),
        Column(
            "window",
            "string",
            "How the window is set: `device` (from the step's first device task to that of the next step, early work on side streams aside; empty for a step without any), `stated` (from a step table of the device), `host` (the step's own range), `recording` (the whole recording, if it has no steps).",
            nullable=False,
        ),
        Column(
            "recorded",
            "bool",
            "False if operators were recorded in other steps but not in this one; null if all steps are alike.",
        ),
        Column("graph", "int64", "Graph (model) that the step runs, if steps are counted by graph."),
        Column("forward_start_ns", "int64", "Start of the forward pass, if marked."),
        Column("backward_end_ns", "int64", "End of the backward pass, if marked."),
        Column(
            "run_delay_ns",
            "int64",
            "How long its thread was ready to run while the processors ran others; null if not recorded.",
        ),
    ),
)

STEP_TOTALS = Table(
    name="step_totals",
    doc="One row per rank and step, as the source's own step table has it.",
    key=("step",),
    columns=(
        STEP,
        Column("computing_ns", "int64", "Union of computing."),
        Column(
            "computing_and_free_ns",
            "int64",
            "Step less exposed communication, if the source does not split computing from idle time.",
        ),
        Column("communication_ns", "int64", "Union of communication."),
        Column("overlapped_ns", "int64", "Communication hidden by computing."),
        Column("communication_not_overlapped_ns", "int64", "Exposed communication."),
        Column("free_ns", "int64", "Neither computing nor communication."),
        Column("stage_ns", "int64", "Step less bubble."),
        Column("bubble_ns", "int64", "Waiting to receive in a pipeline."),
        Column("communication_not_overlapped_exclude_receive_ns", "int64", "Exposed communication less bubble."),
        Column("interval_ns", "int64", "From the end of the previous step to the start of forward."),
        Column("forward_backward_ns", "int64", "From the start of forward to the end of backward."),
        Column("tail_ns", "int64", "From the end of backward to the end of the step."),
        Column("preparing_ns", "int64", "From the step's start on the host to its first device task."),
    ),
)
