"""Steps that go forward and backward several times: micro-batches, several losses, closures that run again."""

from __future__ import annotations

import polars as pl
import pytest
from phases import STEP, US, marks, on_host, operators, steps

from stepscope.run import Run

NODE = "autograd::engine::evaluate_function: MmBackward0"
UPDATE = "Optimizer.step#SGD.step"
RESET = "Optimizer.zero_grad#SGD.zero_grad"


def parts(run: Run, *columns: str) -> list[tuple[int | None, ...]]:
    """Columns of `step_trace` in us."""
    trace = run.analyse("step_trace")
    rest = pl.col("^(data_wait|compile|exposed_communication|other)_ns$")
    assert (
        trace.select(pl.sum_horizontal(rest, *columns) - pl.col("step_ns")).to_series().to_list() == [0] * trace.height
    )
    return trace.select(pl.col(columns) // US).rows()


PHASES = ("forward_ns", "backward_ns", "optimizer_ns")


@pytest.mark.parametrize("marked", [True, False])
def test_micro_batches_go_forward_and_backward_in_turn(marked: bool) -> None:
    """With marks of backward alone, as scripts set them, or without any."""
    turns = [("aten::mm", 0, 100), (NODE, 100, 150), (NODE, 150, 250)]
    rows = [(name, start + 300 * turn, end + 300 * turn) for turn in range(3) for name, start, end in turns]
    named = [("## backward ##", 300 * turn + 100, 300 * turn + 250) for turn in range(3)] if marked else []

    run = on_host(2, operators=operators(rows, 2), slices=marks([*named, (UPDATE, 900, 950)], 2))

    assert parts(run, *PHASES) == [(300, 450, 50)] * 2


def test_each_network_of_two_goes_forward_and_backward_before_its_own_update() -> None:
    """Operators that follow a backward pass and end in an update, such as clipping, are no forward pass."""
    rows = [("aten::mm", 0, 100), (NODE, 100, 300), ("aten::mul_", 310, 330), ("aten::add_", 345, 395)]
    rows += [("aten::mm", 400, 500), (NODE, 500, 650), ("aten::add_", 700, 800)]

    run = on_host(operators=operators(rows), slices=marks([(UPDATE, 340, 400), ("Optimizer.step#Adam.step", 700, 800)]))

    assert parts(run, *PHASES) == [(200, 350, 160)]


CLOSURES = [
    ("aten::zero_", 12, 18),
    ("aten::mm", 20, 120),
    (NODE, 120, 320),
    ("aten::dot", 330, 380),
    ("aten::zero_", 402, 418),
    ("aten::mm", 420, 520),
    (NODE, 520, 720),
    ("aten::add_", 730, 780),
]
AROUND = [("Optimizer.step#LBFGS.step", 0, 800), (RESET, 10, 20), (RESET, 400, 420)]


def test_what_an_optimizer_computes_between_two_runs_of_its_closure_is_its_own() -> None:
    run = on_host(2, operators=operators(CLOSURES, 2), slices=marks(AROUND, 2))

    assert parts(run, *PHASES) == [(200, 400, 200)] * 2


def test_closures_are_known_without_steps_too() -> None:
    one = steps(1).with_columns(window=pl.lit("recording"), end_ns=pl.lit(2 * STEP * US), window_end_ns=2 * STEP * US)
    rows = operators([("aten::uniform_", 850, 900), *CLOSURES], 2).with_columns(step=pl.lit(1, pl.Int32))
    run = on_host(operators=rows, slices=marks(AROUND, 2).with_columns(step=pl.lit(1, pl.Int32)), steps=one)

    assert parts(run, *PHASES) == [(400, 800, 400)]


def test_operators_of_a_loaders_thread_do_not_part_a_backward_pass() -> None:
    rows = [("aten::mm", 0, 100), ("aten::mm", 100, 200), (NODE, 200, 300), ("aten::copy_", 320, 380), (NODE, 400, 600)]
    threads = ["1", "1", "2", "3", "2"]

    run = on_host(operators=operators(rows).with_columns(thread=pl.Series(threads)), slices=marks([(UPDATE, 700, 800)]))

    assert parts(run, *PHASES) == [(200, 400, 100)]
