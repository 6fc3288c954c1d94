"""The `flop_scopes` table."""

from stepscope.tables.base import RANK, Column, Table

FLOP_SCOPES = Table(
    name="flop_scopes",
    doc="One row per edge of the tree of scopes, where a source states floating point operations by scope.",
    key=(
        "rank",
        "parent",
        "scope",
    ),
    columns=(
        RANK,
        Column("parent", "string", "Enclosing scope.", nullable=False),
        Column("scope", "string", "Scope.", nullable=False),
        Column("flops", "float64", "Operations of it and all in it.", nullable=False),
    ),
)
