"""Files of a recording that viewers of timelines open."""

from stepscope.tables.base import Column, Table

TIMELINES = Table(
    name="timelines",
    doc="One row per trace file that viewers of timelines open (Perfetto, chrome://tracing), so that a moment can be "
    "found in them: they show time since the first event of the file.",
    key=("file",),
    columns=(
        Column("file", "string", "Path of the file when it was read.", nullable=False),
        Column(
            "zero_ns",
            "int64",
            "When its first event begins, on the clock of the other tables: what viewers show as 0.",
            nullable=False,
            moment=True,
        ),
    ),
)
