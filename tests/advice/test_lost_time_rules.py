"""Costs that only some steps have are findings, with their pattern and what to record next."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from stepscope.advice import Finding, worded
from stepscope.advice.rules.idle_time import idle_time
from stepscope.analysis.step.lost_time import STEP_COSTS, summed
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from stepscope.tables import HOST_USAGE, INPUT_PIPELINE, KERNELS, OPERATORS, RANKS, SLICES, STEPS

MS = 1_000_000
COMPUTE = 20 * MS
NOTHING = 300_000
"""What a step has of Python between its operators."""

Pause = Callable[[int], int]
"""Step to the length of its pause."""


def every(number: int, length_ns: int) -> Pause:
    return lambda step: length_ns if step % number == 0 else 0


def on_cpu(
    pause: Pause, mark: str | None = None, *, steps: int = 40, framework: str = "pytorch", python: bool = False
) -> dict[str, pl.DataFrame]:
    """A rank whose steps compute, pause, and have a little unexplained time.

    Args:
        pause: How long each step pauses.
        mark: Name of the annotation around a pause; None if nothing tells of it.
        steps: How many.
        framework: What wrote the recording.
        python: Python functions were recorded: a pause is `time.sleep` in `write_log`.
    """
    now, rows, ranges = 0, [], []
    for step in range(1, steps + 1):
        begun = now
        rows.append((now, COMPUTE, "operator", "aten::mm", step))
        now += COMPUTE
        if length := pause(step):
            if mark is not None:
                rows.append((now, length, "annotation", mark, step))
            if python:
                rows.append((now, length, "python", "log.py(26): write_log", step))
                rows.append((now, length, "python", "<built-in function sleep>", step))
            now += length
        now += NOTHING
        ranges.append((step, begun, now))
    start, duration, category, name, step_of = zip(*rows, strict=True)
    slices = SLICES.frame(
        slice=list(range(len(rows))), start_ns=list(start), duration_ns=list(duration), category=list(category),
        name=list(name), step=list(step_of), depth=[2] * len(rows), thread=["1"] * len(rows),
    )  # fmt: skip
    numbers, starts, ends = (list(column) for column in zip(*ranges, strict=True))
    return {
        "slices": slices,
        "operators": OPERATORS.conform(
            slices.filter(pl.col("category") == "operator").select("slice", "start_ns", "duration_ns", "name", "step")
        ),
        "steps": STEPS.frame(
            step=numbers, start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
            window=["host"] * steps,
        ),
        "ranks": RANKS.frame(device_kind=["cpu"], framework=[framework]),
    }  # fmt: skip


def told(*ranks: dict[str, pl.DataFrame]) -> tuple[list[Finding], str]:
    """The findings about a job, and the verdict."""
    found = answers(Run.from_frames(dict(enumerate(ranks))))
    return found.findings, verdict(found)


def test_a_healthy_job_has_no_finding() -> None:
    findings, text = told(on_cpu(lambda _: 0))

    assert findings == []
    assert text.startswith("Nothing stands out.")


def test_a_loader_that_stalls_every_fourth_step_is_judged_by_its_total() -> None:
    (finding,), text = told(on_cpu(every(4, 60 * MS), "data: Loader"))

    lost, recorded = 10 * 60 * MS, 39 * (COMPUTE + NOTHING) + 10 * 60 * MS
    assert finding.evidence["cause"] == "data_loading"
    assert finding.saving_ns == pytest.approx(lost / 40, abs=1)  # of all steps, as a replay shows
    assert finding.saving_ratio == pytest.approx(lost / recorded, rel=0.03)
    assert "600 ms of 1.39 s (43%), most of it in every 4th step" in worded(finding).summary
    assert text.startswith(worded(finding).summary)


def test_checkpoints_are_a_finding_of_their_own() -> None:
    (finding,), _ = told(on_cpu(every(10, 250 * MS), "checkpoint: torch.save"))

    assert finding.rule == "checkpoint"
    assert "1.00 s of 1.79 s (56%), in every 10th step" in worded(finding).summary
    assert "torch.distributed.checkpoint" in worded(finding).action
    assert finding.saving_ns == pytest.approx(1000 * MS / 40, abs=1)


def test_the_rank_that_saves_counts_since_the_others_wait_for_it() -> None:
    findings, _ = told(on_cpu(every(10, 250 * MS), "checkpoint: torch.save"), *[on_cpu(lambda _: 0)] * 3)

    assert [f.ranks for f in findings if f.rule == "checkpoint"] == [[0]]


def test_advice_about_checkpoints_fits_the_framework() -> None:
    (finding,), _ = told(on_cpu(every(10, 250 * MS), "checkpoint: save_checkpoint", framework="mindspore"))

    assert "CheckpointConfig" in worded(finding).action and "torch" not in worded(finding).action


def test_a_pause_that_nothing_explains_says_what_to_record_next() -> None:
    (finding,), text = told(on_cpu(every(5, 50 * MS)))

    assert "in every 5th step" in worded(finding).summary
    assert "stepscope record --stacks" in worded(finding).action
    assert finding.saving_ns == pytest.approx(8 * 50 * MS / 39, abs=1)  # beyond what ordinary steps have
    assert "Nothing stands out" not in text


def test_mindspore_has_no_stacks_on_a_cpu_to_advise() -> None:
    (finding,), _ = told(on_cpu(every(5, 50 * MS), framework="mindspore"))

    assert "--stacks" not in worded(finding).action and "py-spy" in worded(finding).action


def test_an_unexplained_pause_in_each_step_is_a_finding() -> None:
    (finding,), text = told(on_cpu(lambda _: 20 * MS))

    assert finding.evidence["cause"] == "other"
    assert "20.3 ms of a 40.3 ms step (50%)" in worded(finding).summary
    assert "Nothing stands out" not in text


def test_pauses_of_all_steps_count_although_they_are_much_longer_in_some() -> None:
    """A collection of garbage in each step takes 20 ms, and in two of 20 steps 100 ms: all of it is lost."""
    (finding,), _ = told(on_cpu(lambda step: 100 * MS if step in (8, 9) else 20 * MS, steps=20))

    assert finding.saving_ns == pytest.approx((18 * 20 + 2 * 100) * MS / 20, rel=0.05)
    assert "in steps 8-9" not in worded(finding).summary


def test_python_between_operators_is_ordinary() -> None:
    tables = on_cpu(lambda _: 3 * MS)
    short = tables["operators"].with_columns(pl.lit(COMPUTE // 4, pl.Int64).alias("duration_ns"))
    parts = [short.with_columns(pl.col("start_ns") + place * (COMPUTE // 4 + 500_000)) for place in range(4)]
    split = {"operators": pl.concat(parts).sort("start_ns")}

    findings, _ = told({**tables, **split})

    assert findings == []


def test_python_between_operators_of_a_small_model_is_no_pause() -> None:
    """It takes a millisecond or two, which is much of a step of a few; what is longer is looked at."""
    tables = on_cpu(lambda _: 2 * MS)
    short = tables["operators"].with_columns(pl.lit(COMPUTE // 4, pl.Int64).alias("duration_ns"))
    moved = pl.col("start_ns") - (pl.col("step") - 1) * (COMPUTE - COMPUTE // 4)
    ends = short.select(moved)["start_ns"].to_list()
    window = {"start_ns": ends, "end_ns": [*ends[1:], ends[-1] + COMPUTE // 4 + 2 * MS + NOTHING]}
    steps = tables["steps"].with_columns(
        *(pl.Series(name, times) for name, times in window.items()),
        *(pl.Series(f"window_{name}", times) for name, times in window.items()),
    )

    findings, _ = told({**tables, "operators": short.with_columns(moved), "steps": steps})

    assert findings == []


def test_a_loader_of_which_only_batches_are_known_is_judged_by_its_total() -> None:
    waits = [60 * MS if step % 4 == 0 else 0 for step in range(1, 41)]
    numbers = list(range(1, 41))
    batches = INPUT_PIPELINE.frame(
        operator=["Images"] * 40, batch=numbers, step=numbers, time_ns=numbers, duration_ns=waits
    )
    steps = on_cpu(lambda _: 20 * MS)["steps"]

    (finding,) = answers(Run.from_frames({0: {"steps": steps, "input_pipeline": batches}})).findings

    assert (finding.rule, finding.saving_ns) == ("data-loader", 15 * MS)


def test_with_stacks_the_function_is_named_with_file_and_line() -> None:
    (finding,), _ = told(on_cpu(every(5, 50 * MS), python=True))

    assert finding.evidence["cause"] == "python"
    assert "time.sleep for 400 ms (called by write_log, log.py:26)" in worded(finding).cause


def test_one_step_among_many_that_takes_far_longer_is_named() -> None:
    (finding,), text = told(on_cpu(lambda step: 4600 * MS if step == 21 else 0))

    assert "in step 21" in worded(finding).summary
    assert "Step 21 takes 4.62 s, 228 times the median step" in text


def test_a_first_step_that_starts_things_up_saves_nothing_in_each() -> None:
    findings, text = told(on_cpu(lambda step: 4600 * MS if step == 1 else 0))

    assert findings == []
    assert "as the first one starts things up" in text


def test_a_pause_of_one_of_many_ranks_is_not_that_of_the_typical_rank() -> None:
    findings, _ = told(on_cpu(every(4, 60 * MS), "data: Loader"), *[on_cpu(lambda _: 0)] * 3)

    assert not [finding for finding in findings if finding.rule == "idle-time"]


def test_of_two_ranks_each_loses_at_least_what_is_told() -> None:
    (finding,), text = told(on_cpu(lambda _: 40 * MS), on_cpu(lambda _: 44 * MS))

    assert text.startswith("Each of the two ranks does nothing that was recorded: at least 40.3 ms of a ")
    assert worded(finding, "zh").summary.startswith("两个 rank 都没有任何被记录的活动：每步 62.3 ms 中至少有 40.3 ms")


def test_of_two_ranks_one_without_steps_is_not_spoken_for() -> None:
    (finding,), text = told(on_cpu(lambda _: 40 * MS), {"ranks": RANKS.frame(device_kind=["cpu"])})

    assert text.startswith("The median rank does nothing that was recorded: 40.3 ms of a ")
    assert worded(finding, "zh").summary.startswith("中位 rank ")


def test_windows_of_other_lengths_do_not_make_another_rank_the_typical_one() -> None:
    """Of one step, ranks have windows that end with their own work: the greatest share is not the greatest loss."""
    lost = [(0, 6, 18), (1, 7, 11), (2, 9, 17), (3, 8, 11)]
    rows = pl.DataFrame(
        [(rank, "dispatch", 1, idle * MS, idle * MS, 0, step * MS) for rank, idle, step in lost],
        schema=STEP_COSTS,
        orient="row",
    )

    (finding,) = idle_time(summed(rows), pl.DataFrame(), None, None)

    assert worded(finding).summary.endswith("7.00 ms of a 14.0 ms step (50%).")
    assert (finding.saving_ns, finding.evidence["idle_ns"], finding.evidence["window_ns"]) == (
        7 * MS,
        7 * MS,
        14 * MS,
    )


def only_the_device(*, launches: bool = False) -> dict[str, pl.DataFrame]:
    """A rank of which the device was recorded: each step computes for a fifth of its length."""
    starts = [step * 100 * MS for step in range(1, 6)]
    known = {"launch_start_ns": starts, "launch_end_ns": [start + 1000 for start in starts]} if launches else {}
    return {
        "ranks": RANKS.frame(device_kind=["npu"], framework=["mindspore"]),
        "steps": STEPS.frame(
            step=range(1, 6), start_ns=starts, end_ns=[start + 100 * MS for start in starts], window_start_ns=starts,
            window_end_ns=[start + 100 * MS for start in starts], window=["stated"] * 5,
        ),
        "kernels": KERNELS.frame(
            kernel=range(5), start_ns=[start + 5 * MS for start in starts], duration_ns=[20 * MS] * 5,
            kind=["compute"] * 5, name=["Conv2D"] * 5, device=[0] * 5, stream=[1] * 5, step=range(1, 6), **known,
        ),
    }  # fmt: skip


def test_where_only_the_device_was_recorded_its_idle_time_is_not_judged() -> None:
    (finding,), text = told(only_the_device())

    assert finding.evidence["cause"] == "not_recorded"
    assert (finding.saving_ns, finding.saving_ratio, finding.severity) == (0, 0.0, "medium")
    assert "No operator" not in worded(finding).cause and "--stacks" not in worded(finding).action
    assert "Record the host as well" in worded(finding).action
    assert "80% idle. Why the devices are idle was not recorded." in text


def test_a_few_operators_of_a_graph_on_the_host_do_not_show_what_the_host_did() -> None:
    some = only_the_device()
    some["operators"] = OPERATORS.frame(
        slice=[0], start_ns=[240 * MS], duration_ns=[MS], name=["EmbeddingLookup"], step=[2]
    )

    (finding,), _ = told(some)

    assert finding.evidence["cause"] == "not_recorded"


def test_launches_show_what_the_host_did() -> None:
    findings, text = told(only_the_device(launches=True))

    assert not [finding for finding in findings if finding.evidence.get("cause") == "not_recorded"]
    assert "was not recorded" not in text


def test_the_greater_severity_comes_first_where_no_saving_is_known() -> None:
    findings, _ = told({**only_the_device(), "host_usage": busy_host()})

    assert [finding.rule for finding in findings] == ["idle-time", "cpu-busy"]


def busy_host() -> pl.DataFrame:
    return HOST_USAGE.frame(
        time_ns=[0, MS, 2 * MS], scope=["host"] * 3, processors=[2] * 3, user_ratio=[0.9] * 3,
        system_ratio=[0.1] * 3, idle_ratio=[0.0] * 3, io_ratio=[0.0] * 3,
    )  # fmt: skip


def test_a_stall_that_does_not_recur_is_spread_over_all_steps_also_those_not_counted() -> None:
    costs = pl.DataFrame(
        [
            (0, "dispatch", step, 46 * MS if step == 6 else MS, 0, 0, (55 if step == 6 else 10) * MS)
            for step in range(1, 9)
        ],
        schema=STEP_COSTS,
        orient="row",
    ).with_columns(judged_ns="lost_ns")
    breakdown = pl.DataFrame({"rank": [0] * 10, "step": range(10)})

    (found,) = idle_time(summed(costs), breakdown, None, None)

    assert (found.saving_ns, found.saving_ratio) == (MS + 45 * MS / 10, pytest.approx(5.5 / 14.5))
    assert (found.saving_low_ns, found.saving_high_ns) == (MS, 6_625_000)  # median and mean of the counted steps
