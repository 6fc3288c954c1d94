"""Phases that only the operators show, of graphs that update weights while they go backward."""

from __future__ import annotations

import polars as pl
from phases import US, operators, steps

from stepscope.run import Run

LOSS = "SparseSoftmaxCrossEntropyWithLogits"
FORWARD = [("Conv2D", 0, 100), ("MatMul", 100, 200)]
BACKWARD = [("MatMul", 340, 400), ("ReluGrad", 400, 450), ("BiasAddGrad", 450, 500)]
UPDATE = [("ApplyMomentum", 500, 520), ("ApplyMomentum", 520, 540)]


def parts(*rows: tuple[str, int, int]) -> tuple[int | None, ...]:
    """Forward, backward and optimizer of a step with these operators, in us."""
    ran = operators(list(rows))
    run = Run.from_frames({0: {"steps": steps(1), "operators": ran}})
    return run.analyse("step_trace").select(pl.col("forward_ns", "backward_ns", "optimizer_ns") // US).row(0)


def test_backward_begins_with_the_loss_that_runs_again_for_its_gradient() -> None:
    assert parts(*FORWARD, (LOSS, 200, 300), (LOSS, 300, 340), *BACKWARD, *UPDATE) == (300, 200, 40)


def test_of_two_losses_the_later_two_runs_are_gradients() -> None:
    losses = [(LOSS, 200, 230), (LOSS, 230, 260), (LOSS, 260, 300), (LOSS, 300, 340)]

    assert parts(*FORWARD, *losses, *BACKWARD, *UPDATE) == (260, 240, 40)


def test_a_loss_that_runs_once_or_without_backward_is_forward() -> None:
    assert parts(*FORWARD, (LOSS, 200, 300), *BACKWARD)[:2] == (400, 100)
    assert parts(*FORWARD, (LOSS, 200, 300), (LOSS, 300, 340))[0] == 340


def test_a_loss_with_a_place_in_the_model_is_told_by_that() -> None:
    placed = [(f"Default/net/{LOSS}-op1", 200, 300), (f"Gradients/Default/net/{LOSS}-op2", 300, 340)]

    assert parts(*FORWARD, *placed, *BACKWARD, *UPDATE) == (300, 200, 40)


def test_weights_that_are_updated_between_backward_operators_leave_these_to_backward() -> None:
    """Also what lies between two operators of backward and has no telling name."""
    first = [("ReluGrad", 200, 300), ("ApplyMomentum", 300, 320), ("ApplyMomentum", 320, 330)]
    rest = [("MatMul", 330, 400), ("Conv2DBackpropFilter", 400, 600), ("ApplyMomentum", 600, 610)]

    assert parts(*FORWARD, *first, *rest) == (200, 370, 40)
