"""The input pipeline: its operators, and batches and queues over time."""

from stepscope.tables.base import STEP, Column, Table

INPUT_PIPELINE = Table(
    name="input_pipeline",
    doc="One row per sample of a dataset operator or queue.",
    key=("operator", "time_ns"),
    columns=(
        STEP,
        Column(
            "operator", "string", "Loader, dataset operator (type and number, e.g. `MapOp_3`) or queue.", nullable=False
        ),
        Column("parent", "string", "The operator that consumes its output, if known."),
        Column("batch", "int64", "Number of the batch in the source; null for samples by time."),
        Column("time_ns", "int64", "ns since the epoch."),
        Column(
            "duration_ns", "int64", "Time spent on the batch; for a loader, how long the training loop waited for it."
        ),
        Column("get_ns", "int64", "Part of it spent getting the batch from the pipeline."),
        Column("push_ns", "int64", "Part of it spent passing the batch on."),
        Column("queue_size", "int64", "Items in the queue; for a loader, batches ready after this one was taken."),
        Column("queue_capacity", "int64", "Capacity of the queue."),
        Column("workers", "int32", "Processes or threads that fill the queue."),
    ),
)

PIPELINE_OPERATORS = Table(
    name="pipeline_operators",
    doc="One row per operator of a dataset pipeline.",
    key=("pipeline", "operator"),
    columns=(
        Column("pipeline", "int32", "Number of the pipeline, from 0.", nullable=False),
        Column("operator", "string", "As in `input_pipeline`: type and number, e.g. `MapOp_3`.", nullable=False),
        Column("number", "int32", "Number in its pipeline."),
        Column("type", "string", "Type as recorded.", nullable=False),
        Column("parent", "string", "The operator that consumes its output; null for the root."),
        Column("workers", "int32", "Threads or processes that fill its queue."),
        Column("queue_capacity", "int64", "Capacity of its output queue; null if it has none."),
        Column("sample_interval_ns", "int64", "Time between samples of its queue."),
        Column("parameters", "string", "Parameters, JSON."),
    ),
)
