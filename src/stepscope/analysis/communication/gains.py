"""What the job gains if slow links or groups are mended, as columns of answers about these."""

from __future__ import annotations

import polars as pl

GAINS: dict[str, pl.DataType] = {
    **dict.fromkeys(("exposed_ns", "saving_low_ns", "saving_high_ns", "alone_ns"), pl.Int64()),
    "error_ratio": pl.Float64(),
}


def gains(costs: pl.DataFrame | None, what: str) -> pl.DataFrame:
    """What replays say of each suspect.

    Args:
        costs: The analysis `suspect_costs`; None if there was no replay.
        what: Its column with the numbers of the suspects: `links` or `groups`.

    Returns:
        `suspect`, `number` (the lowest of those that are counted with it) and `GAINS`; no rows without a replay.
    """
    if costs is None:
        return pl.DataFrame(schema={"suspect": pl.Int32(), "number": pl.Int32(), **GAINS})
    found = costs.filter(pl.col(what).list.len() > 0).rename({"cost_ns": "exposed_ns"})
    return found.select(*GAINS, number=pl.col(what).list.min(), suspect=what).explode("suspect")
