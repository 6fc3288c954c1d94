"""The phases of training as operators show them: turns of forward and backward within a step (micro-batches, several
losses), phases without marks, and phases whose marks show launches.

In MindSpore's PyNative mode a call returns once its operators are queued. The mark of a backward pass therefore ends
while most of its operators are still waiting to run, and the mark of the optimizer begins before they do.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.batches import batches
from stepscope.analysis.methods.intervals import END, outside, starting_in, union, with_latest
from stepscope.analysis.methods.names import named
from stepscope.analysis.methods.ordering import in_order
from stepscope.analysis.methods.statistics import grouped_in_memory
from stepscope.tables import KERNELS, RANKS
from stepscope.tables.operators import BACKWARD, OPTIMIZER_SCOPE

ENGINE = "autograd::engine::"
"""Prefix of PyTorch's autograd ranges, each of which covers one node of the graph."""

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

UPDATE = (
    OPTIMIZER_SCOPE + r"|(?i)(^|/)"
    r"((assign|\w*(apply|adam|momentum|adagrad|ftrl|lamb)|lars|rprop)\w*|sgd)(-op\d+)?$"
)
"""Operators that update parameters or the step counter. In PyNative mode, operators of optimizers have no scope."""

_STEP = ["rank", "step"]
_TURN = [*_STEP, "turn_ns"]
_BOUND = {"rank": pl.Int32, "turn_ns": pl.Int64}


def turn_starts(
    operators: pl.LazyFrame, marked: pl.DataFrame, resets: pl.DataFrame, others: pl.DataFrame
) -> pl.DataFrame:
    """Find where a new turn of forward and backward begins within steps; each step begins with its first turn.

    A turn begins with the first operator of forward after a range of backward, after an optimizer, and when a closure
    called by an optimizer sets gradients to zero: the time between that and the previous backward belongs to the
    optimizer. If neither autograd's ranges nor marks show backward, a step is one turn.

    Args:
        operators: Operators of known steps; `forward` marks those that may belong to a forward pass.
        marked: Ranges of the phases that annotations mark.
        resets: Ranges that set gradients to zero (`rank`, `start_ns`, `end_ns`).
        others: Disjoint ranges in which operators do not belong to a forward pass (`rank`, `start_ns`, `end_ns`).

    Returns:
        `rank`, `turn_ns`, in order of time.
    """
    engine = operators.filter(pl.col("name").str.starts_with(ENGINE))
    closed = pl.concat(
        [
            engine.select("rank", "step", "start_ns", end_ns=END).collect(),
            marked.filter(pl.col("phase") == "backward").select("rank", "step", "start_ns", "end_ns"),
        ]
    )
    if closed.is_empty():
        return pl.DataFrame(schema=_BOUND)
    updates = marked.filter(pl.col("phase") == "optimizer").join(closed, on=["rank", "step"], how="semi")
    backward = union(closed, by=["rank"]).with_row_index("before")
    times = ("rank", "start_ns", "end_ns")
    around = union(pl.concat([backward.select(times), others.select(times)]), by=["rank"])
    last = backward.select("rank", "before", "start_ns").sort("start_ns")
    counts, parts = [], []
    for batch in batches(operators.filter("forward").select("rank", "thread", "start_ns")):
        counts.append(grouped_in_memory(batch, ["rank", "thread"], [pl.len()]))
        forward = with_latest(outside(batch, around), last).drop_nulls("before")
        parts.append(forward.group_by("before", "thread").agg(pl.col("rank").first(), pl.col("start_ns").min()))
    # operators on loaders' threads do not belong to a forward pass
    firsts = pl.concat(parts).join(_most_busy(pl.concat(counts)), on=["rank", "thread"], how="semi", nulls_equal=True)
    after = firsts.group_by("before").agg(pl.col("rank").first(), pl.col("start_ns").min())
    bounds = [
        after.select("rank", turn_ns="start_ns"),
        updates.select("rank", turn_ns="end_ns"),
        starting_in(resets, updates).select("rank", turn_ns="end_ns"),
    ]
    return pl.concat(bounds).unique().sort("turn_ns", "rank")


