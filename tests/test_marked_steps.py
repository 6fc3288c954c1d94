"""Recordings in which operators were left out of most steps: what their marked phases tell of these."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from recordings import EPOCH_NS, MS, Raw, op
from stepscope.cli import main
from stepscope.run import Run, open_runs

COUNT = 30
PLAIN, SAVE, PAUSE = 100, 250, 150
"""Milliseconds of a step, of a checkpoint, and of a pause behind it."""


def raw(root: Path, recorded: Collection[int], *, beside_ms: int = 0, **about: object) -> Raw:
    """A rank that computes in phases and in every 5th step saves and pauses, so that operators show neither.

    Args:
        root: Where to write.
        recorded: The steps whose operators are recorded; in these forward runs twice as long.
        beside_ms: How long operators run behind the phases.
        about: What `recording.json` says otherwise.
    """
    span = [[EPOCH_NS, EPOCH_NS + COUNT * 1000 * MS]]
    made, now = Raw(root, about={"spans": span, **about}), 0
    for number in range(1, COUNT + 1):
        slow = 30 if number in recorded else 0
        saves = number % 5 == 0
        length = PLAIN + slow + (SAVE + PAUSE if saves else 0)
        made.mark("step", str(number), now * MS, (now + length) * MS, number)
        turn, end = now + 40 + slow, now + 90 + slow
        made.mark("data", "loader", now * MS, (now + 10) * MS, number)
        made.mark("forward", "Net", (now + 10) * MS, turn * MS, number)
        made.mark("backward", "", turn * MS, end * MS, number)
        if saves:
            made.mark("checkpoint", "save", (now + PLAIN + slow) * MS, (now + PLAIN + slow + SAVE) * MS, number)
        if number in recorded:
            half = (end - now - 10) / 2  # a tenth of the phases is idle
            parts = [(now + 10, 0.9 * half), (now + 10 + half, 0.9 * half)]
            events = [op("aten::mm", start * 1000, length * 1000) for start, length in parts]
            events.append(op("aten::sum", end * 1000, beside_ms * 1000))
            made.kineto(number, now * MS, (now + length) * MS, events)
        now += length
    return made


def run_of(root: Path) -> Run:
    (run,) = open_runs(root, use_store=False)
    return run


FEW = range(1, COUNT, 7)
"""The steps with operators: 1, 8, 15, 22, 29. None of them saves but the 15th."""


def test_every_step_is_shown_with_its_phases(tmp_path: Path) -> None:
    raw(tmp_path, FEW)

    trace = run_of(tmp_path).analyse("step_trace")

    assert trace["step"].to_list() == list(range(1, COUNT + 1))
    assert trace.filter(~trace["by_phases"])["step"].to_list() == list(FEW)
    row = trace.row(9, named=True)
    assert (row["step"], row["step_ns"], row["checkpoint_ns"]) == (10, 500 * MS, SAVE * MS)
    assert (row["data_wait_ns"], row["forward_ns"], row["backward_ns"]) == (10 * MS, 30 * MS, 50 * MS)
    assert row["other_ns"] == (10 + PAUSE) * MS
    assert row["forward_start_operator"] is None  # the nearest operator is one of another step


def test_what_does_not_come_in_each_step_counts_in_all_of_them(tmp_path: Path) -> None:
    raw(tmp_path, FEW)

    lost = {row["cause"]: row for row in run_of(tmp_path).analyse("lost_time").iter_rows(named=True)}

    saves = [5, 10, 15, 20, 25, 30]
    assert lost["checkpoint"]["lost_ns"] == 6 * SAVE * MS
    assert (lost["checkpoint"]["stalled_steps"], lost["checkpoint"]["period"]) == (saves, 5)
    assert (lost["other"]["stalled_steps"], lost["other"]["period"]) == (saves, 5)
    assert lost["other"]["stalled_ns"] == 6 * PAUSE * MS
    assert lost["other"]["recorded_ns"] == (29 * PLAIN + 4 * 30 + 6 * (SAVE + PAUSE)) * MS  # without the first step


def test_within_phases_idle_time_is_that_of_the_steps_with_operators(tmp_path: Path) -> None:
    raw(tmp_path, FEW)

    lost = {row["cause"]: row for row in run_of(tmp_path).analyse("lost_time").iter_rows(named=True)}

    beside = 29 * 10 + 6 * PAUSE
    within = 0.1 * (29 * 80 + 4 * 30)
    assert lost["other"]["lost_ns"] == pytest.approx((beside + within) * MS, rel=1e-6)
    assert lost["data_loading"]["lost_ns"] == 29 * 10 * MS


def test_the_findings_are_those_of_a_recording_with_all_operators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    for name, recorded in {"few": FEW, "all": range(1, COUNT + 1)}.items():
        raw(tmp_path / name, recorded)
        assert main(["analyze", str(tmp_path / name), "--no-store"]) == 0
        shown[name] = capsys.readouterr().out

    for text in shown.values():
        assert "stops for checkpoints: 1.50 s of" in text
        assert text.count("in every 5th step") >= 2
    assert "Operators were recorded in 5 of 30 steps" in shown["few"]
    assert "mean of 5 steps with operators" in shown["few"]
    assert "Operators were recorded in" not in shown["all"]


def test_steps_that_recording_makes_longer_are_not_called_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = raw(tmp_path, FEW)
    assert main(["steps", str(made.root), "--no-store"]) == 0

    statistics = run_of(tmp_path).analyse("step_statistics")

    by_phase = {row["phase"]: row for row in statistics.iter_rows(named=True)}
    assert by_phase["forward"]["outlier_steps"] == []
    assert by_phase["forward"]["limit_ns"] is None
    assert by_phase["checkpoint"]["outlier_steps"] == [5, 10, 15, 20, 25, 30]
    assert "No operators were recorded in 25 of these 30 steps" in capsys.readouterr().out


def test_where_operators_run_beside_the_phases_marks_do_not_stand_for_them(tmp_path: Path) -> None:
    plain = [step for step in FEW if step % 5]
    raw(tmp_path, plain, beside_ms=10)  # of a step of 130 ms

    run = run_of(tmp_path)

    assert run.analyse("timed_steps")["step"].to_list() == plain
    assert run.analyse("step_trace")["step"].to_list() == plain


def test_a_point_by_the_name_of_an_operator_is_known_only_in_steps_with_operators(tmp_path: Path) -> None:
    raw(tmp_path, FEW)

    assert run_of(tmp_path).analyse("step_trace", forward_start="aten::mm")["step"].to_list() == list(FEW)


def test_the_exact_split_is_of_the_steps_with_operators(tmp_path: Path) -> None:
    raw(tmp_path, FEW)

    run = run_of(tmp_path)

    assert run.analyse("breakdown")["step"].to_list() == list(FEW)
    assert set(run.analyse("idle")["step"]) == set(FEW)


def test_communication_is_unknown_where_the_operators_that_call_are(tmp_path: Path) -> None:
    made = raw(tmp_path, FEW)
    made.mark("collective", "all_reduce", 20 * MS, 30 * MS, 1)  # step 1 has operators
    made.mark("collective", "all_reduce", 280 * MS, 290 * MS, 3)

    exposed = run_of(tmp_path).analyse("step_trace")["exposed_communication_ns"].to_list()

    assert [time for time in exposed if time is not None] == [0, 10 * MS, 0, 0, 0, 0]


def test_on_a_device_the_answer_is_of_the_steps_with_operators_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def part(start: int) -> list[dict[str, Any]]:
        launch = op("cudaLaunchKernel", start + 1, 1, "cuda_runtime", correlation=start)
        return [launch, op("k", start + 3, 900, "kernel", 7, device=0, stream=7, correlation=start)]

    made = Raw(tmp_path, about={"device_kind": "cuda"}).steps(*((n, n * MS, (n + 1) * MS) for n in range(1, 7)))
    made.kineto(0, MS, 3 * MS, [*part(1000), *part(2000)]).kineto(1, 5 * MS, 7 * MS, [*part(5000), *part(6000)])

    assert main(["analyze", str(tmp_path), "--no-store"]) == 0

    verdict = capsys.readouterr().out.partition("\n")[0]
    assert verdict.endswith(
        "This is about 4 of 6 steps: no operators were recorded in the others, so costs that do not occur in every "
        "step may be higher or lower."
    )
