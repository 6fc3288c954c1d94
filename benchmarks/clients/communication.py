"""The requests of MindInsight's page of cluster communication, and what their answers must say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from facts import Facts
from mindinsight_pages import PAGE_ROWS, STEPS, Check, Page
from server import RUN

TOLERANCE_MS = 1e-3
"""Costs are given to the nanosecond, and sums of hundreds of operators are compared."""
TOLERANCE_KB = 1e-3


def communication_pages(profiler: Path, facts: dict[int, Facts]) -> Iterator[Page]:
    """All requests of the page, if each rank has its file: the mean step, then each step.

    Args:
        profiler: The `profiler` directory.
        facts: What our tables say, by rank.
    """
    files = [(profiler / f"hccl_raw_{rank}.csv").exists() for rank in facts]
    if not any(files):
        return
    names = {"train_id": RUN}
    # Without a file of each rank the page shows an error, which the check of the first answer then tells.
    yield Page("profile/communication-data", names, check=_all_ranks(sorted(facts)))
    told = {rank: _waiting_is_told(profiler, rank) for rank in facts}
    for number in range(min(max(len(one.steps_ns) for one in facts.values()), STEPS) + 1):
        condition = {"filter_condition": {"step_id": number}}
        rows = {**condition, "group_condition": {"limit": PAGE_ROWS, "offset": 0}}
        yield Page("profile/search-cluster-communication", names, condition, _costs(facts, told, number))
        yield Page("profile/search-cluster-link", names, rows, _links(facts, number))


def _waiting_is_told(profiler: Path, rank: int) -> bool:
    """Whether the waiting of all calls is told: only an analysis of all ranks together knows it."""
    left_out = json.loads((profiler / f"exported-{rank}.json").read_bytes())["left_out"]
    return f"hccl_raw_{rank}.csv (wait_cost)" not in left_out


def _all_ranks(ranks: list[int]) -> Check:
    def check(answer: Any) -> str | None:
        found = sorted(int(name.removeprefix("device")) for name in answer)
        return None if found == ranks else f"ranks: {found}, expected {ranks}"

    return check


def _costs(facts: dict[int, Facts], told: dict[int, bool], number: int) -> Check:
    """Cost and waiting of each rank in a step (0 for the mean), and the costs of its operators together."""

    def check(answer: Any) -> str | None:
        rows = {int(row["rank_id"]): row["communication_info"] for row in answer["communication"]}
        if sorted(rows) != sorted(facts):
            return f"ranks: {sorted(rows)}, expected {sorted(facts)}"
        for rank, (cost, wait, _, operators) in rows.items():
            calls, waits = (_of(values, number) / 1e6 for values in (facts[rank].calls_ns, facts[rank].waits_ns))
            expected = {"communication and waiting": (cost + wait, calls)}
            if told[rank]:
                expected["waiting"] = (wait, waits)
            if number:  # the mean of an operator is that of the steps that have it
                expected["operators"] = (sum(one[1] + one[2] for one in operators.values()), calls)
            for what, (shown, ours) in expected.items():
                if abs(shown - ours) > TOLERANCE_MS:
                    return f"rank {rank}: {what} {shown} ms, expected {ours} ms"
        return None

    return check


def _links(facts: dict[int, Facts], number: int) -> Check:
    """What went over all links together."""

    def check(answer: Any) -> str | None:
        shown = sum(row[3] for row in answer["cluster_link_info"])
        ours = sum(_of(one.received_bytes, number) for one in facts.values()) / 1000
        return None if abs(shown - ours) <= TOLERANCE_KB else f"{shown} KB over all links, expected {ours} KB"

    return check


def _of(values: tuple[int, ...], number: int) -> float:
    """The value of a step counted from 1, or the mean of all; 0 without any."""
    if not values:
        return 0.0
    return values[number - 1] if number else sum(values) / len(values)
