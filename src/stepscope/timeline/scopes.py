"""The scopes in the names of operators as bars, a level after the other."""

from __future__ import annotations

import polars as pl

SCOPES = {"level": pl.Int64, "name": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
MAX_LEVELS = 64
_PATH = ("step", "path")


def scopes(operators: pl.DataFrame) -> pl.DataFrame:
    """The scopes in the full names of operators, as bars.

    A bar reaches from the first to the last operator of a scope in a step. It ends before that where an operator of
    another scope begins while none of its own runs. So bars of one level overlap where operators of two scopes run at
    the same time, on several streams or threads; and one of a deeper level lies within one of each level above it.

    Args:
        operators: `full_name`, `start_ns`, `duration_ns` and, if steps are known, `step` (null if it has none).

    Returns:
        `level` (0 is outermost), `name`, `start_ns`, `end_ns`, by level and start.

    Examples:
        >>> names = ["Default/a/Add", "Default/b/Mul", "Default/b/Mul", "Default/a/Add"]
        >>> rows = {"full_name": names, "start_ns": [0, 5, 12, 20], "duration_ns": [10, 5, 5, 2], "step": [1] * 4}
        >>> scopes(pl.DataFrame(rows)).rows()
        [(0, 'Default', 0, 22), (1, 'a', 0, 10), (1, 'b', 5, 17), (1, 'a', 20, 22)]
    """
    step = pl.col("step") if "step" in operators.columns else pl.lit(None, pl.Int32)
    rows = operators.sort("start_ns", maintain_order=True).select(
        "start_ns",
        step.alias("step"),
        name=pl.col("full_name").rank("dense") - 1,  # texts are cut once a name, not once an operator
        end_ns=pl.col("start_ns") + pl.col("duration_ns"),
    )
    names = operators["full_name"].unique().sort().to_frame()
    parts = names.select(pl.col("full_name").str.split("/").list.slice(0, pl.col("full_name").str.count_matches("/")))
    depth = min(int(parts["full_name"].list.len().max() or 0), MAX_LEVELS)
    bars = [_level(rows, parts["full_name"], level) for level in range(depth)]
    return pl.concat([pl.DataFrame(schema=SCOPES), *bars])


def _level(rows: pl.DataFrame, parts: pl.Series, level: int) -> pl.DataFrame:
    """The bars of a level; `parts` are the scopes of each name."""
    names = parts.to_frame("parts").with_row_index("name").filter(pl.col("parts").list.len() > level)
    paths = names.select(
        pl.col("name").cast(rows["name"].dtype),
        path=pl.col("parts").list.head(level + 1).list.join("/").rank("dense"),
        scope=pl.col("parts").list.get(level),
    )
    own = rows.join(paths, on="name", how="inner", maintain_order="left")
    # What ended at once has begun before it ended.
    ran = pl.max_horizontal("end_ns", pl.col("start_ns") + 1)
    reach = ran.cum_max().over(_PATH).shift(1).over(_PATH)
    placed = own.with_columns(reach=reach)
    begun = rows["start_ns"].search_sorted(placed["start_ns"], side="left").cast(pl.Int64)
    begun_by_then = rows["start_ns"].search_sorted(placed["reach"].fill_null(0), side="left").cast(pl.Int64)
    is_new = placed["reach"].is_null() | (begun > begun_by_then)
    return (
        placed.with_columns(bar=is_new.cast(pl.Int64))
        .with_columns(bar=pl.col("bar").cum_sum().over(_PATH))
        .group_by(*_PATH, "bar", maintain_order=True)
        .agg(
            pl.lit(level, pl.Int64).alias("level"),
            pl.col("scope").first().alias("name"),
            pl.col("start_ns").min(),
            pl.col("end_ns").max(),
        )
        .select(list(SCOPES))
    )
