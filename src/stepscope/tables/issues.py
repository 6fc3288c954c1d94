"""The `issues` table."""

from stepscope.tables.base import Column, Table

ISSUES = Table(
    name="issues",
    doc="What an import skipped or had to guess, where and why.",
    key=(),
    columns=(
        Column("rank", "int32", "Global rank, where known."),
        Column(
            "severity",
            "string",
            "`error` (data lost), `warning` (data guessed or doubtful), `note`.",
            nullable=False,
        ),
        Column("file", "string", "File or directory.", nullable=False),
        Column("place", "string", "Byte, line, table or key in the file."),
        Column("problem", "string", "What is wrong.", nullable=False),
        Column("remedy", "string", "What to do about it.", nullable=False),
        Column("lost", "int64", "Rows or events lost, where counted."),
    ),
)
