"""Hosts that wait after each launch, that stop unseen, and that synchronise batch normalisation."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import Finding, advise, worded
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS, SLICES, STEPS
from tests.advice.examples import Tables, found

MS = 1_000_000
US = 1000
STEP = 100 * MS
COUNT = 6
EACH = 40
"""Kernels of a step, one each 2.5 ms."""


def launching(
    *,
    kernel_us: int = 1500,
    waits: bool = False,
    blocks: bool = False,
    stall: tuple[int, int] | None = None,
    device: str = "npu",
    environment: str | None = None,
    name: str = "AscendCL@aclrtSynchronizeStream",
) -> Tables:
    """Steps of 100 ms with kernels that are launched one by one just before they run.

    Args:
        kernel_us: Length of a kernel.
        waits: A call waits for each kernel.
        blocks: Launches return when their kernel has ended.
        stall: In this step, nothing happens for so many ms before the last kernel.
        device: Kind of device.
        environment: Recorded environment variables.
        name: Call that waits.
    """
    rows, slices, starts, now = [], [], [], 0
    for step in range(COUNT):
        starts.append(now)
        for k in range(EACH):
            if stall is not None and stall[0] == step and k == EACH - 1:
                now += stall[1] * MS
            launch_end = now + (20 + kernel_us if blocks else 10) * US
            rows.append((now + 20 * US, kernel_us * US, now, launch_end, step))
            slices.append((now, launch_end - now, "Node@launch", step, len(rows)))
            if waits:
                slices.append((now + 15 * US, (kernel_us + 10) * US, name, step, None))
            now += 2500 * US
    starts.append(now)
    begin, length, launched, returned, of_step = zip(*rows, strict=True)
    at, took, called, in_step, correlation = zip(*slices, strict=True)
    bounds = {"start_ns": starts[:-1], "end_ns": starts[1:]}
    count = len(rows)
    return {
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=[device], environment=[environment]),
        "steps": STEPS.frame(
            step=list(range(COUNT)),
            **bounds,
            **{f"window_{key}": value for key, value in bounds.items()},
            window=["host"] * COUNT,
        ),
        "slices": SLICES.frame(
            slice=list(range(len(slices))),
            category=["runtime"] * len(slices),
            name=called,
            thread=["1"] * len(slices),
            start_ns=at,
            duration_ns=took,
            step=in_step,
            correlation=correlation,
        ),
        "kernels": KERNELS.frame(
            kernel=list(range(count)),
            start_ns=begin,
            duration_ns=length,
            kind=["compute"] * count,
            name=["mm"] * count,
            launch_start_ns=launched,
            launch_end_ns=returned,
            correlation=list(range(1, count + 1)),
            step=of_step,
        ),
    }


def told(tables: Tables, rule: str) -> Finding:
    (finding,) = found(tables, rule)
    return finding


def test_a_host_that_waits_after_each_launch_claims_the_idle_time_alone() -> None:
    findings = advise(Run.from_frames({0: launching(waits=True)}))

    finding = next(one for one in findings if one.rule == "launch-wait")
    idle = 100 * MS - EACH * 1500 * US
    assert finding.saving_ns == pytest.approx(idle, rel=0.02)  # less than the waits
    assert (finding.severity, finding.message, finding.confidence) == ("high", "waits", "likely")
    assert sum(one.saving_ratio for one in findings) <= 0.45


def test_where_the_device_is_never_idle_waits_cost_next_to_nothing() -> None:
    finding = told(launching(waits=True, kernel_us=2480), "launch-wait")

    assert (finding.severity, finding.saving_ratio < 0.02) == ("low", True)


@pytest.mark.parametrize(("device", "variable"), [("npu", "ASCEND_LAUNCH_BLOCKING"), ("cuda", "CUDA_LAUNCH_BLOCKING")])
def test_a_variable_that_makes_launches_wait_is_certain(device: str, variable: str) -> None:
    tables = launching(blocks=True, device=device, environment=f'{{"{variable}": "1", "OTHER": "0"}}')

    finding = told(tables, "launch-wait")

    assert (finding.message, finding.confidence, finding.evidence["variable"]) == ("variable", "certain", variable)
    assert f"unset {variable}" in worded(finding).action


@pytest.mark.parametrize("environment", [None, "{}", '{"ASCEND_LAUNCH_BLOCKING": "0"}'])
def test_launches_ahead_are_none(environment: str | None) -> None:
    assert found(launching(environment=environment), "launch-wait") == []


def test_one_wait_in_a_step_is_none() -> None:
    tables = launching(waits=True)
    tables["slices"] = tables["slices"].filter(
        pl.col("correlation").is_not_null() | (pl.int_range(pl.len()) % (2 * EACH) == 1)
    )

    assert found(tables, "launch-wait") == []


def test_a_stop_of_the_host_may_be_garbage_collection() -> None:
    finding = told(launching(stall=(3, 60)), "host-stall")

    assert finding.message == "some"
    assert finding.saving_ns == pytest.approx((60 + 2.5) * MS / COUNT, rel=0.05)
    assert finding.confidence == "possible"
    assert "gc.freeze()" in worded(finding).action
    assert "swapping" in worded(finding).cause
    rules = {one.rule for one in advise(Run.from_frames({0: launching(stall=(3, 60), kernel_us=2490)}))}
    assert rules.isdisjoint({"idle-time", "long-step"})


def test_a_wait_that_reaches_into_the_stop_does_not_hide_it() -> None:
    tables = launching(stall=(3, 60))
    last = 4 * STEP + 60 * MS - 2500 * US  # begin of the last kernel
    row = (
        tables["slices"]
        .head(1)
        .with_columns(
            slice=pl.lit(9999, pl.Int64),
            name=pl.lit("AscendCL@aclrtSynchronizeStream"),
            start_ns=pl.lit(last - 62 * MS, pl.Int64),
            duration_ns=pl.lit(10 * MS, pl.Int64),
            step=pl.lit(3, pl.Int32),
            correlation=pl.lit(None, pl.Int64),
        )
    )
    tables["slices"] = pl.concat([tables["slices"], row]).sort("start_ns")

    (stall,) = Run.from_frames({0: tables}).analyse("host_stalls").to_dicts()

    assert stall["step"] == 3
    assert stall["duration_ns"] == pytest.approx(52 * MS, rel=0.05)


@pytest.mark.parametrize("category", ["operator", "gc"])
def test_a_host_that_works_or_collects_garbage_does_not_stop_unseen(category: str) -> None:
    tables = launching(stall=(3, 60))
    rows = tables["slices"].filter(pl.col("step") == 3).tail(1)
    busy = rows.with_columns(
        slice=pl.lit(9999, pl.Int64),
        name=pl.lit("x"),
        category=pl.lit(category),
        start_ns=pl.col("start_ns") - 60 * MS,
        duration_ns=pl.lit(59 * MS, pl.Int64),
        correlation=pl.lit(None, pl.Int64),
    )
    tables["slices"] = pl.concat([tables["slices"], busy]).sort("start_ns")

    assert found(tables, "host-stall") == []


def test_where_collections_were_recorded_a_stop_is_something_else() -> None:
    tables = launching(stall=(3, 60))
    collection = (
        tables["slices"]
        .head(1)
        .with_columns(
            slice=pl.lit(9999, pl.Int64),
            name=pl.lit("GC"),
            category=pl.lit("gc"),
            correlation=pl.lit(None, pl.Int64),
        )
    )
    tables["slices"] = pl.concat([collection, tables["slices"]])

    finding = told(tables, "host-stall")

    assert finding.message == "collected"
    assert "this is none" in worded(finding).cause
    assert "gc.disable" not in worded(finding).action


def test_short_gaps_and_hosts_that_were_not_recorded_are_none() -> None:
    assert found(launching(stall=(3, 8)), "host-stall") == []
    bare = launching(stall=(3, 60))
    assert found({name: table for name, table in bare.items() if name != "slices"}, "host-stall") == []


def norms(count: int, *, training: bool = True) -> Tables:
    tables = launching()
    rows = [(step * STEP + k * 50 * US, step) for step in range(COUNT) for k in range(count)]
    names = ["SyncBatchNorm"] * len(rows)
    added = SLICES.frame(
        slice=[5000 + k for k in range(len(rows) + 1)],
        category=["operator"] * (len(rows) + 1),
        name=[*names, "MmBackward0" if training else "aten::mm"],
        thread=["1"] * (len(rows) + 1),
        start_ns=[*(start for start, _ in rows), 0],
        duration_ns=[40 * US] * (len(rows) + 1),
        step=[*(step for _, step in rows), 0],
    )
    tables["slices"] = pl.concat([tables["slices"], added])
    tables["operators"] = OPERATORS.frame(
        slice=[5000], name=["SyncBatchNorm"], thread=["1"], start_ns=[0], duration_ns=[9]
    )
    return tables


def test_synchronised_batch_normalisation_in_training_only() -> None:
    finding = told(norms(24), "sync-batch-norm")

    assert finding.parameters["calls"] == 24
    assert "process_group" in worded(finding).action
    assert found(norms(24, training=False), "sync-batch-norm") == []
    assert found(norms(3), "sync-batch-norm") == []
