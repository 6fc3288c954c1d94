"""Calls in dumps of a flight recorder: what each rank did last in each process group."""

from stepscope.tables.base import Column, Table

RECORDED_CALLS = Table(
    name="recorded_calls",
    doc="One row per collective or point-to-point call in a dump of a flight recorder: a ring that keeps the last calls.",
    key=("record",),
    columns=(
        Column(
            "record",
            "int64",
            "Number of the call among all that the rank made, from 0; lower numbers than the first were overwritten.",
            nullable=False,
        ),
        Column("group", "string", "Process group: name and members; the same on every member.", nullable=False),
        Column("group_name", "string", "Description of the group, else its number, as recorded."),
        Column("sequence", "int64", "Position among the group's calls of its kind; the same on all members."),
        Column("part", "int32", "Position among calls with the same sequence number (coalesced calls), from 0."),
        Column("is_point_to_point", "bool", "True for `send` and `recv`, and for the batch that they are sent in."),
        Column("operation", "string", "As in `collectives`; `coalesced` for a batch of calls.", nullable=False),
        Column("name", "string", "Name as recorded.", nullable=False),
        Column("backend", "string", "Library that made the call, e.g. `nccl`, `gloo`; null if not recorded."),
        Column("peer", "int32", "The other side of a point-to-point call: global rank, if members are recorded."),
        Column("input_shapes", "string", "Shapes of the inputs, JSON."),
        Column("output_shapes", "string", "Shapes of the outputs, JSON."),
        Column("input_elements", "int64", "Elements of all inputs."),
        Column("output_elements", "int64", "Elements of all outputs."),
        Column("element_type", "string", "Data type of the inputs; several are separated by commas."),
        Column("size_bytes", "int64", "Bytes of all inputs; null if a type's size is unknown."),
        Column("state", "string", "`scheduled`, `started` or `completed`, as recorded."),
        Column(
            "is_done", "bool", "Whether the rank has left the call; of a part, whether its batch has.", nullable=False
        ),
        Column("is_retired", "bool", "Whether the framework no longer watches it, as recorded."),
        Column("created_ns", "int64", "When the rank made the call, ns since the epoch."),
        Column("started_ns", "int64", "When it was seen to have started on the device."),
        Column("completed_ns", "int64", "When it was seen to have completed."),
        Column("timeout_ns", "int64", "Time after which the framework gives it up."),
        Column("thread", "string", "Thread that made the call."),
        Column("stack", "int64", "Its row in `stacks`."),
    ),
)
