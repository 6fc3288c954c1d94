"""What is said about a run as a whole, as rows of the `issues` table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import polars as pl

from stepscope.sources.base import Severity
from stepscope.tables import ISSUES


@dataclass(frozen=True)
class Remark:
    """One issue that no reader could know of."""

    severity: Severity
    file: str
    problem: str
    remedy: str
    rank: int | None = None


def issue_rows(remarks: Iterable[Remark]) -> pl.DataFrame:
    """The remarks as rows of `issues`."""
    return ISSUES.conform(
        pl.DataFrame(
            [asdict(remark) for remark in remarks],
            schema={name: ISSUES.schema[name] for name in ("severity", "file", "problem", "remedy", "rank")},
        ),
        with_rank=True,
    )
