"""The `operators` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

OPERATORS = Table(
    name="operators",
    doc="One row per call of a framework operator.",
    key=(
        "rank",
        "slice",
    ),
    columns=(
        RANK,
        Column("slice", "int64", "Its row in `slices`.", nullable=False),
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Total time on the host, ns.", nullable=False),
        Column("self_ns", "int64", "Time less its direct children on the same thread."),
        Column("name", "string", "Operator name, e.g. `aten::mm`.", nullable=False),
        Column(
            "type",
            "string",
            "Operator type where the name is that of one place in the model, e.g. `MatMul` of `Default/fc-Dense/MatMul-op0`.",
        ),
        Column("thread", "string", "Thread id or label."),
        Column("input_shapes", "string", "Shapes as recorded."),
        Column("input_types", "string", "Data types as recorded."),
        Column(
            "input_values",
            "string",
            "Inputs of convolutions that are no tensors (strides, padding...), by place, as recorded; null of others.",
        ),
        Column("sequence", "int64", "Autograd sequence number, ties backward to forward."),
        Column("forward_thread", "int64", "Thread of the forward operator, on backward operators."),
        Column(
            "external_id",
            "int64",
            "Ties device work to the operator that launched it (`kernels.external_id`).",
        ),
        Column("stack", "int64", "Its row in `stacks`."),
        STEP,
    ),
)
