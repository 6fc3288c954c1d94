"""Commands agree with each other about a run, and show no table of which nothing is known."""

from __future__ import annotations

import os
import pty
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import stepscope.cli.opening
import stepscope.run
from stepscope.analysis.step.step_trace import PHASES
from stepscope.cli import main, notes
from stepscope.pages import steps
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, RANKS, STEPS
from tests.advice.test_units import COUNT, Kind, looping
from tests.analysis.inputs import batches, usage_of
from tests.analysis.test_memory_hints import stepping

US, MS = 1_000, 1_000_000
LAYERS = ["aten::conv2d", "aten::relu", "aten::mm", "aten::nll_loss", "MmBackward0", "ConvolutionBackward0"]

Shown = Callable[..., str]


@pytest.fixture
def shown(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a command prints about a run in memory."""

    def command(run: Run, *words: str) -> str:
        monkeypatch.setattr(stepscope.cli.opening, "open_run", lambda *_, **__: run)
        monkeypatch.setattr(stepscope.run, "open_runs", lambda *_, **__: [run])
        main([words[0], "anywhere", *words[1:]])
        return "".join(capfd.readouterr())

    return command


def without_steps(loops: int) -> dict[str, pl.DataFrame]:
    """A rank that marks no steps and runs the same operators again and again."""
    count = loops * len(LAYERS)
    bounds = {"start_ns": [0], "end_ns": [count * 20 * US], "window_start_ns": [0], "window_end_ns": [count * 20 * US]}
    return {
        "ranks": RANKS.frame(device_kind=["cpu"]),
        "steps": STEPS.frame(step=[0], window=["recording"], **bounds),
        "operators": OPERATORS.frame(
            slice=range(count), name=LAYERS * loops, thread=["1"] * count, step=[0] * count,
            start_ns=[n * 20 * US for n in range(count)], duration_ns=[10 * US] * count,
        ),
    }  # fmt: skip


def communication_only() -> dict[str, pl.DataFrame]:
    """A rank whose steps are known, and of whose device only communication was recorded."""
    starts = [10 * MS, 20 * MS]
    ends = [20 * MS, 30 * MS]
    return {
        "ranks": RANKS.frame(device_kind=["npu"]),
        "steps": STEPS.frame(
            step=[1, 2], start_ns=starts, end_ns=ends, window_start_ns=starts, window_end_ns=ends,
            window=["stated"] * 2,
        ),
        "kernels": KERNELS.frame(
            kernel=[0, 1], start_ns=starts, duration_ns=[MS] * 2, kind=["communication"] * 2, name=["all_reduce"] * 2,
            device=[0] * 2, stream=[1] * 2, step=[1, 2],
        ),
    }  # fmt: skip


def test_info_counts_the_iterations_that_the_other_commands_count(shown: Shown) -> None:
    run = Run.from_frames({0: without_steps(4)})

    assert "4 iterations found by repetition" in shown(run, "steps")
    assert "no steps; 4 iterations" in shown(run, "info")


def test_info_shows_no_iterations_where_none_are_certain(shown: Shown) -> None:
    text = shown(Run.from_frames({0: without_steps(2)}), "info")

    assert "no steps" in text
    assert "iterations" not in text


def test_steps_of_which_no_phase_is_known_are_shown_without_phases(shown: Shown) -> None:
    text = shown(Run.from_frames({0: communication_only()}), "steps")

    assert "Steps by phase" not in text
    assert "Steps: 2 rows" in text
    assert "Phases are unknown: what ran in the steps was not recorded." in text


def test_the_command_knows_the_phases_of_the_analysis() -> None:
    assert steps.PHASES == PHASES


def test_nothing_is_left_where_a_table_has_nothing_to_say(shown: Shown) -> None:
    for command in ("ops", "flops", "memory", "steps"):
        assert "\n\n\n" not in shown(Run.from_frames({0: without_steps(4)}), command)


def test_the_share_of_no_time_is_none(shown: Shown) -> None:
    tables = without_steps(2)
    idle = {**tables, "operators": tables["operators"].with_columns(self_ns=pl.lit(0, pl.Int64))}

    text = shown(Run.from_frames({0: idle}), "analyze")

    assert "0.0%" in text and "nan" not in text


@pytest.mark.parametrize("columns", [80, 100])
def test_sentences_on_standard_error_are_wrapped_in_a_terminal(monkeypatch: Any, columns: int) -> None:
    text = "the recording has no samples of host usage; " * 5

    lines = in_terminal(monkeypatch, columns, lambda: notes.note(text))

    assert max(map(len, lines)) <= columns
    assert len(lines) > 1
    assert " ".join(line.strip() for line in lines) == f"stepscope: {text.strip()}"
    assert all(line.startswith("  ") for line in lines[1:])


def test_lines_of_an_error_stay_lines(monkeypatch: Any) -> None:
    lines = in_terminal(monkeypatch, 80, lambda: notes.note("two files:\n  a.json: is empty\n  b.json: is empty"))

    assert lines == ["stepscope: two files:", "  a.json: is empty", "  b.json: is empty"]


def test_what_is_no_terminal_gets_one_line(capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    notes.note("word " * 60)

    assert len(capfd.readouterr().err.splitlines()) == 1


def in_terminal(monkeypatch: Any, columns: int, print_: Callable[[], None]) -> list[str]:
    """The lines that something prints where standard error is a terminal."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", str(columns))
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        print_()
        terminal.flush()
        text = os.read(ours, 65536).decode()
    os.close(ours)
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def test_long_names_are_cut_where_they_are_alike() -> None:
    kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int, " + "x" * 99 + ")"
    operator = "Gradients/Default/network-TrainOneStepCell/" + "y/" * 40 + "Conv2D-op24"

    assert steps._short("aten::mm") == "aten::mm"
    assert steps._short(kernel) == kernel[: steps.LONGEST_NAME] + "…"
    assert steps._short(operator) == "…" + operator[-steps.LONGEST_NAME :]


