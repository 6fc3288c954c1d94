"""The `operator_steps` table."""

from stepscope.tables.base import RANK, Column, Table

OPERATOR_STEPS = Table(
    name="operator_steps",
    doc="One row per operator and step, where a source lists executions by step (dynamic shapes).",
    key=(
        "rank",
        "unit",
        "step",
        "full_name",
        "name",
    ),
    columns=(
        RANK,
        Column(
            "step",
            "int32",
            "Training step as the source numbers it, or the number of the execution from 1.",
            nullable=False,
        ),
        Column("unit", "string", "As in `operator_totals`.", nullable=False),
        Column("type", "string", "Operator type.", nullable=False),
        Column("name", "string", "Operator or kernel.", nullable=False),
        Column("full_name", "string", "Its place in the model."),
        Column("duration_ns", "int64", "Duration in the step, ns.", nullable=False),
        Column("input_shapes", "string", "Shapes as recorded."),
        Column("block", "string", "Thread block."),
        Column("grid", "string", "Launch grid."),
    ),
)
