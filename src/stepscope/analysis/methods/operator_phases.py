"""Backward and optimizer phases of steps without marks, from the operators that ran."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.micro_batches import in_turns
from stepscope.tables.operators import BACKWARD, OPTIMIZER_SCOPE

OPERATORS = {
    "backward": r"^autograd::engine::|::AccumulateGrad$|Backward\d*$|_backward$|^npu::\w+_grad$|"
    + BACKWARD
    + r"|Grad(V\d+)?(-op\d+)?$|Backprop(Filter|Input)(-op\d+)?$",
    "optimizer": OPTIMIZER_SCOPE + r"|(^|/)(Fused)?Apply[A-Z]\w*(-op\d+)?$",
}
"""Operators that identify a phase without marks: PyTorch's autograd, MindSpore's scopes."""

OWN_GRADIENT = r"^SparseSoftmaxCrossEntropyWithLogits(-op\d+)?$"
"""MindSpore's operators that compute their own gradient when they run again (`is_grad`). The scope shows which run it
is; without one, only the order does."""

_TURN = ["rank", "step", "turn_ns"]


def phases_by_operators(operators: pl.LazyFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The ranges of backward and optimizer in each turn of forward and backward.

    Backward lasts from its first operator to its last. A graph may update a weight as soon as its gradient is ready, so
    the optimizer lasts from its first operator to its last without operators of backward in between.

    Args:
        operators: Operators of known steps.
        turns: From `micro_batches.turn_starts`.

    Returns:
        `rank`, `step`, `phase`, `start_ns`, `end_ns`.
    """
    named = {phase: pl.col("name").str.contains(words) for phase, words in OPERATORS.items()}
    rows = operators.filter(pl.any_horizontal(*named.values(), pl.col("name").str.contains(OWN_GRADIENT)))
    timed = rows.select("rank", "step", "start_ns", "name", end_ns=pl.col("start_ns") + pl.col("duration_ns"))
    known = in_turns(timed.collect(), turns).with_columns(**named)
    known = known.sort("rank", "start_ns", "end_ns", "name").with_columns(pl.col("backward") | _second_runs())
    runs = known.with_columns(run=pl.col("backward").cum_sum().over(_TURN))
    span = {"start_ns": pl.col("start_ns").min(), "end_ns": pl.col("end_ns").max()}
    found = {
        "backward": runs.filter("backward").group_by(_TURN).agg(**span),
        "optimizer": runs.filter("optimizer").group_by(*_TURN, "run").agg(**span),
    }
    columns = ("rank", "step", "phase", "start_ns", "end_ns")
    return pl.concat(rows.with_columns(phase=pl.lit(phase)).select(columns) for phase, rows in found.items())


def _second_runs() -> pl.Expr:
    """The later half of the runs of an operator that computes its own gradient, in turns with backward."""
    keys = [*_TURN, "name"]
    count, place = pl.len().over(keys), pl.int_range(pl.len()).over(keys)
    is_later = (count % 2 == 0) & (2 * place >= count)
    return pl.col("name").str.contains(OWN_GRADIENT) & is_later & pl.col("backward").any().over(_TURN)
