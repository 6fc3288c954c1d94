"""Communication: process groups, calls, links between ranks, transports, and totals."""

from stepscope.tables.base import STEP, Column, Table

GROUPS = Table(
    name="groups",
    doc="One row per process group that a rank belongs to.",
    key=("group",),
    columns=(
        Column("group", "string", "Key of the group, as in `collectives.group`.", nullable=False),
        Column("name", "string", "Readable name, e.g. `dp`, `tp`, `default_pg`."),
        Column("members", "list[int32]", "Global ranks in group order."),
    ),
)

POINT_TO_POINT = ("send", "recv", "send_recv")
"""Operations between two ranks."""

IN_PARTS = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
"""Operations in which each member gives or gets a part of a buffer."""

WHOLE, PART = "whole", "part"
"""Values of `collectives.size_of`."""

COLLECTIVES = Table(
    name="collectives",
    doc="One row per rank and collective or point-to-point call.",
    key=("collective",),
    columns=(
        Column("collective", "int64", "Number of the row, unique in its rank, in start order.", nullable=False),
        Column("group", "string", "Process group key; the same on every member."),
        Column(
            "sequence",
            "int64",
            "Position in its group on this rank, from 0; the same on all members of a call.",
            nullable=False,
        ),
        Column(
            "operation",
            "string",
            "`all_reduce`, `all_gather`, `reduce_scatter`, `broadcast`, `all_to_all`, `reduce`, `gather`, `scatter`, `barrier`, `send`, `recv`, `send_recv` or the name as recorded.",
            nullable=False,
        ),
        Column("name", "string", "Name as recorded.", nullable=False),
        Column("size_bytes", "int64", "Payload of this rank."),
        Column(
            "size_of",
            "string",
            "What `size_bytes` is of, in operations in which each member has a part: `whole` (the buffer that is gathered or scattered) or `part` (what one rank gives); null if unknown.",
        ),
        Column("element_type", "string", "Data type."),
        Column("group_size", "int32", "Ranks in the group."),
        Column("peer", "int32", "Global rank of the other side of a point-to-point call."),
        Column("start_ns", "int64", "When this rank entered the call, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration.", nullable=False),
        Column("wait_ns", "int64", "Wait time, as recorded."),
        Column("transmit_ns", "int64", "Transmit time, as recorded."),
        Column("synchronization_ns", "int64", "Wait before the first transfer, as recorded."),
        Column("on_device", "bool", "True for device communication, false for host (gloo).", nullable=False),
        Column("stream", "int32", "Device stream."),
        Column("correlation", "int64", "Id that the kernel shares with its launch."),
        Column("algorithm", "string", "Algorithm, e.g. `MESH-RING-NHR`: one for each stage."),
        Column("relayed", "bool", "Whether it took another way than the direct link."),
        Column("retried", "bool", "Whether it was tried again."),
        Column("micro_batch", "int32", "Micro-batch that it works on, from 0."),
        Column("model_chunk", "int32", "Virtual pipeline stage of its rank that it works for, from 0."),
        STEP,
    ),
)

COLLECTIVE_SPLITS = Table(
    name="collective_splits",
    doc="How calls (all-to-all) split their payload among the ranks of the group; only calls of which that is recorded.",
    key=("collective",),
    columns=(
        Column("collective", "int64", "Row of `collectives`.", nullable=False),
        Column("input_splits", "string", "Elements for each rank, in group order, as recorded."),
        Column("output_splits", "string", "Elements from each rank, in group order, as recorded."),
    ),
)

COMMUNICATION_TASKS = Table(
    name="communication_tasks",
    doc="One row per task of a communication call on the device: what it moved, from where to where.",
    key=("call", "plane", "start_ns"),
    columns=(
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration.", nullable=False),
        Column(
            "name", "string", "What it does: `Memcpy`, `Reduce_Inline`, `RDMASend`, `Notify_Wait`...", nullable=False
        ),
        Column("call", "string", "Call that it is a part of, as in `collectives.name`."),
        Column("device", "int32", "Device index."),
        Column("stream", "int32", "Device stream."),
        Column("plane", "int32", "Number of the plane of its group: planes work side by side."),
        Column("source", "int32", "Global rank at the near end."),
        Column("destination", "int32", "Global rank at the far end."),
        Column("transport", "string", "`SDMA`, `RDMA`, `LOCAL`."),
        Column("link", "string", "`HCCS`, `PCIE`, `ROCE`, `SIO`, `ON_CHIP`; null if nothing is moved."),
        Column("size_bytes", "int64", "Bytes moved; with the duration they give the bandwidth."),
        Column("element_type", "string", "Data type."),
    ),
)

LINKS = Table(
    name="links",
    doc="One row per link and communication call (or total) of a rank.",
    key=("step", "group", "operation", "source", "destination"),
    columns=(
        STEP,
        Column("group", "string", "Process group key."),
        Column("operation", "string", "As in `collectives`."),
        Column("name", "string", "Call; null for totals of all calls."),
        Column("source", "int32", "Global rank that sends.", nullable=False),
        Column("destination", "int32", "Global rank that receives.", nullable=False),
        Column("transport", "string", "`HCCS`, `RDMA`, `PCIE`, `SIO`, `LOCAL`..."),
        Column("size_bytes", "int64", "Bytes moved.", nullable=False),
        Column("duration_ns", "int64", "Time on the link, ns.", nullable=False),
        Column("wait_ns", "int64", "Part of it spent waiting for the other side, if recorded separately."),
    ),
)

TRANSPORTS = Table(
    name="transports",
    doc="One row per communication call and transport of a rank: what it moved and how long it took.",
    key=("step", "group", "name", "transport", "packet_bytes"),
    columns=(
        STEP,
        Column("group", "string", "Process group key."),
        Column("name", "string", "Call, as in `collectives.name`.", nullable=False),
        Column("transport", "string", "`SDMA`, `RDMA`, `HCCS`, `PCIE`, `SIO`.", nullable=False),
        Column("size_bytes", "int64", "Bytes moved."),
        Column("duration_ns", "int64", "Transit time, ns."),
        Column("packet_bytes", "int64", "Packet size of this row; null if the source has no distribution."),
        Column("packets", "int64", "Packets of that size."),
    ),
)

COMMUNICATION_TOTALS = Table(
    name="communication_totals",
    doc="Communication and wait time: one row per rank and step (name is null), and per call if recorded.",
    key=("step", "name"),
    columns=(
        STEP,
        Column("name", "string", "Call; null for the whole step."),
        Column("duration_ns", "int64", "Communication without waiting, ns.", nullable=False),
        Column("wait_ns", "int64", "Waiting, ns."),
    ),
)
