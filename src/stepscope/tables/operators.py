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
        Column("duration_ns", "int64", "Total time on the host.", nullable=False),
        Column("self_ns", "int64", "Time less that of direct children on the same thread."),
        Column("name", "string", "Operator name, e.g. `aten::mm`.", nullable=False),
        Column(
            "type",
            "string",
            "Operator type if `name` is a place in the model, e.g. `MatMul` for `Default/fc-Dense/MatMul-op0`.",
        ),
        Column("thread", "string", "Thread id or label."),
        Column("input_shapes", "string", "Shapes as recorded."),
        Column("input_types", "string", "Data types as recorded."),
        Column(
            "input_values",
            "string",
            "Non-tensor inputs of convolutions (strides, padding...) by position, as recorded; null for other operators.",
        ),
        Column("sequence", "int64", "Autograd sequence number, the same for forward and backward."),
        Column("forward_thread", "int64", "For backward operators, the thread of the forward operator."),
        Column(
            "external_id",
            "int64",
            "Id shared with the device work that it launched (`kernels.external_id`).",
        ),
        Column("stack", "int64", "Its row in `stacks`."),
        STEP,
    ),
)
