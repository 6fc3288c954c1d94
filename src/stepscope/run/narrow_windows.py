"""Device windows that cover little of the time that steps take on the host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.present import duration, plural
from stepscope.tables.issues import Issue

LEAST_SHARE = 0.5
"""Windows that cover less than this share of the steps' time on the host are reported as narrow, chosen by us. A window
lasts from the first device task of a step to that of the next, so the windows of several steps cover nearly all of
their time. The window of a single step lacks the host's time before its first and after its last task."""


def narrow_windows(steps: pl.LazyFrame) -> list[dict[str, int]]:
    """The ranks whose windows cover less than `LEAST_SHARE` of their steps, worst first.

    `host_ns` and `device_ns` are from the start of the first step to the end of the last.

    Args:
        steps: The table, with all steps of the ranks even if some are selected: a step may run on the device while the
            host is in the next one.
    """
    of_device = (pl.col("window") == "device") & pl.col("recorded").fill_null(True)
    spans = (
        steps.filter(of_device)
        .group_by("rank")
        .agg(
            steps=pl.len(),
            host_ns=pl.col("end_ns").max() - pl.col("start_ns").min(),
            device_ns=pl.col("window_end_ns").max() - pl.col("window_start_ns").min(),
        )
    )
    share = pl.col("device_ns") / pl.col("host_ns")
    return spans.filter((pl.col("host_ns") > 0) & (share < LEAST_SHARE)).sort(share, "rank").collect().to_dicts()


def narrow_window_issues(narrow: Sequence[dict[str, int]], path: Path) -> list[Issue]:
    """A warning about the rank whose windows cover the least of its steps, if that is too little.

    Args:
        narrow: See `narrow_windows`.
        path: The path of the run.
    """
    if not narrow:
        return []
    worst, more = narrow[0], len(narrow) - 1
    what = "step takes" if worst["steps"] == 1 else f"{worst['steps']} steps take"
    rank, host, device = worst["rank"], duration(worst["host_ns"]), duration(worst["device_ns"])
    problem = (
        f"rank {rank}: its {what} {host} on the host, but the recorded work on its device spans only {device} of "
        "that; times and shares are of this span"
    )
    problem += f" ({plural(more, 'more rank')} alike)" if more else ""
    remedy = "Call the profiler's step() where each step ends, and check that it recorded the device all the time"
    return [Issue("warning", str(path), problem, remedy, rank=rank)]


def narrow_step_ns(narrow: Sequence[dict[str, int]], ranks: int) -> float | None:
    """The time of a step on the host, if the windows of most ranks cover little of it.

    Args:
        narrow: See `narrow_windows`.
        ranks: How many ranks there are.
    """
    if 2 * len(narrow) <= ranks:
        return None
    return sum(one["host_ns"] for one in narrow) / sum(one["steps"] for one in narrow)
