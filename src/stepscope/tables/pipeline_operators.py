"""The `pipeline_operators` table."""

from stepscope.tables.base import RANK, Column, Table

PIPELINE_OPERATORS = Table(
    name="pipeline_operators",
    doc="One row per operator of a dataset pipeline.",
    key=(
        "rank",
        "pipeline",
        "operator",
    ),
    columns=(
        RANK,
        Column("pipeline", "int32", "Number of the pipeline, from 0.", nullable=False),
        Column("operator", "string", "As in `input_pipeline`: type and number, e.g. `MapOp_3`.", nullable=False),
        Column("number", "int32", "Number in its pipeline."),
        Column("type", "string", "Type as recorded.", nullable=False),
        Column("parent", "string", "The operator that takes from it; null for the root."),
        Column("workers", "int32", "Threads or processes that fill its queue."),
        Column("queue_capacity", "int64", "Room of its output queue; null without one."),
        Column("sample_interval_ns", "int64", "Time between samples of its queue."),
        Column("parameters", "string", "Parameters, JSON, where recorded."),
    ),
)
