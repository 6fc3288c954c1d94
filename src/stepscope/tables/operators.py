"""Operators: calls, recorded totals over all steps, by step and by scope, and what MindSpore's names of them mean.

MindSpore's names of operators are places in the model, e.g. `Default/fc-Dense/MatMul-op3`. The first part is the graph
that it belongs to; PyNative has its backward pass in `Bprop`, graphs in `Gradients`.
"""

from stepscope.tables.base import STEP, Column, Table

BACKWARD = r"^(Gradients|Bprop)/"
"""Operators of the backward pass."""

OPTIMIZER_SCOPE = r"/optimizer-\w+/"
"""Operators of an optimizer."""

INSTANCE = r"-op\d+$"
"""Number of an operator, after its type."""

PLACE = rf"^(Default|Gradients|Bprop|Expand|recompute_\w+)/|/[^/]*{INSTANCE}"
"""Names that are places in the model."""

OPERATORS = Table(
    name="operators",
    doc="One row per call of a framework operator.",
    key=("slice",),
    columns=(
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

OPERATOR_DETAILS = Table(
    name="operator_details",
    doc="What some operators have in addition: strides, and how a compiled kernel was launched; apart from `operators` as it is rarely asked.",
    key=("slice",),
    columns=(
        Column("slice", "int64", "Row of `operators`.", nullable=False),
        Column("input_strides", "string", "Strides of the inputs, as recorded."),
        Column("kernel_name", "string", "Name of the compiled kernel (Triton)."),
        Column("kernel_file", "string", "File with its code."),
        Column("kernel_hash", "string", "Hash of its code."),
        Column("kernel_backend", "string", "What compiled it, e.g. `triton`."),
        Column("kernel_kwargs", "string", "Its compile-time arguments, e.g. `XBLOCK=16`."),
        Column("kernel_grid", "string", "Launch grid, as recorded, e.g. `grid(100,)`."),
        Column(
            "kernel_stream", "int64", "Handle of the stream that it is launched on, as recorded; 0 is the default one."
        ),
        Column("kernel_warps", "int32", "Warps of each block."),
        Column("kernel_stages", "int32", "Stages of its software pipeline."),
        Column("kernel_moved_gb", "float64", "Gigabytes that it moves, as the compiler estimates."),
        Column("kernel_flops", "float64", "Floating-point operations, as the compiler counts them."),
    ),
)

OPERATOR_TOTALS = Table(
    name="operator_totals",
    doc="Totals of operators, kernels or API calls, if the source has only totals.",
    key=("unit", "level", "full_name", "name", "core"),
    columns=(
        Column(
            "level",
            "string",
            "`type` (all operators of a type), `operator` (one place in the model), `activity` (a kernel of a GPU), `stage` (of a dataset operation), `kernel` (types of kernels, if `unit` is null), or the layer of the API: `acl`, `node`, `model`, `runtime`, `communication`.",
            nullable=False,
        ),
        Column(
            "unit",
            "string",
            "The source's list that has the row: `AI_CORE` (all work of an Ascend device), `AI_CPU`, `HOST_CPU` (host operators of a rank with a device), `CPU`, `GPU`, `CUDA` (its kernels), `PYNATIVE`, `DATASET`; null if there is only one. Lists may overlap: do not sum over them.",
        ),
        Column("name", "string", "Operator type, operator or API name.", nullable=False),
        Column("core", "string", "Unit that ran it, as recorded: `AI_CORE`, `AI_CPU`, `HCCL`, `cpu`, `gpu`..."),
        STEP,
        Column("count", "int64", "Calls.", nullable=False),
        Column("total_ns", "int64", "Sum.", nullable=False),
        Column("min_ns", "int64", "Shortest."),
        Column("max_ns", "int64", "Longest."),
        Column("type", "string", "Operator type of an operator or kernel."),
        Column("full_name", "string", "Place in the model, e.g. `Default/network/fc-Dense/MatMul-op1`."),
        Column(
            "framework_name",
            "string",
            "Full name of the framework operator that it was compiled from, if recorded.",
        ),
        Column("subgraph", "string", "`Default`, `Gradients`, `recompute_Default`..."),
        Column("graph", "int64", "Graph (model) that contains it."),
        Column("operators", "int64", "Operators of the type."),
        Column("wait_ns", "int64", "Sum of dispatch or wait time before it."),
        Column("activity_ns", "int64", "Sum of the kernels that it launched."),
        Column("activities", "int64", "Kernels that it launched."),
        Column("stream", "int32", "Device stream."),
        Column("block_dim", "int64", "Blocks or cores used."),
        Column("block", "string", "Thread block."),
        Column("grid", "string", "Launch grid."),
        Column("process", "int64", "Process id."),
        Column("inputs", "string", "Inputs and outputs with format, data type and shape, JSON as recorded."),
        Column(
            "cube_flops", "float64", "FLOPs of one call on the cube (matrix) unit; all FLOPs if units are not separate."
        ),
        Column("vector_flops", "float64", "FLOPs of one call on the vector unit."),
    ),
)

OPERATOR_STEPS = Table(
    name="operator_steps",
    doc="One row per operator and step, if the source lists executions by step (dynamic shapes).",
    key=("unit", "step", "full_name", "name"),
    columns=(
        Column(
            "step",
            "int32",
            "Training step as the source numbers it, or the number of the execution, from 1.",
            nullable=False,
        ),
        Column("unit", "string", "As in `operator_totals`.", nullable=False),
        Column("type", "string", "Operator type.", nullable=False),
        Column("name", "string", "Operator or kernel.", nullable=False),
        Column("full_name", "string", "Its place in the model."),
        Column("duration_ns", "int64", "Duration in the step.", nullable=False),
        Column("input_shapes", "string", "Shapes as recorded."),
        Column("block", "string", "Thread block."),
        Column("grid", "string", "Launch grid."),
    ),
)

FLOP_SCOPES = Table(
    name="flop_scopes",
    doc="One row per edge of the tree of scopes, if FLOPs are recorded by scope.",
    key=("parent", "scope"),
    columns=(
        Column("parent", "string", "Enclosing scope.", nullable=False),
        Column("scope", "string", "Scope.", nullable=False),
        Column("flops", "float64", "FLOPs of the scope with all scopes in it.", nullable=False),
    ),
)
