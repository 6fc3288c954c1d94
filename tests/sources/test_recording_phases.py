"""Which forward passes of a recording train, and which validate or warm up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_recording import read

from recordings import MS, Raw
from stepscope.sources.recording import lines

STEP = 100


def names(raw: Raw) -> list[tuple[str, int]]:
    """Annotations of the phases, with their step."""
    slices = read(raw)[0]["slices"].filter(pl.col("name").str.contains("^(forward|validation|warm_up)"))
    return slices.sort("start_ns", "duration_ns", descending=[False, True]).select("name", "step").rows()


def training(tmp_path: Path, apart: tuple[int, ...] = (), how: str = "", *, loads: bool = False, **more: Any) -> Raw:
    """Five steps with a forward pass that trains at 50 ms; at the start of some, passes that may be no training."""
    raw = Raw(tmp_path)
    for step in range(1, 6):
        start = (step - 1) * STEP
        if step in apart:
            passes(raw, step, how, loads=loads, **more)
        if loads:
            raw.mark("data", "Loader", (start + 40) * MS, (start + 41) * MS, step)
        raw.mark("forward", "Net", (start + 50) * MS, (start + 60) * MS, step)
        raw.mark("backward", "", (start + 60) * MS, (start + 70) * MS, step)
        raw.steps((step, start * MS, (start + STEP) * MS))
    return raw


def passes(raw: Raw, step: int, how: str, *, count: int = 2, name: str = "Net", loads: bool = False) -> Raw:
    start = (step - 1) * STEP
    for number in range(count):
        at = start + 10 * number
        if loads:
            raw.mark("data", "Loader", at * MS, (at + 1) * MS, step)
        raw.mark("forward", name, (at + 2) * MS, (at + 9) * MS, step, detail={"words": how})
    return raw


TRAINED = [("forward: Net", step) for step in range(1, 6)]
VALIDATED = [("validation", 3), ("validation: Net", 3), ("validation: Net", 3)]


@pytest.mark.parametrize("how", ["eval no_grad", "eval", "no_grad"])
def test_passes_before_a_batch_that_is_trained_on_validate(tmp_path: Path, how: str) -> None:
    raw = training(tmp_path, (3,), how, loads=True)
    assert names(raw) == sorted([*TRAINED, *VALIDATED], key=lambda row: (row[1], row[0][0] != "v"))
    steps = read(raw)[0]["steps"].sort("step")
    begins = steps["forward_start_ns"] - steps["start_ns"]
    assert begins.to_list() == [50 * MS] * 5


def test_where_nothing_is_loaded_the_model_tells(tmp_path: Path) -> None:
    assert ("validation: Net", 3) in names(training(tmp_path, (3,), "eval no_grad"))


@pytest.mark.parametrize(("how", "name"), [("eval no_grad", "Teacher"), ("no_grad", "Net")])
def test_what_a_step_needs_besides_is_its_forward(tmp_path: Path, how: str, name: str) -> None:
    assert (f"forward: {name}", 3) in names(training(tmp_path, (3,), how, name=name))


def test_what_every_step_does_is_training(tmp_path: Path) -> None:
    raw = training(tmp_path, (1, 2, 3, 4, 5), "eval no_grad", count=1)
    assert {name for name, _ in names(raw)} == {"forward: Net"}


def test_inference_is_no_validation(tmp_path: Path) -> None:
    raw = Raw(tmp_path).steps(*((n, (n - 1) * STEP * MS, n * STEP * MS) for n in range(1, 6)))
    for step in range(1, 6):
        passes(raw, step, "eval no_grad")
    assert {name for name, _ in names(raw)} == {"forward: Net"}


def test_a_pass_before_training_begins_warms_up(tmp_path: Path) -> None:
    assert names(training(tmp_path, (1,), "no_grad"))[:2] == [("warm_up: Net", 1)] * 2


def test_what_a_trainer_says_goes_first(tmp_path: Path) -> None:
    raw = training(tmp_path, (3,), count=1).mark("validation", "Trainer", 200 * MS, 230 * MS, 3)
    found = sorted(name for name, step in names(raw) if step == 3)
    assert found == ["forward: Net", "validation", "validation: Net", "validation: Trainer"]


def test_a_step_is_judged_as_a_whole_wherever_a_file_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = training(tmp_path, (3,), "no_grad", loads=True)
    whole = names(raw)
    assert ("validation: Net", 3) in whole
    for length in (60, 150, 400):
        monkeypatch.setattr(lines, "BLOCK_BYTES", length)
        assert names(raw) == whole
