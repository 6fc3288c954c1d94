"""What the Ascend tool gets wrong in these results, with the right figures from the files that it read."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from their_tables import Figure


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        name: A short name.
        reason: Why ours is right, in one line.
        is_meant: Whether a figure can have it.
        right: The right figure, from the files.
    """

    name: str
    reason: str
    is_meant: Callable[[Figure], bool]
    right: Callable[[Path, Figure], float]


@cache
def _recorded(data: Path, rank: int) -> dict[tuple[str, str], dict[str, Any]]:
    """What the files of a rank say of each call, by step and name: times in ms, and moved MB by transport."""
    (output,) = data.glob(f"node0_43{rank:04d}_*/ASCEND_PROFILER_OUTPUT")
    if (output / "analysis.db").exists():
        return _of_database(output / "analysis.db")
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for step, kinds in json.loads((output / "communication.json").read_text()).items():
        for name, call in ((name, call) for kind in kinds.values() for name, call in kind.items()):
            if not name.startswith("Total"):
                times = call["Communication Time Info"]
                moved = {
                    band: (info["Transit Size(MB)"], info["Transit Time(ms)"])
                    for band, info in call["Communication Bandwidth Info"].items()
                }
                lengths = [times[f"{what} Time(ms)"] for what in ("Wait", "Synchronization", "Transit")]
                found[step, name.partition("@")[0]] = {"times": lengths, "moved": moved}
    return found


def _of_database(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as opened:
        found = {
            (step, name): {"times": lengths, "moved": {}}
            for step, name, *lengths in opened.execute(
                "SELECT step, hccl_op_name, wait_time, synchronization_time, transit_time FROM CommAnalyzerTime"
            )
            if not name.startswith("Total")
        }
        for step, name, band, size, length in opened.execute(
            "SELECT step, hccl_op_name, transport_type, transit_size, transit_time FROM CommAnalyzerBandwidth"
        ):
            if (step, name) in found:
                found[step, name]["moved"][band] = (size, length)
    return found


def _right_ratio(data: Path, figure: Figure) -> float:
    step, rank, name, _ = figure.about
    wait, synchronization, transit = _recorded(data, rank)[step, name]["times"]
    part = wait if figure.column == "wait_time_ratio" else synchronization
    return part / (part + transit) if part + transit else 0.0


def _right_sum(data: Path, figure: Figure) -> float:
    step, rank = figure.about
    band, what = figure.column.split(" ")[:2]
    place = 0 if what.startswith("size") else 1
    calls = _recorded(data, rank).items()
    return sum(call["moved"].get(band, (0, 0))[place] for (of_step, _), call in calls if of_step == f"step{step}")


FAULTS = (
    Fault(
        "ratios of calls are zero",
        "The database has 0 as the share of waiting of every call, although the call waits; ours is its waiting over "
        "waiting and transmission.",
        lambda figure: (
            figure.table == "ClusterCommunicationTime"
            and figure.column in ("wait_time_ratio", "synchronization_time_ratio")
            and figure.value == 0
        ),
        _right_ratio,
    ),
    Fault(
        "totals counted as calls",
        "Sizes and times of links by rank contain the row of all calls beside the calls, so both are doubled; ours "
        "counts each call once.",
        lambda figure: (
            figure.table == "slow link" and ("size" in figure.column or "time" in figure.column) and figure.value > 0
        ),
        _right_sum,
    ),
)
