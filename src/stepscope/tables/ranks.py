"""Ranks, and recorded figures of a whole rank."""

from stepscope.tables.base import Column, Table

RANKS = Table(
    name="ranks",
    doc="One row per recording of a rank: who recorded it, where and how.",
    key=(),
    columns=(
        Column("rank", "int32", "Global rank; null until the run numbers ranks without one."),
        Column(
            "rank_origin", "string", "Where the rank comes from: `content`, `rank table`, `file name` or `numbered`."
        ),
        Column("world_size", "int32", "Ranks in the job, as recorded."),
        Column("host", "string", "Host name."),
        Column("process", "int64", "Process id."),
        Column("device_kind", "string", "`cpu`, `cuda`, `rocm` or `npu`."),
        Column("device", "int32", "Device index on its host."),
        Column("nic", "string", "Address of the device's network interface, from a rank table."),
        Column("device_name", "string", "Device model."),
        Column("framework", "string", "`pytorch` or `mindspore`."),
        Column("framework_version", "string", "Version as recorded."),
        Column("mode", "string", "`graph`, `pynative`, `jit` or `eager`, if recorded."),
        Column("format", "string", "Source that read it, e.g. `kineto`, `ascend_text`."),
        Column("ai_cores", "int32", "AI cores of the device, as recorded."),
        Column("vector_cores", "int32", "Vector cores of the device beside its AI cores, as recorded."),
        Column("nominal_clock_mhz", "float64", "Clock rate of the AI cores that the device is made for, as recorded."),
        Column(
            "takes_functions",
            "bool",
            "False if the profiler that recorded it cannot record Python functions; null if it can, or unknown.",
        ),
        Column("backend", "string", "Communication backend, e.g. `nccl`, `gloo`, `hccl`."),
        Column("base_ns", "int64", "Time base of the trace, already added to every time."),
        Column(
            "clock_offset_ns",
            "int64",
            "Offset to rank 0's clock, already added to every time; null if not measured while recording.",
        ),
        Column("clock_error_ns", "int64", "Error bound of the offset."),
        Column("start_ns", "int64", "Earliest time in the recording; null if its times are not since the epoch."),
        Column("end_ns", "int64", "Latest time in the recording."),
        Column("options", "string", "Profiler options, JSON."),
        Column("environment", "string", "Environment variables that matter, JSON."),
        Column("parallelism", "string", "Recorded parallel sizes (tensor, pipeline, data...), JSON."),
    ),
)

RANK_FIGURES = Table(
    name="rank_figures",
    doc="One row per recorded figure or name of a whole rank that has no table of its own; see the names below.",
    key=("name", "graph"),
    columns=(
        Column(
            "name",
            "string",
            "Name with its unit: `forward_start_operator`, `backward_end_operator`, `cube_flops`, "
            "`cube_flops_per_s`, `vector_flops`, `vector_flops_per_s`, `flops`, `flops_per_s`, "
            "`flops_utilization_ratio`, `flop_scope_levels`, `memory_capacity_bytes`, `memory_peak_bytes`, "
            "`memory_static_bytes`, `memory_allocations`, `memory_deallocations`, `device_peak_flops_per_s`, "
            "`timeline_total_ns`, `timeline_streams`, `timeline_operators`, `timeline_executions`, "
            "`timeline_scope_levels`, `recommendation`, `dump_written_ns`, `dump_version`; `average_` and the "
            "name of a time of a step, if the source states averages of more steps than it holds.",
            nullable=False,
        ),
        Column("graph", "int64", "Graph (model) of the figure; null for all."),
        Column("value", "float64", "The figure; null for a name."),
        Column("text", "string", "The name, or JSON."),
    ),
)
