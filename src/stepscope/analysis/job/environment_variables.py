"""Which environment variables that matter for speed each rank's process had, as recorded."""

from __future__ import annotations

import json
from collections import defaultdict

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables.base import Column, schema_of

COLUMNS = columns(
    Column("name", "string", "Name of the variable.", title="variable"),
    Column("value", "string", "Its value; null if it is not set."),
    Column("ranks", "string", "Ranks with this value."),
    Column("count", "int32", "Number of these ranks.", title="of ranks", importance=50),
    Column("device_kind", "string", "Kind of their devices; null if unknown.", importance=30),
    Column("differs", "bool", "True if the variable has other values on other ranks."),
    nulls="value device_kind",
)

NO_ENVIRONMENT = "the recording does not hold the environment variables of the processes"


@analysis("job", COLUMNS)
def environment_variables(ranks: pl.LazyFrame) -> pl.DataFrame:
    """List the recorded environment variables with their values: one row per variable, value and kind of device.

    A variable that a recording names without a value is not set; one that it does not name is unknown, and has no row.

    Raises:
        Unavailable: If no rank has any.
    """
    rows = ranks.select("rank", "environment", "device_kind").unique().sort("rank", "device_kind", "environment")
    found: dict[tuple[str, str | None, str | None], set[int]] = defaultdict(set)
    for rank, text, device in rows.collect().iter_rows():
        for name, value in _variables(text).items():
            found[name, value, device].add(rank)
    if not found:
        raise Unavailable(NO_ENVIRONMENT)
    values = [
        {"name": name, "value": value, "ranks": rank_list(sorted(have)), "count": len(have), "device_kind": device}
        for (name, value, device), have in found.items()
    ]
    differs = pl.col("value").n_unique().over("name") > 1
    listed = pl.DataFrame(values, schema={name: kind for name, kind in schema_of(COLUMNS).items() if name != "differs"})
    return (
        listed.with_columns(differs=differs)
        .select(names(COLUMNS))
        .sort("name", -pl.col("count"), "value", "device_kind", nulls_last=True)
    )


def _variables(text: str | None) -> dict[str, str | None]:
    """The variables of one rank; None if not set."""
    try:
        held = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(held, dict):
        return {}
    texts = {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in held.items()}
    return {name: value.strip() or None for name, value in texts.items() if value != "null"}
