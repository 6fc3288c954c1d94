"""An analysis that needs one of another module, which it names but does not import."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis


@analysis("rank", columns("rank process"))
def asked_before(asked_in: pl.DataFrame) -> pl.DataFrame:
    """The process that answered."""
    return asked_in
