"""The `operator_totals` table."""

from stepscope.tables.base import RANK, STEP, Column, Table

OPERATOR_TOTALS = Table(
    name="operator_totals",
    doc="Totals of operators, kernels or API calls, where a source holds only totals.",
    key=(
        "rank",
        "level",
        "name",
        "core",
    ),
    columns=(
        RANK,
        Column(
            "level",
            "string",
            "`kernel`, or the layer of the API: `acl`, `node`, `model`, `runtime`, `communication`.",
            nullable=False,
        ),
        Column("name", "string", "Operator type or API name.", nullable=False),
        Column("core", "string", "Unit that ran it."),
        STEP,
        Column("count", "int64", "Calls.", nullable=False),
        Column("total_ns", "int64", "Sum, ns.", nullable=False),
        Column("min_ns", "int64", "Shortest."),
        Column("max_ns", "int64", "Longest."),
    ),
)
