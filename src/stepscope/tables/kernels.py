"""Kernels, and hardware counters of the AI core by kernel."""

from stepscope.tables.base import STEP, Column, Table

KERNELS = Table(
    name="kernels",
    doc="One row per piece of device work: compute kernels, memory operations and communication kernels.",
    key=("kernel",),
    columns=(
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
        Column("micro_batch", "int32", "Micro-batch that it works on, from 0."),
        Column("model_chunk", "int32", "Virtual pipeline stage of its rank that it works for, from 0."),
        Column("launch_start_ns", "int64", "Start of the host call that launched it."),
        Column("launch_end_ns", "int64", "End of that call."),
        Column("wait_ns", "int64", "Wait before start, as recorded."),
        Column("size_bytes", "int64", "Bytes moved by a memory operation."),
        Column(
            "direction",
            "string",
            "From where to where it moves them, e.g. `host to device`; null if only the name says.",
        ),
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

KERNEL_RESOURCES = Table(
    name="kernel_resources",
    doc="What a kernel used of the multiprocessors of its device, if recorded; apart from `kernels` as it is rarely asked.",
    key=("kernel",),
    columns=(
        Column("kernel", "int64", "Row of `kernels`.", nullable=False),
        Column("blocks_per_sm", "float64", "Blocks of its launch for each multiprocessor."),
        Column("warps_per_sm", "float64", "Warps of its launch for each multiprocessor."),
        Column("registers_per_thread", "int64", "Registers of each thread."),
        Column("shared_memory_bytes", "int64", "Shared memory of each block."),
    ),
)

EITHER = ("", "aic_", "aiv_")
"""Prefixes: none on older devices; newer ones separate the cube (aic) and vector (aiv) cores."""
CUBE = ("", "aic_")
VECTOR = ("", "aiv_")

_MOVES = ("gm_to_l1", "l1_to_gm", "l0c_to_l1", "l0c_to_gm", "gm_to_ub", "ub_to_gm")

COUNTERS_OF_SETS: dict[str, tuple[tuple[str, tuple[str, ...], str], ...]] = {
    "every set": (
        ("time_ns", ("aic_", "aiv_"), "Busy time of the core."),
        ("total_cycles", EITHER, "Cycles of the kernel, summed over cores."),
    ),
    "PipeUtilization": (
        *((f"mac_{unit}", CUBE, "Matrix unit busy.") for unit in ("time_ns", "ratio", "ratio_extra")),
        *((f"vec_{unit}", VECTOR, "Vector unit busy.") for unit in ("time_ns", "ratio")),
        *((f"scalar_{unit}", EITHER, "Scalar unit busy.") for unit in ("time_ns", "ratio")),
        *((f"mte1_{unit}", CUBE, "Moves from L1 to L0.") for unit in ("time_ns", "ratio", "ratio_extra")),
        *((f"mte2_{unit}", EITHER, "Moves into the core.") for unit in ("time_ns", "ratio", "ratio_extra")),
        *((f"mte3_{unit}", EITHER, "Moves out of the core.") for unit in ("time_ns", "ratio")),
        *((f"fixpipe_{unit}", CUBE, "Moves out of L0C.") for unit in ("time_ns", "ratio")),
        ("icache_miss_ratio", EITHER, "Instruction cache misses."),
        ("memory_bound", ("",), "mte2 divided by the larger of mac and vec; memory bound above 1."),
        ("cube_utilization_ratio", ("",), "Share of the cube's peak."),
    ),
    "ArithmeticUtilization": (
        *((f"mac_{kind}_ratio", CUBE, "Matrix instructions of the type.") for kind in ("fp16", "int8")),
        *(
            (f"vec_{kind}_ratio", VECTOR, "Vector instructions of the type.")
            for kind in ("fp32", "fp16", "int32", "misc")
        ),
        ("cube_fops", CUBE, "Floating point operations of the cube."),
        ("vector_fops", VECTOR, "Floating point operations of the vector unit."),
    ),
    "Memory": tuple(
        (f"{memory}_{way}_bytes_per_s", EITHER, "As recorded by the hardware, without sizes.")
        for memory in ("ub", "l1", "l2", "main_mem")
        for way in ("read", "write")
    ),
    "MemoryL0": (
        *(
            (f"{memory}_{way}_bytes_per_s", EITHER, "As recorded by the hardware, without sizes.")
            for memory in ("l0a", "l0b", "l0c")
            for way in ("read", "write")
        ),
        *((f"l0c_{way}_cube_bytes_per_s", CUBE, "Bandwidth of the cube.") for way in ("read", "write")),
        *((f"scalar_{kind}_ratio", EITHER, "Scalar loads or stores.") for kind in ("ld", "st")),
    ),
    "MemoryUB": tuple(
        (f"ub_{way}_{unit}_bytes_per_s", VECTOR, "As recorded by the hardware, without sizes.")
        for unit in ("mte", "vector", "scalar")
        for way in ("read", "write")
    ),
    "ResourceConflictRatio": (
        *(
            (f"vec_{kind}_cflt_ratio", VECTOR, "Vector cycles lost to conflicts.")
            for kind in ("bankgroup", "bank", "resc", "mte")
        ),
        *((f"{unit}_iq_full_ratio", EITHER, "Queue full.") for unit in ("mte1", "mte2", "mte3", "cube", "vec")),
    ),
    "L2Cache": tuple(
        (name, EITHER, "Number of accesses.")
        for name in (
            "write_cache_hit",
            "write_cache_miss_allocate",
            "r0_read_cache_hit",
            "r0_read_cache_miss_allocate",
            "r1_read_cache_hit",
            "r1_read_cache_miss_allocate",
        )
    ),
    "MemoryAccess": (
        *((f"{way}_main_memory_bytes", EITHER, "Bytes of main memory.") for way in ("read", "write")),
        *((f"{move}_bytes", EITHER, "Bytes moved.") for move in _MOVES),
        *((f"{move}_usage_ratio", EITHER, "Share of the path's bandwidth.") for move in _MOVES),
    ),
}
"""The counters that each metric set of the profiler records: name, prefixes, meaning."""

KERNEL_COUNTERS = Table(
    name="kernel_counters",
    doc="One row per kernel with hardware counters; the recorded metric set decides which columns are filled.",
    key=("kernel",),
    columns=(
        Column("kernel", "int64", "Its row in `kernels`.", nullable=False),
        *(
            Column(prefix + name, "float64", f"{doc} Metric set: {metric_set}.")
            for metric_set, counters in COUNTERS_OF_SETS.items()
            for name, prefixes, doc in counters
            for prefix in prefixes
        ),
    ),
)
