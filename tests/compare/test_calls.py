"""Operators matched through the tree of calls, calls of the host, communication and memory of two sides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stepscope.compare import compare
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import ALLOCATIONS, COLLECTIVES, KERNELS, OPERATORS, SLICES, STEPS
from tests.analysis.jobs import MS

STEP = 100 * MS
Call = tuple[str, float, int | None, float]
"""Name, length on the host in ms, number of the call around it, length in ms of the kernel that it launches."""


def called(calls: Sequence[Call], steps: int = 5, runtime: float = 1.0, kernels: bool = True) -> Run:
    """A rank that makes the same calls in each step, one after the other unless one is within another."""
    slices, operators, work = [], [], []
    for step in range(1, steps + 1):
        first, at = len(slices), step * STEP
        for name, ms, around, device in calls:
            start = slices[first + around]["start_ns"] if around is not None else at
            length = round(ms * MS) + 1000 * step
            parent = None if around is None else first + around
            row = {"slice": len(slices), "start_ns": start, "duration_ns": length, "name": name, "step": step}
            slices.append({**row, "category": "operator", "parent": parent, "thread": "1"})
            operators.append({**row, "external_id": len(slices), "thread": "1"})
            if device and kernels:
                work.append({"start_ns": start, "duration_ns": round(device * MS) + 1000 * step, "kind": "compute",
                             "name": f"k{name}", "step": step, "external_id": len(slices)})  # fmt: skip
            at = max(at, start + length)
        slices.append({"slice": len(slices), "start_ns": at, "duration_ns": round(runtime * MS), "name": "Node@launch",
                       "step": step, "category": "runtime", "parent": None, "thread": "1"})  # fmt: skip
    tables = {
        "slices": SLICES.frame(**{name: [row[name] for row in slices] for name in slices[0]}),
        "operators": OPERATORS.frame(**{name: [row[name] for row in operators] for name in operators[0]}),
        "steps": STEPS.frame(
            step=list(range(1, steps + 1)),
            start_ns=[step * STEP for step in range(1, steps + 1)],
            end_ns=[(step + 1) * STEP for step in range(1, steps + 1)],
            window_start_ns=[step * STEP for step in range(1, steps + 1)],
            window_end_ns=[(step + 1) * STEP for step in range(1, steps + 1)],
            window=["host"] * steps,
        ),
    }
    if work:
        columns = {name: [row[name] for row in work] for name in work[0]}
        tables["kernels"] = KERNELS.frame(kernel=list(range(len(work))), **columns)
    return Run.from_frames({0: tables})


LINEAR: list[Call] = [("aten::linear", 4, None, 0), ("aten::addmm", 3, 0, 10), ("MmBackward0", 2, None, 8)]


def test_operators_are_matched_by_their_place_and_kernels_they_launch() -> None:
    slower: list[Call] = [*LINEAR[:2], ("MmBackward0", 2, None, 16), ("aten::relu", 1, None, 3)]
    found = compare(called(LINEAR), called(slower)).analyse("operator_differences")

    rows = {row["path"]: row for row in found.to_dicts()}
    assert set(found["measured"]) == {"device"}
    assert rows["aten::linear > aten::addmm"]["verdict"] == "same"
    assert (rows["MmBackward0"]["verdict"], rows["MmBackward0"]["backward"]) == ("more", True)
    assert rows["MmBackward0"]["difference_ns"] == 8 * MS
    assert rows["aten::relu"]["verdict"] == "added"


def test_without_device_work_operators_are_compared_by_their_own_time() -> None:
    slower: list[Call] = [("aten::linear", 9, None, 0), *LINEAR[1:]]
    found = compare(called(LINEAR, kernels=False), called(slower, kernels=False)).analyse("operator_differences")

    rows = {row["path"]: row for row in found.to_dicts()}
    assert set(found["measured"]) == {"host"}
    assert rows["aten::linear"]["difference_ns"] == 5 * MS
    assert rows["aten::linear > aten::addmm"]["difference_ns"] == 0
    by_name = compare(called(LINEAR), called(slower)).analyse("operator_differences", by="name")
    assert "aten::addmm" in set(by_name["path"])


def test_calls_of_the_host_are_compared_in_total_and_without_those_within() -> None:
    slower: list[Call] = [("aten::linear", 9, None, 0), *LINEAR[1:]]
    found = compare(called(LINEAR), called(slower, runtime=1.5)).analyse("api_differences")

    rows = {(row["layer"], row["name"]): row for row in found.to_dicts()}
    linear = rows["framework", "aten::linear"]
    assert (linear["difference_ns"], linear["verdict"]) == (5 * MS, "more")
    assert linear["new_self_ns"] - linear["base_self_ns"] == 5 * MS
    assert linear["base_self_ns"] == 1 * MS
    assert rows["Node", "launch"]["change_factor"] == 1.5
    assert rows["Node", "launch"]["base_calls"] == 1


def communicating(size: int, transfer: float, group: str) -> Run:
    """Two ranks, the second of which comes 2 ms late to an all-reduce in each step."""
    frames = {}
    for rank in range(2):
        starts = [step * STEP + rank * 2 * MS for step in range(1, 6)]
        ends = [step * STEP + 2 * MS + round(transfer * MS) + 1000 * step for step in range(1, 6)]
        frames[rank] = {
            "collectives": COLLECTIVES.frame(
                start_ns=starts, duration_ns=[end - start for start, end in zip(starts, ends, strict=True)],
                collective=list(range(5)), group=[group] * 5, sequence=list(range(5)),
                operation=["all_reduce"] * 5, name=["x"] * 5,
                size_bytes=[size] * 5, on_device=[True] * 5, step=list(range(1, 6)),
            ),
            "kernels": KERNELS.frame(
                kernel=list(range(5)), start_ns=[start - MS for start in starts], duration_ns=[MS] * 5,
                kind=["compute"] * 5, name=["mm"] * 5, step=list(range(1, 6)),
            ),
            "steps": STEPS.frame(
                step=list(range(1, 6)), start_ns=[start - MS for start in starts], end_ns=ends,
                window_start_ns=[start - MS for start in starts], window_end_ns=ends, window=["device"] * 5,
            ),
        }  # fmt: skip
    return Run.from_frames(frames)


def test_communication_waits_and_transmits_at_a_rate() -> None:
    base, new = communicating(10_000_000, 4, "dp"), communicating(10_000_000, 8, "dp")
    row = compare(base, new).analyse("communication_differences").row(0, named=True)

    assert (row["operation"], row["group"], row["verdict"]) == ("all_reduce", "dp", "more")
    assert row["base_wait_ns"] == row["new_wait_ns"] == 1 * MS
    assert (row["base_transmit_ns"], row["new_transmit_ns"]) == (4 * MS + 3000, 8 * MS + 3000)
    assert row["base_bandwidth_bytes_per_s"] == pytest.approx(2.5e9, rel=0.01)
    assert row["new_bandwidth_bytes_per_s"] == pytest.approx(1.25e9, rel=0.01)


def test_groups_and_sizes_that_both_sides_do_not_have_are_one() -> None:
    base, new = communicating(10_000_000, 4, "a1"), communicating(10_500_000, 4, "b2")
    found = compare(base, new).analyse("communication_differences")

    assert found.select("group", "size_bytes", "verdict").rows() == [(None, 10_250_000, "same")]


def test_memory_that_operators_allocate_is_compared_by_name() -> None:
    sides = []
    for size in (1000, 3000):
        run = called(LINEAR)
        tables = {name: run.table(name).collect().drop("rank") for name in ("steps", "kernels")}
        blocks = ALLOCATIONS.frame(name=["aten::mm"] * 5, size_bytes=[size] * 5, allocation_ns=[1, 2, 3, 4, 5])
        sides.append(Run.from_frames({0: {**tables, "allocations": blocks}}))
    row = compare(*sides).analyse("memory_differences").row(0, named=True)

    assert (row["figure"], row["name"], row["difference_bytes"]) == ("allocated in a step", "aten::mm", 2000)


def test_what_a_side_has_not_recorded_is_not_compared() -> None:
    pair = compare(called(LINEAR, kernels=False), called(LINEAR))

    with pytest.raises(Unavailable, match="communication"):
        pair.analyse("communication_differences")
    with pytest.raises(Unavailable, match="memory"):
        pair.analyse("memory_differences")
