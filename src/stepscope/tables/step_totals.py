"""The `step_totals` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

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
