"""What PyTorch marks of data parallelism, and the settings that cost time."""

from __future__ import annotations

import pytest

from stepscope.advice import advise
from stepscope.advice.finding import Finding
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, OPERATORS, RANKS, SLICES, STEPS

MS = 1_000_000


def recorded(wrapper: str, per_step: int, summed: int, *, device: str = "cpu", length: int = 5 * MS) -> Run:
    """Two ranks with three steps of 100 ms, each with forward passes, after some of which gradients are summed."""
    marks, calls = [], []
    for step in range(3):
        for at in range(per_step):
            start = (100 * step + 10 * at) * MS
            marks.append((f"{wrapper}.forward", start))
            if at >= per_step - summed:
                marks.append(("c10d::allreduce_", start + MS))
                calls.append((start + MS, step))
        marks.append(("Optimizer.step#SGD.step", (100 * step + 95) * MS))
    starts = [at for _, at in marks]
    bounds = {"start_ns": [0, 100 * MS, 200 * MS], "end_ns": [100 * MS, 200 * MS, 300 * MS]}
    tables = {
        "slices": SLICES.frame(
            slice=range(len(marks)), category=["mark"] * len(marks), name=[name for name, _ in marks],
            start_ns=starts, duration_ns=[MS // 2] * len(marks),
        ),
        "operators": OPERATORS.frame(
            slice=[900], name=["aten::mm"], start_ns=[0], duration_ns=[MS // 2], self_ns=[MS // 2]
        ),
        "collectives": COLLECTIVES.frame(
            collective=range(len(calls)), group=["g"] * len(calls), sequence=range(len(calls)),
            operation=["all_reduce"] * len(calls), name=["gloo:all_reduce"] * len(calls), size_bytes=[8] * len(calls),
            start_ns=[at for at, _ in calls], duration_ns=[length] * len(calls), on_device=[False] * len(calls),
            step=[step for _, step in calls],
        ),
        "steps": STEPS.frame(
            step=[0, 1, 2], **bounds, **{f"window_{side}": at for side, at in bounds.items()}, window=["host"] * 3
        ),
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=[device], backend=["gloo"]),
    }  # fmt: skip
    return Run.from_frames({0: tables, 1: tables})


def found(run: Run) -> list[Finding]:
    return [one for one in advise(run, strict=True) if one.rule == "data-parallel"]


def test_sums_are_counted_by_the_forward_pass_before_them() -> None:
    (row, _) = recorded("DistributedDataParallel", 4, 1).analyse("data_parallelism").to_dicts()

    assert [row[name] for name in ("forwards", "optimizer_steps", "reduced", "all_reduces")] == [12, 3, 3, 3]
    assert (row["wrapper"], row["backend"]) == ("DistributedDataParallel", "gloo")


@pytest.mark.parametrize(("per_step", "summed"), [(1, 1), (4, 1), (1, 0)])
def test_gradients_summed_once_for_each_step_of_the_optimizer_are_as_they_should_be(per_step: int, summed: int) -> None:
    assert found(recorded("DistributedDataParallel", per_step, summed)) == []


def test_sums_after_each_micro_batch_are_needless_but_for_the_last() -> None:
    (finding,) = found(recorded("DistributedDataParallel", 4, 4))

    assert (finding.message, finding.parameters["needless"]) == ("every_backward", 0.75)
    assert finding.saving_ns == pytest.approx(0.75 * 4 * 5 * MS, rel=0.05)  # four calls of 5 ms in a step
    assert finding.saving_low_ns == 0


def test_threads_and_a_backend_of_the_host_beside_a_gpu_are_told() -> None:
    assert [one.message for one in found(recorded("DataParallel", 1, 0))] == ["threads"]
    gpu = recorded("DistributedDataParallel", 1, 1, device="cuda", length=20 * MS)
    assert [(one.message, one.severity) for one in found(gpu)] == [("backend", "medium")]


def test_ranks_that_mark_nothing_have_no_wrapper() -> None:
    row = recorded("Other", 1, 1).analyse("data_parallelism").row(0, named=True)

    assert (row["wrapper"], row["forwards"], row["host_calls"]) == (None, 0, 3)
