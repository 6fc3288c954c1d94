"""Long recordings: only the last steps are replayed."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.replay.replayed_steps import Limits
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNELS, RANKS, STEPS


def run(kernels: list[int]) -> Run:
    """Two ranks with so many kernels of 10 ns in each step of 1000 ns."""
    number = pl.int_range(len(kernels), eager=True).cast(pl.Int64)
    begins = {"start_ns": number * 1000, "end_ns": number * 1000 + 1000}
    windows = {f"window_{name}": values for name, values in begins.items()}
    steps = STEPS.conform(pl.DataFrame({"step": number, **begins, **windows, "window": ["device"] * len(kernels)}))
    rows = [
        {"step": step, "start_ns": step * 1000 + 10 * place, "duration_ns": 10, "kind": "compute", "name": "gemm",
         "stream": 7, "launch_start_ns": step * 1000 + 10 * place, "launch_end_ns": step * 1000 + 10 * place}
        for step, count in enumerate(kernels)
        for place in range(count)
    ]  # fmt: skip
    frames = {
        "steps": steps,
        "kernels": KERNELS.conform(pl.DataFrame(rows).with_row_index("kernel")),
        "ranks": RANKS.conform(pl.DataFrame({"host": ["h"]})),
    }
    return Run.from_frames({0: frames, 1: frames})


@pytest.mark.parametrize(("most", "kept"), [(1000, [0, 1, 2]), (14, [1, 2]), (13, [2]), (6, [2])])
def test_the_last_steps_that_fit_are_replayed(most, kept) -> None:
    found = run([3, 4, 3]).with_limits({"replayed_steps": Limits(most)})

    assert found.analyse("replayed_steps")["step"].to_list() == kept
    assert found.analyse("work").drop_nulls("step")["step"].unique().sort().to_list() == kept
    assert found.analyse("replay")["step"].to_list() == kept


def test_a_step_that_does_not_fit_is_a_reason() -> None:
    found = run([3, 4, 3]).with_limits({"replayed_steps": Limits(5)})

    with pytest.raises(Unavailable, match="a step of 6 kernels and calls is too long"):
        found.analyse("work")
