"""Small recordings of training steps whose phases are known, times in microseconds."""

from __future__ import annotations

import polars as pl

from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, SLICES, STEPS

US = 1_000
STEP = 1000
"""Length of a step."""


def steps(count: int, **columns: object) -> pl.DataFrame:
    """Steps from 1 that follow each other."""
    starts = [n * STEP * US for n in range(count)]
    ends = [start + STEP * US for start in starts]
    bounds = {"start_ns": starts, "end_ns": ends, "window_start_ns": starts, "window_end_ns": ends}
    return STEPS.frame(step=list(range(1, count + 1)), **bounds, **{"window": ["host"] * count, **columns})


def operators(rows: list[tuple[str, int, int]], count: int = 1, **columns: object) -> pl.DataFrame:
    """Operators (name, start, end) of each of some steps."""
    every = [(n, step, *row) for step in range(count) for n, row in enumerate(rows, step * len(rows))]
    return OPERATORS.frame(
        slice=[row[0] for row in every],
        step=[row[1] + 1 for row in every],
        name=[row[2] for row in every],
        start_ns=[(row[1] * STEP + row[3]) * US for row in every],
        duration_ns=[(row[4] - row[3]) * US for row in every],
        self_ns=[(row[4] - row[3]) * US for row in every],
        thread=["1"] * len(every),
        **columns,
    )


def marks(rows: list[tuple[str, int, int]], count: int = 1) -> pl.DataFrame:
    """Annotations (name, start, end) of each of some steps."""
    every = [(step, *row) for step in range(count) for row in rows]
    return SLICES.frame(
        slice=list(range(1000, 1000 + len(every))),
        step=[row[0] + 1 for row in every],
        category=["annotation"] * len(every),
        name=[row[1] for row in every],
        start_ns=[(row[0] * STEP + row[2]) * US for row in every],
        duration_ns=[(row[3] - row[2]) * US for row in every],
        depth=[0] * len(every),
    )


def kernels(rows: list[tuple[str, str, int, int, int | None]], **columns: object) -> pl.DataFrame:
    """Device work (kind, name, launch, start, end) of one step."""
    return KERNELS.frame(
        kernel=list(range(len(rows))),
        step=[1] * len(rows),
        kind=[row[0] for row in rows],
        name=[row[1] for row in rows],
        launch_start_ns=[None if row[2] is None else row[2] * US for row in rows],
        start_ns=[row[3] * US for row in rows],
        duration_ns=[(row[4] - row[3]) * US for row in rows],
        **columns,
    )


TRAINING = [
    ("aten::embedding", 100, 200),
    ("aten::mm", 200, 400),
    ("autograd::engine::evaluate_function: MmBackward0", 420, 700),
    ("aten::mm", 430, 690),
    ("aten::_fused_adamw_", 760, 900),
]

MARKS = [
    ("data: loader", 0, 100),
    ("Optimizer.zero_grad#AdamW.zero_grad", 720, 740),
    ("Optimizer.step#AdamW.step", 750, 950),
]


def on_host(count: int = 1, **more: pl.DataFrame) -> Run:
    """A CPU-only training of some steps."""
    return Run.from_frames(
        {
            0: {
                "steps": steps(count),
                "operators": operators(TRAINING, count),
                "slices": marks(MARKS, count),
                **more,
            }
        }
    )
