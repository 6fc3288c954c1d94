"""The `kernels` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

KERNELS = Table(
    name="kernels",
    doc="One row per piece of device work: compute kernels, memory operations and communication kernels.",
    key=(
        "rank",
        "kernel",
    ),
    columns=(
        RANK,
        Column("kernel", "int64", "Number of the row, unique in its rank.", nullable=False),
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration.", nullable=False),
        Column("kind", "string", "`compute`, `communication` or `memory`.", nullable=False),
        Column("name", "string", "Kernel name.", nullable=False),
        Column("type", "string", "Operator type, if recorded, e.g. `MatMulV3`."),
        Column("core", "string", "Unit that ran it, e.g. `AI_CORE`, `AI_CPU`."),
        Column("device", "int32", "Device index."),
        Column("stream", "int32", "Device stream."),
        Column("correlation", "int64", "Id that the kernel shares with its launch."),
        Column("external_id", "int64", "Id shared with the operator that launched it."),
        Column("launch_start_ns", "int64", "Start of the host call that launched it."),
        Column("launch_end_ns", "int64", "End of that call."),
        Column("wait_ns", "int64", "Wait before start, as recorded."),
        Column("size_bytes", "int64", "Bytes moved by a memory operation."),
        Column("input_shapes", "string", "Shapes as recorded."),
        Column("input_types", "string", "Data types."),
        Column("input_formats", "string", "Data formats."),
        Column("output_shapes", "string", "Shapes as recorded."),
        Column("output_types", "string", "Data types."),
        Column("output_formats", "string", "Data formats."),
        Column("block_dim", "int64", "Blocks or cores used."),
        Column("mix_block_dim", "int64", "Cores of the second kind in a mixed kernel."),
        Column("state", "string", "`static` or `dynamic` shape."),
        Column("grid", "string", "Launch grid."),
        Column("block", "string", "Thread block."),
        Column("occupancy_ratio", "float64", "Estimated achieved occupancy, 0 to 1."),
        STEP,
    ),
)
