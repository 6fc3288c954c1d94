"""The `input_pipeline` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

INPUT_PIPELINE = Table(
    name="input_pipeline",
    doc="One row per sample of a dataset operator or queue.",
    key=(
        "rank",
        "operator",
        "time_ns",
    ),
    columns=(
        RANK,
        STEP,
        Column("operator", "string", "Dataset operator or queue.", nullable=False),
        Column("time_ns", "int64", "ns since the epoch."),
        Column("duration_ns", "int64", "Time spent."),
        Column("queue_size", "int64", "Items in the queue."),
        Column("queue_capacity", "int64", "Room of the queue."),
    ),
)