def in_turns(rows: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The rows with `turn_ns` of the turn in which they start; null before the first turn."""
    return with_latest(rows, turns.sort("turn_ns").with_columns(start_ns="turn_ns"))


def _most_busy(counts: pl.DataFrame) -> pl.DataFrame:
    """The thread of each rank with the most operators (`len`, in parts)."""
    sums = counts.group_by("rank", "thread").agg(pl.col("len").sum())
    ordered = sums.sort("rank", "len", "thread", descending=[False, True, False])
    return ordered.group_by("rank", maintain_order=True).agg(pl.col("thread").first())


def phases_by_operators(operators: pl.LazyFrame, turns: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """The ranges of backward and optimizer in each turn (`turn_starts`) of forward and backward.

    Backward lasts from its first operator to its last. A graph may update a weight as soon as its gradient is ready, so
    the optimizer lasts from its first operator to its last without operators of backward in between.

    Args:
        operators: Operators of known steps.
        turns: See `turn_starts`.
        names: Names of the operators, perhaps with others.

    Returns:
        `rank`, `step`, `phase`, `start_ns`, `end_ns`.
    """
    patterns = {**OPERATORS, "own": OWN_GRADIENT}
    questions = {phase: pl.col("name").str.contains(words) for phase, words in patterns.items()}
    asked = named(operators, names, **questions)
    rows = operators.filter(pl.any_horizontal(*asked.values()))
    span = {"start_ns": pl.col("start_ns").min(), "end_ns": pl.col("end_ns").max()}
    if names.filter(questions["optimizer"] | questions["own"]).is_empty():  # the order of operators does not matter
        parts = [
            in_turns(batch, turns).group_by(_TURN).agg(**span)
            for batch in batches(rows.select("rank", "step", "start_ns", end_ns=END))
        ]
        found = {"backward": pl.concat(parts).group_by(_TURN).agg(**span)}
    else:
        timed = rows.select("rank", "step", "start_ns", "name", end_ns=END, **asked)
        known = in_order(in_turns(timed.collect(), turns), "rank", "start_ns", "end_ns", "name")
        if known["own"].any():
            known = known.with_columns(pl.col("backward") | _second_runs())
        runs = known.with_columns(run=pl.col("backward").cum_sum().over(_TURN))
        found = {
            "backward": runs.filter("backward").group_by(_TURN).agg(**span),
            "optimizer": runs.filter("optimizer").group_by(*_TURN, "run").agg(**span),
        }
    columns = ("rank", "step", "phase", "start_ns", "end_ns")
    return pl.concat(rows.with_columns(phase=pl.lit(phase)).select(columns) for phase, rows in found.items())


def _second_runs() -> pl.Expr:
    """The later half of the runs of an operator that computes its own gradient (`own`), in turns with backward."""
    keys = [*_TURN, "name"]
    count, place = pl.len().over(keys), pl.int_range(pl.len()).over(keys)
    is_later = (count % 2 == 0) & (2 * place >= count)
    return pl.col("own") & is_later & pl.col("backward").any().over(_TURN)


def marks_launches(ranks: pl.LazyFrame | None, kernels: pl.LazyFrame | None) -> list[int]:
    """The ranks whose marks of phases show launches, and whose operators show when the work ran."""
    eager = (pl.col("framework") == "mindspore") & (pl.col("mode") == "pynative")
    found = RANKS.or_empty(ranks).filter(eager).select("rank").unique()
    with_device = KERNELS.or_empty(kernels).select("rank").unique()
    return list(found.join(with_device, on="rank", how="anti").collect()["rank"].sort())


def as_executed(marked: pl.DataFrame, operators: pl.LazyFrame | None, ranks: list[int]) -> pl.DataFrame:
    """Phases (`rank`, `step`, `phase`, `start_ns`, `end_ns`) in which backward lasts until its last operator, and the
    optimizer begins after it; of `ranks` from `marks_launches`.

    The last operator of backward is the one before the first parameter update that starts after the end of backward's
    mark. Steps without such an update keep their marks.
    """
    backward = marked.filter((pl.col("phase") == "backward") & pl.col("rank").is_in(ranks)).drop_nulls("step")
    if operators is None or backward.is_empty():
        return marked
    launched = backward.group_by(_STEP).agg(launched_ns=pl.col("end_ns").max())
    rows = operators.select(*_STEP, "name", "start_ns", end_ns=END)
    known = rows.join(launched.lazy(), on=_STEP).collect()
    updates = known.filter(pl.col("name").str.contains(UPDATE) & (pl.col("start_ns") >= pl.col("launched_ns")))
    before = known.join(updates.group_by(_STEP).agg(update_ns=pl.col("start_ns").min()), on=_STEP)
    executed = before.filter(pl.col("start_ns") < pl.col("update_ns"))
    ends = executed.group_by(_STEP).agg(executed_ns=pl.max_horizontal("launched_ns", "end_ns").max())
    both = marked.join(launched.join(ends, on=_STEP), on=_STEP, how="left", maintain_order="left")
    is_last = (pl.col("phase") == "backward") & (pl.col("end_ns") == pl.col("launched_ns"))
    follows = (pl.col("phase") == "optimizer") & (pl.col("start_ns") >= pl.col("launched_ns"))
    moved = both.with_columns(
        start_ns=pl.when(follows).then(pl.max_horizontal("start_ns", "executed_ns")).otherwise("start_ns"),
        end_ns=pl.when(is_last).then("executed_ns").otherwise("end_ns"),
    )
    return moved.filter(pl.col("end_ns") > pl.col("start_ns")).select(marked.columns)
