"""Communication calls with what the table of one rank lacks: how long each waited for others, and what it ran over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.export.rank_export import RankExport
from stepscope.run import Run, open_runs

WORDS = {
    "all_reduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
    "all_to_all": "AlltoAll",
    "reduce": "Reduce",
    "gather": "Gather",
    "scatter": "Scatter",
    "barrier": "Barrier",
    "send": "Send",
    "recv": "Receive",
}
"""Our word for an operation to that of files for other tools; other words stay as recorded."""

_log = logging.getLogger("stepscope")


def arrivals_of(recordings: Sequence[Path]) -> Callable[[Path], pl.DataFrame | None]:
    """A function that gives the rows of `arrival` of a recording; None if no other rank of its job can be read.

    Args:
        recordings: The recordings that are exported together, of one job or several, which are opened when needed.
    """

    @cache
    def opened() -> list[Run]:
        try:
            return open_runs(recordings) if len(recordings) > 1 else []
        except (OSError, StepscopeError) as reason:
            _log.warning("It is unknown how long ranks waited for each other: %s", reason)
            return []

    def arrivals(recording: Path) -> pl.DataFrame | None:
        place = recording.resolve()
        for run in opened():
            for rank in run.ranks:
                if rank.path.resolve() == place and len(run.ranks) > 1 and run.has("collectives"):
                    return run.analyse("arrival").filter(pl.col("rank") == rank.rank)
        return None

    return arrivals


def with_waits(export: RankExport, calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with `wait_ns` filled in from `arrival`: the time until the last member entered the call.

    For calls of which not all members were recorded or matched, `wait_ns` stays as the source states it, or null.

    Args:
        export: The rank, with the arrivals of its peers.
        calls: Rows of `collectives`; their order is kept.
    """
    arrivals = export.arrivals() if calls.height else None
    if arrivals is None:
        return calls
    waits = arrivals.select("collective", "wait_ns")
    return calls.drop("wait_ns").join(waits, on="collective", how="left", maintain_order="left").select(calls.columns)


def transport(export: RankExport) -> pl.Expr:
    """What each call ran over, as far as it is recorded: the name of the library. Links and cables are not recorded."""
    backend = str(export.facts.get("backend") or "")  # `gloo`, or one for each device: `cpu:gloo,cuda:nccl`
    names = dict(part.partition(":")[::2] for part in backend.lower().split(",") if ":" in part)
    host = names.get("cpu") or backend
    device = next((name for kind, name in names.items() if kind != "cpu"), None) or backend
    name = pl.when("on_device").then(pl.lit(device or "unknown")).otherwise(pl.lit(host or "unknown"))
    return name.str.to_uppercase()
