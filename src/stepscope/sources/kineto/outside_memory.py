"""Memory events of blocks that no allocator counts, such as the shared memory of loader workers.

PyTorch reports such a block with a total of 0 in use, as if its allocator held nothing else.
"""

from __future__ import annotations

import polars as pl

from stepscope.tables.memory import SHARED_MEMORY

_KEY = ["device", "address"]
_LIVE = {"device": pl.Int32, "address": pl.Int64, "change_bytes": pl.Int64}


class Outside:
    """Tells such events apart, part by part of a recording, and sums their blocks up themselves."""

    def __init__(self) -> None:
        self._live = pl.DataFrame(schema=_LIVE)
        """Blocks outside of the allocators that are not released yet."""
        self._totals: dict[int | None, int] = {}
        """What each device's allocator had in use at last."""

    def told_apart(self, events: pl.DataFrame) -> pl.DataFrame:
        """The events with `component`; of those outside, what is in use is the sum of the blocks known to be.

        Args:
            events: `device`, `address`, `change_bytes`, `allocated_bytes`, `reserved_bytes`, in order of time.
        """
        change, total = pl.col("change_bytes"), pl.col("allocated_bytes")
        rows = events.with_row_index("event").with_columns(
            # after an allocation no less than that can be in use
            made=((change > 0) & (total < change)).fill_null(False),
            emptied=((change < 0) & (total == 0)).fill_null(False),
        )
        held = int(self._live["change_bytes"].sum())
        rows = self._with_released(rows)
        outside = pl.col("made") | pl.col("released") | (pl.col("emptied") & self._misfits())
        rows = rows.with_columns(component=pl.when(outside).then(pl.lit(SHARED_MEMORY)))
        self._remember(rows.filter(pl.col("component").is_null()))
        known = pl.when(pl.col("made") | pl.col("released")).then(change).otherwise(0)
        return (
            rows.sort("event")
            .with_columns(held=known.cum_sum() + held)
            .with_columns(
                allocated_bytes=pl.when(outside).then("held").otherwise("allocated_bytes"),
                reserved_bytes=pl.when(~outside).then("reserved_bytes"),
            )
            .select(*events.columns, "component")
        )

    def _with_released(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Add `released`: whether an event releases a known block outside."""
        whole = pl.concat([self._live.with_columns(made=pl.lit(True)), rows], how="diagonal")
        before = pl.col("address").is_not_null() & pl.col("made").shift(1).over(_KEY).fill_null(False)
        whole = whole.with_columns(released=before & (pl.col("change_bytes") < 0))
        is_last = pl.int_range(pl.len()).over(_KEY) == pl.len().over(_KEY) - 1
        self._live = whole.filter(is_last & pl.col("made")).drop_nulls("address").select(*_LIVE)
        return whole.filter(pl.col("event").is_not_null())

    def _misfits(self) -> pl.Expr:
        """Whether a total of 0 follows neither from the total before nor from the one after."""
        change = pl.col("change_bytes")
        sure = pl.when(~pl.col("made") & ~pl.col("released") & ~pl.col("emptied")).then("allocated_bytes")
        known = [pl.when(pl.col("device").eq_missing(pl.lit(d, pl.Int32))).then(t) for d, t in self._totals.items()]
        before = pl.coalesce(sure.forward_fill().shift(1).over("device"), *known)
        after = (sure - change).backward_fill().over("device")
        return pl.coalesce(before + change, after).fill_null(0) != 0

    def _remember(self, rows: pl.DataFrame) -> None:
        """Keep the last total of each device."""
        known = rows.drop_nulls("allocated_bytes").group_by("device").agg(pl.col("allocated_bytes").last())
        self._totals |= dict(known.iter_rows())
