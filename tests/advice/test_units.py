"""Times and savings are told by what they are of: steps, iterations that were found, the recording, or batches."""

from __future__ import annotations

import inspect
import re
from typing import Any, Literal

import polars as pl
import pytest

from stepscope.advice import RULES, Finding, advise, worded
from stepscope.advice.advise import completed
from stepscope.advice.finding import Platform, per_of
from stepscope.run import Run
from stepscope.tables import OPERATORS, RANKS, SLICES, STEPS
from tests.advice.examples import Tables, examples, found, ranks_of
from tests.advice.test_platforms import NOT_EVERYWHERE, PLATFORMS
from tests.analysis.inputs import MS, batches
from tests.analysis.test_memory_hints import stepping

Kind = Literal["step", "iteration", "recording"]
KINDS: tuple[Kind, ...] = ("step", "iteration", "recording")
NAMES = ("aten::stack", "aten::conv2d", "aten::relu", "aten::nll_loss", "ConvolutionBackward0")
COUNT = 10
STEP_NS = 10 * MS


def looping(kind: Kind) -> Tables:
    """A loop of ten times 10 ms that waits 2 ms for data each time, compiles now and then, and launches kernels whose
    times are not recorded; its steps are marked, can be found, or neither."""
    starts = [n * STEP_NS for n in range(COUNT)]
    ran = [(start + place * MS, name) for start in starts for place, name in enumerate(NAMES, start=2)]
    marks = [(start + MS, 2 * MS, "annotation", "enumerate(DataLoader)#Loader.__next__") for start in starts]
    marks += [(starts[n] + 8 * MS, length * MS, "compile", "entire_frame_compile") for n, length in COMPILES.items()]
    marks += [(start, 1000, "runtime", "cudaLaunchKernel") for start in starts]
    begun, length, category, name = zip(*marks, strict=True)
    return {
        "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cuda"]),
        "steps": windows(kind),
        "operators": OPERATORS.frame(
            slice=list(range(len(ran))),
            name=[name if kind != "recording" else f"{name}_{n}" for n, (_, name) in enumerate(ran)],
            thread=["1"] * len(ran),
            start_ns=[start for start, _ in ran],
            duration_ns=[MS // 2] * len(ran),
            step=[0] * len(ran),
        ),
        "slices": SLICES.frame(
            slice=[1000 + n for n in range(len(marks))],
            start_ns=list(begun),
            duration_ns=list(length),
            category=list(category),
            name=list(name),
        ),
    }


COMPILES = {0: 6, 2: 2, 5: 2}
"""Place of a step to what it compiles, in ms."""


def windows(kind: Kind) -> pl.DataFrame:
    """The table of steps."""
    marked = kind == "step"
    starts = [n * STEP_NS for n in range(COUNT)] if marked else [0]
    ends = [start + STEP_NS for start in starts] if marked else [COUNT * STEP_NS]
    return STEPS.frame(
        step=list(range(1, COUNT + 1)) if marked else [0], start_ns=starts, end_ns=ends, window_start_ns=starts,
        window_end_ns=ends, window=["host"] * COUNT if marked else ["recording"],
    )  # fmt: skip


def told(kind: Kind, rule: str, **more: pl.DataFrame) -> list[Finding]:
    """What a rule says of such a loop."""
    return found({**looping(kind), **more}, rule)


def test_the_loops_are_what_they_are_called() -> None:
    for kind in KINDS:
        run = Run.from_frames({0: looping(kind)})

        assert run.analyse(per_of) == kind
        assert (run.iterations is not None) == (kind == "iteration")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("step", "2.00 ms per step on average, 20% of step time."),
        ("iteration", "2.00 ms per iteration on average, 20% of iteration time."),
    ],
)
def test_a_loader_is_waited_for_in_steps_or_iterations(kind: Kind, words: str) -> None:
    (finding,) = told(kind, "data-loader")

    assert words in worded(finding).summary
    assert (finding.per, finding.saving_ns) == (kind, 2 * MS)


def test_of_a_loader_in_a_recording_without_steps_nothing_is_known_but_one_sum() -> None:
    assert told("recording", "data-loader") == []


@pytest.mark.parametrize(("kind", "one"), [("step", "step"), ("iteration", "iteration")])
def test_what_is_compiled_again_is_counted_in_steps_or_iterations(kind: Kind, one: str) -> None:
    again, once = told(kind, "compile-time")

    assert f"compiles again in 2 {one}s after the first" in worded(again).summary
    assert f"what came later in {one}s 3,6" in worded(again).cause
    assert (again.saving_ns, again.per) == (400_000, kind)
    assert f"6.00 ms compiling in {one} 1 (6% of the recorded time), once." in worded(once).summary


def test_compiling_in_a_recording_without_steps_is_its_total() -> None:
    (finding,) = told("recording", "compile-time")

    assert worded(finding).summary == "Rank 0 spends 10.00 ms compiling (10% of the recorded time), once."
    assert (finding.saving_ns, finding.per) == (0, "recording")


