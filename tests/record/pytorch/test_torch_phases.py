"""What a step is made of: closures, validation, checkpoints, compiling; and that the first pass is recorded whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

torch = pytest.importorskip("torch")

from torch_recorder import Net, attached, batches  # noqa: E402

import stepscope  # noqa: E402
from stepscope.record import analysing  # noqa: E402
from stepscope.record.callbacks import lightning  # noqa: E402
from stepscope.run import open_run  # noqa: E402

MS = 1_000_000


class Slow(torch.nn.Module):  # type: ignore[misc]
    """A layer that takes its time, so that shares of a step can be told apart."""

    def forward(self, x: Any) -> Any:
        time.sleep(0.004)
        return torch.nn.functional.linear(x, torch.ones(4, 4)) * 1.0


def recorded(out: Path, train: Callable[[], None], **options: Any) -> pl.DataFrame:
    """The phases of the steps that `train` takes, in the order of steps."""
    profiler = stepscope.Profiler(output_path=str(out), framework="torch", **options)
    train()
    profiler.stop()
    return open_run(out, use_store=False).analyse("step_trace").sort("step")


def slow_model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(4, 4), Slow(), torch.nn.Linear(4, 1))


def closure_of(model: Any, optimizer: Any) -> Callable[[], Any]:
    """Forward and backward as Lightning's `LightningModule.optimizer_step` gives them to the optimizer."""

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(8, 4)).square().mean()
        loss.backward()
        return loss

    return closure


@pytest.mark.parametrize("op_time", [True, False])
@pytest.mark.parametrize("kind", ["SGD", "LBFGS"])
def test_forward_and_backward_in_a_closure_are_no_optimizer(tmp_path: Path, kind: str, op_time: bool) -> None:
    model = slow_model()
    options = {"max_iter": 3} if kind == "LBFGS" else {}
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=1e-3, **options)

    def train() -> None:
        for _ in range(4):
            optimizer.step(closure_of(model, optimizer))

    steps = recorded(tmp_path, train, op_time=op_time)

    assert steps.height == 4
    assert steps["forward_ns"].min() > 3 * MS  # type: ignore[operator]
    assert steps["backward_ns"].min() > 0  # type: ignore[operator]
    assert (steps["optimizer_ns"] > 0).all()


def validate(model: Any, data: Any) -> None:
    model.eval()
    with torch.no_grad():
        for x in data:
            model(x)
    model.train()


def update(model: Any, optimizer: Any, x: Any, aim: Any = 0) -> None:
    optimizer.zero_grad()
    (model(x) - aim).square().mean().backward()
    optimizer.step()


def train_and_validate(validation: Any, training: Any) -> None:
    """Eight steps, and validation before the fifth."""
    model = slow_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for number, x in enumerate(training):
        if number == 4:
            validate(model, validation)
        update(model, optimizer, x)


def loader(count: int) -> Any:
    return torch.utils.data.DataLoader(torch.ones(count * 2, 4), batch_size=2)


@pytest.mark.parametrize("validation", [loader(3), [torch.ones(2, 4)] * 3], ids=["loader", "list"])
@pytest.mark.parametrize("training", [loader(8), [torch.ones(2, 4)] * 8], ids=["loader", "list"])
def test_validation_is_a_phase_of_its_own(tmp_path: Path, validation: Any, training: Any) -> None:
    steps = recorded(tmp_path, lambda: train_and_validate(validation, training))

    assert steps.height == 8
    assert (steps["validation_ns"] > 3 * 3 * MS).to_list() == [number == 5 for number in range(1, 9)]
    assert (steps["validation_ns"] > 0).sum() == 1
    fifth = steps.row(4, named=True)
    assert fifth["forward_start_ns"] > fifth["start_ns"] + 3 * 3 * MS


def test_a_teacher_is_part_of_forward(tmp_path: Path) -> None:
    teacher, model = slow_model().eval(), Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train() -> None:
        for x in loader(5):
            with torch.no_grad():
                aim = teacher(x)
            update(model, optimizer, x, aim)

    steps = recorded(tmp_path, train)

    assert steps["validation_ns"].null_count() == steps.height
    assert (steps["forward_ns"] > 3 * MS).all()


