"""The `groups` table."""

from stepscope.tables.base import RANK, Column, Table

GROUPS = Table(
    name="groups",
    doc="One row per process group that a rank belongs to.",
    key=(
        "rank",
        "group",
    ),
    columns=(
        RANK,
        Column("group", "string", "Key of the group, the one that `collectives.group` uses.", nullable=False),
        Column("name", "string", "Name for people, e.g. `dp`, `tp`, `default_pg`."),
        Column("members", "list[int32]", "Global ranks in group order."),
    ),
)