FULL, EMPTY = batches("device_queue", [9] * COUNT), batches("get_next", [0] * COUNT, get_ms=[3] * COUNT)
QUEUES = {
    "an empty host queue": ("host-queue", batches("dataset_iterator", [0] * COUNT, get_ms=[40, *[3] * (COUNT - 1)])),
    "an empty data queue": ("data-queue", pl.concat([FULL, EMPTY])),
    "taking batches": ("data-queue", batches("get_next", [3] * COUNT, get_ms=[1] * COUNT)),
}


@pytest.mark.parametrize(
    ("case", "of_a_step", "of_all", "ratio"),
    [
        ("an empty host queue", 3 * MS, 27 * MS, 0.3),
        ("an empty data queue", 4 * MS, 36 * MS, 0.4),
        ("taking batches", 2 * MS, 20 * MS, 0.2),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_queue_costs_each_step_a_batch_and_the_recording_all(
    case: str, of_a_step: int, of_all: int, ratio: float, kind: Kind
) -> None:
    rule, pipeline = QUEUES[case]

    (finding,) = told(kind, rule, input_pipeline=pipeline)

    saving = of_all if kind == "recording" else of_a_step
    assert (finding.per, finding.saving_ns, finding.saving_ratio) == (kind, saving, pytest.approx(ratio))
    assert case != "an empty data queue" or "10 of 10 batches (100%)" in worded(finding).summary


@pytest.mark.parametrize("kind", ["step", "iteration"])
def test_memory_grows_in_each_step_or_iteration(kind: Kind) -> None:
    curve = stepping([100_000_000 + n * 4_000_000 for n in range(COUNT)])

    (finding,) = told(kind, "memory-leak", memory_curve=curve)

    assert f"in each {kind}: 32.00 MB over 9 {kind}s." in worded(finding).summary
    assert f"each {kind} makes stays alive: what is in use between {kind}s rises" in worded(finding).cause
    assert finding.per == kind


def test_a_recording_without_steps_shows_no_growth() -> None:
    curve = stepping([100_000_000 + n * 4_000_000 for n in range(COUNT)])

    assert told("recording", "memory-leak", memory_curve=curve) == []


def test_where_no_steps_were_recorded_at_all_a_batch_is_what_a_queue_costs() -> None:
    late = batches("dataset_iterator", [0] * COUNT, get_ms=[3] * COUNT)

    (finding,) = advise(Run.from_frames({0: {"input_pipeline": late}}))

    assert (finding.rule, finding.per, finding.saving_ns, worded(finding).saving) == (
        "host-queue",
        "batch",
        3 * MS,
        "Costs about 3.00 ms per batch (30%); how much of that could be saved is unknown",
    )


@pytest.mark.parametrize("kind", ["iteration", "recording"])
def test_findings_without_a_saving_are_of_no_step_either(kind: Kind) -> None:
    findings = advise(Run.from_frames({0: looping(kind)}))

    assert findings
    assert {finding.per for finding in findings} == {kind}


def by(rule: str, window: str | None) -> list[Finding]:
    """All that a rule may say where steps are of a kind (`steps.window`); None: without a table of steps."""
    fits = NOT_EVERYWHERE.get(rule, lambda _: True)
    of = next(filter(fits, [Platform("mindspore", "npu"), *PLATFORMS]))
    findings = []
    for given in examples(rule, of):
        changed: dict[str, Any] = {}
        if "steps" in inspect.signature(RULES[rule].function).parameters:
            changed["steps"] = None if window is None else pl.LazyFrame({"rank": [0], "window": [window]})
        if given.get("breakdown") is not None:
            changed["breakdown"] = given["breakdown"].with_columns(window=pl.lit(window or "recording"))
        findings += RULES[rule].function(**{**given, **changed})
    per = per_of(None if window is None else pl.LazyFrame({"window": [window]}))
    return [completed(finding, RULES[rule], ranks_of(of), per) for finding in findings]


OF_STEPS = ("iteration-interval", "step-interval")
"""Rules about a table of steps: without one they have nothing to report."""


@pytest.mark.parametrize("window", ["repetition", "recording", None])
@pytest.mark.parametrize("rule", sorted(set(RULES) - set(OF_STEPS)))
def test_no_rule_calls_anything_else_a_step(rule: str, window: str | None) -> None:
    findings = by(rule, window)

    assert findings
    for finding in findings:
        for text in (worded(finding).summary, worded(finding).cause, worded(finding).saving):
            assert not re.search(r"\bsteps?\b", text), text


def test_the_sweep_would_notice_a_step() -> None:
    words = [worded(finding).saving for rule in RULES for finding in by(rule, "host") if finding.saving_ns]

    assert len(words) > 10
    assert all(" per step" in text for text in words)