def test_a_model_that_is_trained_in_evaluation_mode_does_not_validate(tmp_path: Path) -> None:
    model = slow_model().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    steps = recorded(tmp_path, lambda: [update(model, optimizer, x) for x in loader(4)])

    assert steps["validation_ns"].null_count() == steps.height
    assert (steps["forward_ns"] > 3 * MS).all()


def test_a_checkpoint_is_a_phase_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = slow_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    monkeypatch.setattr(torch, "save", lambda *_: time.sleep(0.02))

    def train() -> None:
        for number in range(4):
            if number == 2:
                torch.save({}, "file")
            update(model, optimizer, torch.ones(2, 4))

    steps = recorded(tmp_path, train)

    assert (steps["checkpoint_ns"] > 15 * MS).to_list() == [False, False, True, False]


def test_compiling_is_marked(tmp_path: Path) -> None:
    model = torch.compile(Net(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with attached() as recorder:
        for x in batches(3):
            model(x).square().mean().backward()
            optimizer.step()
        model(torch.ones(5, 4, requires_grad=True))
    found = recorder.of("compile")
    assert [mark[1] for mark in found][:1] == ["torch.compile"]
    assert {mark[4] for mark in found} <= {1, 4}
    import torch._dynamo.callback as callbacks

    assert not callbacks.callback_handler.start_callbacks


SCRIPT = """
import torch
model = torch.nn.Linear(256, 256, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
x = torch.ones(64, 256)
for _ in range(2):
    model(x).sum().backward()
    optimizer.step()
"""


def test_the_first_forward_pass_is_recorded_without_a_loader(tmp_path: Path) -> None:
    """Recording that the environment starts begins before the first pass, not after it."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "stepscope", "record", "-o", str(tmp_path / "out"), "--", sys.executable]
    subprocess.run([*command, str(script)], check=True, timeout=240, capture_output=True, env=dict(os.environ))

    operators = open_run(tmp_path / "out", use_store=False).table("operators").collect()

    # of each step one product forward and one backward, for the weight
    products = operators.filter(pl.col("name") == "aten::mm").group_by("step").len().sort("step")
    assert products.rows() == [(1, 2), (2, 2)]


class Trainer:
    """Calls what Lightning's Trainer calls: a closure for each step, and validation in the middle of the epoch."""

    def __init__(self, callback: Any) -> None:
        self.callback, self.global_step, self.current_epoch = callback, 0, 0

    def fit(self, model: Any, optimizer: Any, steps: int) -> None:
        self.callback.on_train_start(self, model)
        self.callback.on_train_epoch_start(self, model)
        for batch in range(steps):
            optimizer.step(closure_of(model, optimizer))
            self.global_step += 1
            self.callback.on_train_batch_end(self, model, None, None, batch)
            if batch == 2:
                self.callback.on_validation_start(self, model)
                validate(model, [torch.ones(2, 4)] * 2)
                time.sleep(0.02)  # metrics
                self.callback.on_validation_end(self, model)
        self.callback.on_train_epoch_end(self, model)
        self.callback.on_train_end(self, model)


def test_a_trainer_with_closures_that_validates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callback = type("LightningCallback", (lightning._Methods, object), {})(output_path=str(tmp_path))
    monkeypatch.setattr(analysing, "analyse", lambda *_: None)
    model = slow_model()

    Trainer(callback).fit(model, torch.optim.Adam(model.parameters(), lr=1e-3), 6)

    steps = open_run(tmp_path, use_store=False).analyse("step_trace").sort("step")
    assert steps["step"].to_list() == [1, 2, 3, 4, 5, 6]
    assert (steps["forward_ns"] > 3 * MS).all()
    assert (steps["backward_ns"] > 0).all()
    assert (steps["validation_ns"] > 25 * MS).to_list() == [False, False, False, True, False, False]