COMMANDS = ("analyze", "steps", "ops", "flops", "memory", "shapes", "input", "functions", "host", "gaps")


def everything(kind: Kind) -> Run:
    """A CPU job with something for every command, whose steps are marked, can be found, or neither."""
    tables = looping(kind)
    shapes = {"input_shapes": pl.lit("[[2, 3], [3, 4]]"), "name": pl.col("name").str.replace("relu", "mm")}
    queues = [batches("device_queue", [9] * COUNT), batches("get_next", [0] * COUNT, get_ms=[3] * COUNT)]
    return Run.from_frames(
        {
            0: {
                **tables,
                "ranks": RANKS.frame(framework=["pytorch"], device_kind=["cpu"]),
                "slices": tables["slices"].filter(pl.col("category") != "runtime"),
                "operators": tables["operators"].with_columns(**shapes),
                "memory_curve": stepping([100 * MS] * COUNT),
                "input_pipeline": pl.concat(queues),
                "host_usage": usage_of("host", [0.9] * 30),
            }
        }
    )


@pytest.mark.parametrize("kind", ["iteration", "recording"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_calls_anything_else_a_step(shown: Shown, command: str, kind: Kind) -> None:
    text = shown(everything(kind), command)

    about_marks = r"No steps are marked|marks no steps|where no steps are marked|recorded of one step"
    assert not re.findall(r"(?i)\bsteps?\b.*", re.sub(about_marks, "", text))


@pytest.mark.parametrize(
    ("command", "kind", "patterns"),
    [
        ("steps", "step", ("Steps by phase: 10 rows", r"\nphase +steps", r"\nstep +10 ")),
        ("steps", "iteration", ("Iterations by phase: 10 rows", r"\nphase +iterations", r"\niteration +10 ")),
        ("steps", "recording", ("Recording by phase: 1 row",)),
        ("flops", "step", ("Operations of a step: 1 row", r" step .*\nsteps +time")),
        ("flops", "iteration", ("Operations of an iteration: 1 row", r"\niterations +time")),
        ("input", "iteration", ("Waiting for data by iteration: ",)),
        ("input", "recording", ("Waiting for data in the recording: 1 row",)),
        ("analyze", "step", ("Idle time by cause, all ranks and steps", r" step .*\nrank +time")),
        ("analyze", "iteration", ("Idle time by cause, all ranks and iterations", r" iteration .*\nrank +time")),
        ("analyze", "recording", ("Idle time by cause, all ranks\n", "rank +time")),
    ],
)
def test_tables_are_headed_by_what_times_are_of(
    shown: Shown, command: str, kind: Kind, patterns: tuple[str, ...]
) -> None:
    text = shown(everything(kind), command)

    for pattern in patterns:
        assert re.search(pattern, text), text
