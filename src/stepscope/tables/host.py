"""The host: events that a framework marks, use of resources, and counters of devices."""

from stepscope.tables.base import STEP, Column, Table

HOST_EVENTS = Table(
    name="host_events",
    doc="One row per range or point on the host, by module, event and stage, as marked by the framework.",
    key=("thread", "start_ns"),
    columns=(
        STEP,
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration; null for a point or a start without an end."),
        Column("module", "string", "Module of the framework, e.g. `Dataset`, `Compiler`, `Kernel`.", nullable=False),
        Column("event", "string", "Event of the module."),
        Column("stage", "string", "Stage of the event, or the operator."),
        Column("level", "int32", "Level of detail."),
        Column("custom", "string", "Details from the module, as recorded."),
        Column("process", "int64", "Process id."),
        Column("parent_process", "int64", "Process id of the parent."),
        Column("thread", "int64", "Thread id."),
        Column("memory_start_bytes", "int64", "Memory of the process at the start."),
        Column("memory_end_bytes", "int64", "Memory of the process at the end."),
    ),
)

HOST_USAGE = Table(
    name="host_usage",
    doc="One row per sample of CPU, memory and disk use of a host, process, worker or dataset operator.",
    key=("scope", "name", "process", "time_ns"),
    columns=(
        Column(
            "time_ns",
            "int64",
            "When the sample was taken, ns since the epoch; shares and counts cover the time since the previous sample.",
            nullable=False,
        ),
        Column(
            "scope",
            "string",
            "`host` (the whole machine), `process` (the rank's process), `worker` (a process of its input pipeline) or `operator` (the threads of a dataset operator).",
            nullable=False,
        ),
        Column("name", "string", "Name of the worker or operator."),
        Column("process", "int64", "Process id; null for the host."),
        Column(
            "processors",
            "int32",
            "Processors of the host. Multiply a share by it to get processors: 0.25 of 8 means two are busy.",
        ),
        Column(
            "user_ratio",
            "float64",
            "Share spent in user code, of the CPU time of all processors of the host (in every scope).",
        ),
        Column("system_ratio", "float64", "Share in the kernel."),
        Column("io_ratio", "float64", "Share waiting for IO."),
        Column("idle_ratio", "float64", "Share idle."),
        Column("runnable", "int64", "Processes that are running or ready to run."),
        Column("context_switches", "int64", "Context switches since the previous sample."),
        Column("threads", "int64", "Threads."),
        Column("rss_bytes", "int64", "Resident memory."),
        Column("uss_bytes", "int64", "Memory not shared with other processes."),
        Column("available_bytes", "int64", "Memory of the host that is free to use."),
        Column("total_bytes", "int64", "Memory of the host."),
        Column("read_bytes", "int64", "Read from disk since the previous sample."),
        Column("written_bytes", "int64", "Written to disk since the previous sample."),
    ),
)

COUNTERS = Table(
    name="counters",
    doc="One row per sample of a counter.",
    key=("name", "time_ns"),
    columns=(
        Column("time_ns", "int64", "ns since the epoch.", nullable=False),
        Column("name", "string", "Counter with its unit: `ai_core_frequency_mhz`...", nullable=False),
        Column("device", "int32", "Device index."),
        Column("value", "float64", "Sample.", nullable=False),
    ),
)
