"""Operators matched through the tree of calls, calls of the host, communication and memory of two sides."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from stepscope.compare import compare
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import ALLOCATIONS, COLLECTIVES, KERNELS, MEMORY_CURVE, OPERATORS, SLICES, STEPS
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


def test_by_name_what_one_side_lacks_is_not_matched() -> None:
    slower: list[Call] = [*LINEAR, ("aten::relu", 1, None, 3)]
    found = compare(called(LINEAR), called(slower)).analyse("operator_differences", by="name")

    matched = {row["path"]: (row["matched"], row["verdict"]) for row in found.to_dicts()}
    assert matched["aten::relu"] == (None, "added")
    assert matched["aten::addmm"] == ("path", "same")


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


def test_operators_below_a_new_wrapper_are_matched_and_it_is_added() -> None:
    wrapped: list[Call] = [
        ("Region: 0/0", 6, None, 0), ("aten::linear", 4, 0, 0), ("aten::addmm", 3, 1, 14), LINEAR[2]
    ]  # fmt: skip
    found = compare(called(LINEAR), called(wrapped)).analyse("operator_differences")

    rows = {row["path"]: row for row in found.to_dicts()}
    addmm = rows["aten::linear > aten::addmm"]
    assert (addmm["matched"], addmm["verdict"], addmm["difference_ns"]) == ("inner", "more", 4 * MS)
    assert addmm["new_path"] == "Region: 0/0 > aten::linear > aten::addmm"
    assert rows["MmBackward0"]["matched"] == "path"
    assert set(found["verdict"]) == {"more", "same"}


def waiting(wait: float, work: float) -> Run:
    """A rank whose `aten::item` waits in a call of the runtime within."""
    calls: list[Call] = [("aten::linear", work, None, 10), ("aten::item", wait + 0.1, None, 0)]
    run = called(calls)
    slices = run.table("slices").collect().drop("rank")
    within = slices.filter(pl.col("name") == "aten::item")
    syncs = within.with_columns(
        slice=pl.col("slice") + slices.height,
        name=pl.lit("cudaStreamSynchronize"),
        category=pl.lit("runtime"),
        parent=pl.col("slice"),
        duration_ns=pl.col("duration_ns") - 50_000,
        start_ns=pl.col("start_ns") + 10,
    )
    tables = {name: run.table(name).collect().drop("rank") for name in ("operators", "steps", "kernels")}
    return Run.from_frames({0: {**tables, "slices": pl.concat([slices, syncs.select(slices.columns)])}})


def test_calls_that_wait_for_the_device_are_told_from_those_that_work() -> None:
    pair = compare(waiting(30, 5), waiting(1, 30))

    kinds = {row["name"]: row for row in pair.analyse("api_differences").to_dicts()}
    assert kinds["aten::linear"]["kind"] == kinds["launch"]["kind"] == "work"
    for name in ("aten::item", "cudaStreamSynchronize"):
        assert kinds[name]["kind"] == "wait"
        assert kinds[name]["base_wait_ns"] == pytest.approx(30 * MS, rel=0.01)
    paths = {row["path"]: row["kind"] for row in pair.analyse("operator_differences").to_dicts()}
    assert paths == {"aten::linear": "work"}  # by device time, of which aten::item has none


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


def allocating(sizes: Sequence[int], kept: int = 0) -> Run:
    """A rank that allocates a block in each step, which it releases in it, beside others that it keeps."""
    run = called(LINEAR, steps=len(sizes))
    tables = {name: run.table(name).collect().drop("rank") for name in ("steps", "kernels")}
    times = [step * STEP + 10 for step in range(1, len(sizes) + 1)]
    blocks = ALLOCATIONS.frame(name=["aten::mm"] * len(sizes), size_bytes=sizes, allocation_ns=times)
    curve = MEMORY_CURVE.frame(
        time_ns=[time + more for time in times for more in (0, 5)],
        change_bytes=[sign * size for size in sizes for sign in (1, -1)],
        allocated_bytes=[kept + used * size for size in sizes for used in (1, 0)],
    )
    return Run.from_frames({0: {**tables, "allocations": blocks, "memory_curve": curve}})


def test_memory_is_tested_over_the_steps() -> None:
    pair = compare(allocating([1000, 1100, 1000, 1100, 1000]), allocating([3000, 3100, 3000, 3100, 3100], kept=10))
    peak, allocated = pair.analyse("memory_differences").to_dicts()

    assert (peak["figure"], peak["base_bytes"], peak["new_bytes"]) == ("peak", 1100, 3110)
    assert (allocated["figure"], allocated["name"]) == ("allocated in a step", "aten::mm")
    assert allocated["difference_bytes"] == 3060 - 1040
    assert peak["verdict"] == allocated["verdict"] == "more"
    assert peak["probability_ratio"] == allocated["probability_ratio"] == pytest.approx(2 / 252)


def test_a_peak_of_single_steps_is_noise_and_one_outside_of_steps_is_not_tested() -> None:
    often = allocating([1000, 1200, 1000, 1200, 1000])
    pair = compare(often, allocating([1000, 1200, 1000, 1210, 1000]))
    outside = allocating([1000, 1200, 1000, 1200, 1000])
    curve = outside.table("memory_curve").collect().drop("rank")
    early = MEMORY_CURVE.frame(time_ns=[1], change_bytes=[9000], allocated_bytes=[9000])
    tables = {"steps": outside.table("steps").collect(), "memory_curve": pl.concat([early, curve])}

    assert pair.analyse("memory_differences")["verdict"][0] == "noise"
    found = compare(often, Run.from_frames({0: tables})).analyse("memory_differences").row(0, named=True)
    assert (found["new_bytes"], found["verdict"], found["probability_ratio"]) == (9000, "untested", None)


def test_what_a_side_has_not_recorded_is_not_compared() -> None:
    pair = compare(called(LINEAR, kernels=False), called(LINEAR))

    with pytest.raises(Unavailable, match="communication"):
        pair.analyse("communication_differences")
    with pytest.raises(Unavailable, match="memory"):
        pair.analyse("memory_differences")
