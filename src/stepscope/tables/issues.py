"""The `issues` table and the `Issue` behind each row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stepscope.tables.base import Column, Table

if TYPE_CHECKING:
    import polars as pl

Severity = Literal["error", "warning", "note"]

OTHER_RUNS = "other runs"
"""Place of the issue that a path holds other runs as well; surfaces list these themselves."""

ISSUES = Table(
    name="issues",
    doc="One row per problem: what was skipped, guessed or is doubtful, with place and remedy.",
    columns=(
        Column("rank", "int32", "Global rank, if known."),
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
        Column("lost", "int64", "Rows or events lost, if counted."),
    ),
)


@dataclass(frozen=True)
class Issue:
    """Something that was not read, was guessed, or is doubtful; the same from the reader to the surface.

    Args:
        severity: `error` if data is missing because of it, `warning` if data is guessed or doubtful, otherwise `note`.
        file: File or directory, as `paths.shown` writes it.
        problem: What is wrong with it.
        remedy: What to do about it.
        place: Byte, line, table or key in the file.
        lost: Rows or events lost, if counted.
        rank: Global rank, if known.
        inputs: Number of inputs that have it.
        trace: The Python traceback of an internal error, for `--debug`.
    """

    severity: Severity
    file: str
    problem: str
    remedy: str
    place: str | None = None
    lost: int | None = None
    rank: int | None = None
    inputs: int = 1
    trace: str | None = None


def issue_rows(issues: Iterable[Issue], *, with_rank: bool = True) -> pl.DataFrame:
    """The issues as rows of `ISSUES`."""
    rows = list(issues)
    names = [name for name in ISSUES.schema if with_rank or name != "rank"]
    return ISSUES.frame(**{name: [getattr(one, name) for one in rows] for name in names})
