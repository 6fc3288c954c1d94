"""Ranges of light tracing as they are stored, whether analyses can use them or not."""

from stepscope.tables.base import STEP, Column, Table

LIGHT_RANGES = Table(
    name="light_ranges",
    doc="One row per stored range of light tracing, and one more for each that was timed on the device as well; also those without an end, outside of steps, and with names of the user's own.",
    key=("process", "range", "on_device"),
    columns=(
        Column(
            "range", "int64", "Number of the range among those of its process, by its first marker.", nullable=False
        ),
        Column("on_device", "bool", "Whether this is the range on the device, else that on the host.", nullable=False),
        Column("start_ns", "int64", "Start, ns since the epoch.", nullable=False),
        Column("duration_ns", "int64", "Duration; null if no end was recorded: it still runs, or its process ended."),
        Column(
            "kind",
            "string",
            "What was switched on for it; `other` for names that light tracing does not use.",
            nullable=False,
            values=("step", "forward", "dataloader", "checkpoint", "communication", "other"),
        ),
        Column(
            "name", "string", "Name as stored; of communication, the operation as in `collectives`.", nullable=False
        ),
        Column("domain", "string", "Domain as stored.", nullable=False),
        STEP,
        Column("process", "string", "Process that stored it.", nullable=False),
        Column("thread", "string", "Host thread.", nullable=False),
        Column("device", "int32", "Device on which it was timed."),
        Column("stream", "int64", "Its stream."),
        Column(
            "delay_ns",
            "int64",
            "From its start on the host to that on the device, in both rows; null if it was not timed there.",
        ),
        Column("group", "string", "Process group of a call, as in `groups`."),
        Column("group_size", "int32", "Ranks of the group, as stored with the call."),
        Column("size_bytes", "int64", "Payload of the call."),
        Column("element_type", "string", "Data type of the payload."),
        Column("peer", "int32", "Other rank of a point-to-point call."),
        Column("is_async", "bool", "Whether the call only launched the communication."),
    ),
)
