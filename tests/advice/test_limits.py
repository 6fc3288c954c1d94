"""Limits of rules and analyses: listed, overridden from Python and from a file, and refused where they are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.advice import RULES, advise, limits_from, rule_table, worded
from stepscope.analysis.input.input_stages import Limits
from stepscope.errors import StepscopeError
from stepscope.limits import read_limits
from stepscope.report.answers import answers
from stepscope.report.verdict import verdict
from stepscope.run import Run
from tests.advice.test_lost_time_rules import MS, Pause, every, on_cpu
from tests.analysis.inputs import batches
from tests.analysis.test_iterations import STEP, recorded


def queue(empty: int) -> Run:
    """A run whose host queue is empty for so many of ten batches."""
    return Run.from_frames({0: {"input_pipeline": batches("device_queue", [0] * empty + [5] * (10 - empty))}})


def rules_of(run: Run) -> set[str]:
    return {finding.rule for finding in advise(run)}


def test_every_rule_is_listed_and_every_limit_has_a_unit_and_a_source() -> None:
    table = rule_table()

    assert set(table["rule"].drop_nulls()) == set(RULES)
    limited = table.drop_nulls("limit")
    assert limited.filter((limited["unit"] == "") | (limited["source"] == "")).is_empty()
    assert not table["says"].drop_nulls().str.contains("\n").any()


def test_what_a_rule_does_is_a_whole_sentence() -> None:
    said = rule_table()["says"].drop_nulls().unique().to_list()

    assert [text for text in said if not text.endswith((".", ":"))] == []
    assert [text for text in said if "\n" in text] == []


def test_a_limit_of_an_analysis_changes_the_rule_behind_it() -> None:
    run = queue(2)

    assert rules_of(run) == set()
    assert rules_of(run.with_limits(limits_from({"input_stages": {"host_empty_ratio": 0.1}}))) == {"host-queue"}
    assert rules_of(run) == set()  # the run itself stays as it is


def test_limits_go_on_to_a_selection_of_the_run() -> None:
    run = queue(2).with_limits(limits_from({"input_stages": {"host_empty_ratio": 0.1}}))

    assert rules_of(run.select(ranks=0)) == {"host-queue"}


def test_a_whole_set_of_limits_is_taken_too() -> None:
    assert limits_from({"input_stages": Limits(host_empty_ratio=0.5)})["input_stages"].host_empty_ratio == 0.5


def test_a_file_has_a_table_for_each(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("[input_stages]\nhost_empty_ratio = 0.5\n[iteration-interval]\ninterval_ns = 1_000_000\n")

    sets = limits_from(read_limits(file))

    assert sets["input_stages"].host_empty_ratio == 0.5
    assert sets["input_stages"].obtaining_ratio == Limits().obtaining_ratio
    assert sets["iteration-interval"].interval_ns == 1_000_000


def test_zero_is_a_limit() -> None:
    assert limits_from({"input_stages": {"host_empty_ratio": 0}})["input_stages"].host_empty_ratio == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"input_stage": {"host_empty_ratio": 1}}, "'input_stage'.*Did you mean input_stages"),
        ({"input_stages": {"host_empty": 1}}, "'host_empty'.*host_empty_ratio"),
        ({"input_stages": {"host_empty_ratio": "much"}}, "'much'.*a number, 0 or above"),
        ({"input_stages": {"host_empty_ratio": True}}, "True.*a number"),
        ({"input_stages": {"host_empty_ratio": float("nan")}}, "nan.*a number"),
        ({"input_stages": {"host_empty_ratio": -1}}, "-1.*0 or above"),
        ({"memory_hints": {"growth_steps": 2.5}}, "2.5.*a whole number"),
        ({"input_stages": 3}, "3, not a table.*Write \\[input_stages\\]"),
        ({"slow-rank": {}}, "'slow-rank'"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, object], told: str) -> None:
    with pytest.raises(StepscopeError, match=f"here: .*{told}"):
        limits_from(changes, "here")


@pytest.mark.parametrize("content", [b"input_stages = [", b"\xff\xfe", b"[a]\n[a]", b"x = " + b"[" * 5000])
def test_a_damaged_file_is_no_traceback(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "limits.toml"
    file.write_bytes(content)

    with pytest.raises(StepscopeError, match=r"limits\.toml"):
        limits_from(read_limits(file))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="cannot read the limits"):
        read_limits(tmp_path / "none.toml")


def at(name: str, **changes: float) -> Callable[[Run], Run]:
    """Judge a run by other limits of one rule or analysis."""
    return lambda run: run.with_limits(limits_from({name: changes}))


def stalling(**more: Any) -> Run:
    """A job that waits 60 ms for data in every fourth step."""
    return Run.from_frames({0: on_cpu(every(4, 60 * MS), **{"mark": "data: Loader", **more})})


def sleeping() -> Run:
    """A job that sleeps 50 ms in every fifth step, with Python functions recorded."""
    return Run.from_frames({0: on_cpu(every(5, 50 * MS), python=True)})


def pausing(pause: Pause = lambda _: 21 * MS) -> Run:
    """A job that is idle for half of its time without a reason that was recorded."""
    return Run.from_frames({0: on_cpu(pause)})


def words(run: Run) -> str:
    """The verdict, and what all findings say."""
    found = answers(run)
    return " ".join([verdict(found), *(worded(finding).summary + worded(finding).cause for finding in found.findings)])


@pytest.mark.parametrize(
    ("run", "limits", "said"),
    [
        (stalling(), at("idle-time", stalled_ratio=1.01), "most of it in every 4th step"),
        (stalling(mark="checkpoint: torch.save"), at("checkpoint", stalled_ratio=1.01), "in every 4th step"),
        (stalling(), at("lost_time", regular_ratio=1.01), "in every 4th step"),
        (stalling(), at("lost_time", beats=20), "in every 4th step"),
        (stalling(), at("lost_time", distances=0), "in every 4th step"),
        (sleeping(), at("idle-time", function_ratio=1.01), "time.sleep"),
        (
            Run.from_frames({0: recorded(STEP * 4)}),
            at("iterations", multiples_ratio=1),
            "4 iterations found by repetition",
        ),
        (pausing(lambda step: 4600 * MS if step == 21 else 0), at("time_by_rank", length_factor=999), "Step 21 takes"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_each_limit_decides_what_is_said(run: Run, limits: Callable[[Run], Run], said: str) -> None:
    assert said in words(run)
    assert said not in words(limits(run))


def test_from_how_much_idle_time_on_the_verdict_names_it_is_a_limit() -> None:
    run = at("idle-time", unexplained_ratio=1.01, paused_ratio=1.01)(pausing())
    later = at("verdict", much_idle_ratio=0.6)(run)

    assert verdict(answers(run)).startswith("No single thing to change stands out, but ranks are idle 52% of the time")
    assert verdict(answers(later)).startswith("Nothing stands out.")


def test_a_stall_counts_even_where_any_share_does() -> None:
    run = at("idle-time", stalled_ratio=0)(stalling())

    assert "in every 4th step" in words(run)
    assert "every" not in words(at("idle-time", stalled_ratio=0)(pausing()))
