"""What torch.compile compiled, as recorded, and what the rule says of it."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import OPERATORS, RANKS, SLICES, STEPS

MS = 1_000_000


def run(*names: str, module: str = "forward: OptimizedModule", steps: int = 2) -> Run:
    """Steps of 100 ms with a pass of a module from 10 ms on, and ranges of 5 ms each inside it."""
    rows = []
    for step in range(1, steps + 1):
        start = step * 100 * MS
        rows.append((start + 10 * MS, 80 * MS, "annotation", module, step))
        rows += [(start + (15 + 6 * at) * MS, 5 * MS, "operator", name, step) for at, name in enumerate(names)]
    frame = pl.DataFrame(rows, schema=["start_ns", "duration_ns", "category", "name", "step"], orient="row")
    numbered = frame.with_row_index("slice").with_columns(thread=pl.lit("1"), depth=pl.lit(0))
    operators = numbered.filter(pl.col("category") == "operator").drop("category", "depth")
    bounds = {"start_ns": [s * 100 * MS for s in range(1, steps + 1)]}
    bounds["end_ns"] = [one + 100 * MS for one in bounds["start_ns"]]
    windows = {f"window_{name}": values for name, values in bounds.items()}
    return Run.from_frames(
        {
            0: {
                "slices": SLICES.conform(numbered),
                "operators": OPERATORS.conform(operators),
                "steps": STEPS.frame(step=[*range(1, steps + 1)], window=["host"] * steps, **bounds, **windows),
                "ranks": RANKS.frame(rank=[0], device_kind=["cpu"], framework=["pytorch"]),
            }
        }
    )


def told(job: Run) -> list[str]:
    return [worded(one).summary for one in advise(job, strict=True) if one.rule == "graph-breaks"]


def test_functions_are_counted_with_their_versions() -> None:
    job = run("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/1", "Torch-Compiled Region: 2/0", "aten::mm")

    rows = job.analyse("compiled_regions")

    assert rows.select("function", "versions", "count", "per_step", "total_ns").rows() == [
        (0, 2, 4, 2.0, 20 * MS),
        (2, 1, 2, 1.0, 10 * MS),
    ]
    assert told(job) == []


def test_many_functions_in_each_step_are_pieces_of_a_model() -> None:
    regions = [f"Torch-Compiled Region: {number}/0" for number in range(4)]

    assert told(run(*regions)) == ["Rank 0 runs 4 compiled functions per step, with Python in between."]
    assert told(run(*regions[:3])) == []


def test_passes_of_a_compiled_module_that_run_nothing_compiled_are_told() -> None:
    assert told(run("aten::mm")) == [
        "Rank 0 runs a compiled model without any compiled code: 2 of its forward passes ran none."
    ]
    assert told(run("CompiledFunction", "aten::mm")) == []
    assert told(run("aten::mm", module="forward: Net")) == []


def test_jobs_without_compiled_code_have_no_answer() -> None:
    with pytest.raises(Unavailable, match=r"nothing that torch\.compile compiled"):
        run("aten::mm", module="forward: Net").analyse("compiled_regions")
