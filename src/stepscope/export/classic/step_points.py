"""Where forward begins and backward ends in each step, and which operators stand there."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.recording_format.rows import MARKS
from stepscope.tables.scopes import BACKWARD

FORWARD_VARIABLE, BACKWARD_VARIABLE = "PROFILING_FP_START", "PROFILING_BP_END"

_OPTIMIZER = r"/optimizer-\w+/"
"""Scope of MindSpore's optimizers, of which a graph may run some operators first."""

_UPDATE = r"(?i)^(assign|.*apply|.*adam|.*momentum|.*adagrad|.*ftrl|.*lamb|lars|rprop|sgd$)"
"""Operators that write parameters or the count of steps: in PyNative those of optimizers carry no scope."""

_KEYS = {"step": pl.Int32, "launched_ns": pl.Int64}


@dataclass(frozen=True)
class Points:
    """The points of all steps.

    Args:
        forward_ns: Step to the start of its forward pass; steps without are left out.
        backward_ns: Step to the end of its backward pass.
        first_forward: Name of the operator at the first point; empty where unknown.
        last_backward: Likewise at the second.
    """

    forward_ns: dict[int, int]
    backward_ns: dict[int, int]
    first_forward: str
    last_backward: str

    @property
    def training(self) -> bool:
        """Whether there is a backward pass at all."""
        return bool(self.backward_ns)


def find_points(export: RankExport, steps: pl.DataFrame, operators: pl.LazyFrame) -> Points:
    """Find the points of some steps.

    Args:
        export: Its environment may name the operators; its marks tell phases.
        steps: Rows of `steps`, in order.
        operators: Named operators.
    """
    ours = operators.filter(pl.col("step").is_in(steps["step"].to_list())).select(
        "step",
        "start_ns",
        "full_name",
        "op_name",
        "op_type",
        "subgraph",
        end_ns=pl.col("start_ns") + pl.col("duration_ns"),
    )
    environment = export.about.get("environment") or {}
    forward_ns = _named(ours, environment.get(FORWARD_VARIABLE), pl.col("start_ns").min())
    forward_ns = (
        forward_ns or _of_steps(steps, "forward_start_ns") or _marked(export, "forward", pl.col("start_ns").min())
    )
    is_gradient = (pl.col("subgraph") == "Gradients") | pl.col("full_name").str.contains(BACKWARD)
    gradients = ours.filter(is_gradient)
    backward_ns = (
        _named(ours, environment.get(BACKWARD_VARIABLE), pl.col("end_ns").max())
        or _backward_marks(export, steps, ours)
        or _by_step(gradients, pl.col("end_ns").max())
    )
    forward_ns = forward_ns or _by_step(ours.filter(~is_gradient), pl.col("start_ns").min())
    return Points(forward_ns, backward_ns, _first(ours, forward_ns), _last(gradients, ours, backward_ns))


def _named(operators: pl.LazyFrame, name: str | None, point: pl.Expr) -> dict[int, int]:
    """The point of the operator that the user named, in full or in short, in each step."""
    if not name:
        return {}
    return _by_step(operators.filter((pl.col("full_name") == name) | (pl.col("op_name") == name)), point)


def _by_step(rows: pl.LazyFrame, point: pl.Expr) -> dict[int, int]:
    return dict(rows.group_by("step").agg(point.alias("at")).collect().select("step", "at").iter_rows())


def _of_steps(steps: pl.DataFrame, column: str) -> dict[int, int]:
    return dict(steps.filter(pl.col(column).is_not_null()).select("step", column).iter_rows())


def _marked(export: RankExport, kind: str, point: pl.Expr) -> dict[int, int]:
    marks = export.raw(MARKS)
    return _by_step(marks.filter((pl.col("kind") == kind) & pl.col("step").is_not_null()).lazy(), point)


def _backward_marks(export: RankExport, steps: pl.DataFrame, operators: pl.LazyFrame) -> dict[int, int]:
    """The ends of the backward pass by its marks; in PyNative, whose marks tell launches, when its operators ended."""
    marks = _of_steps(steps, "backward_end_ns") or _marked(export, "backward", pl.col("end_ns").max())
    if not marks or not export.is_mindspore or export.about.get("mode") != "pynative":
        return marks
    launched = pl.LazyFrame({"step": list(marks), "launched_ns": list(marks.values())}, schema_overrides=_KEYS)
    known = operators.join(launched, on="step")
    updates = pl.col("full_name").str.contains(_OPTIMIZER) | pl.col("op_type").str.contains(_UPDATE)
    first = known.filter(updates & (pl.col("start_ns") >= pl.col("launched_ns")))
    first = first.group_by("step").agg(updated_ns=pl.col("start_ns").min())
    before = known.join(first, on="step").filter(pl.col("start_ns") < pl.col("updated_ns"))
    return marks | _by_step(before, pl.max_horizontal(pl.col("end_ns").max(), pl.col("launched_ns").max()))


def _first(operators: pl.LazyFrame, forward_ns: dict[int, int]) -> str:
    """The operator that starts first at or after a forward point, of the first step that has one."""
    for step, at in sorted(forward_ns.items()):
        mine = operators.filter(
            (pl.col("step") == step) & (pl.col("start_ns") >= at) & ~pl.col("full_name").str.contains(_OPTIMIZER)
        )
        found = mine.sort("start_ns", maintain_order=True).head(1).collect()
        if found.height:
            return str(found["full_name"][0])
    return ""


def _last(gradients: pl.LazyFrame, operators: pl.LazyFrame, backward_ns: dict[int, int]) -> str:
    """The operator of the backward pass, or of any, that ends last at or before a backward point."""
    for step, at in sorted(backward_ns.items()):
        for rows in (gradients, operators):
            mine = rows.filter((pl.col("step") == step) & (pl.col("end_ns") <= at))
            found = mine.sort("end_ns", "start_ns").tail(1).collect()
            if found.height:
                return str(found["full_name"][0])
    return ""
