"""Jobs on hosts in memory, and their export and reading back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from stepscope import Run, open_run
from stepscope.export.ascend_ms.directory import write_ascend_ms
from stepscope.export.rank_export import RankExport
from stepscope.tables import (
    ALLOCATIONS,
    COLLECTIVES,
    FLOWS,
    GROUPS,
    MEMORY_CURVE,
    OPERATORS,
    RANKS,
    SLICES,
    STEPS,
)

EPOCH_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000_001
"""Odd, so that three decimals of a microsecond matter."""
US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def export(run: Run, directory: Path, **options: Any) -> dict[int, RankExport]:
    """Write the directories of all ranks of a run below `directory`."""
    made = {}
    for rank in run.ranks:
        alone = run.select(ranks=[rank.rank])
        made[rank.rank] = RankExport(alone, rank.rank, directory, options.pop("about", {}), directory, **options)
        write_ascend_ms(made[rank.rank])
    return made


def read_back(directory: Path) -> Run:
    """Open what was written."""
    return open_run(directory, use_store=False)


def output(directory: Path, rank: int = 0) -> Path:
    """The output folder of a rank."""
    (found,) = directory.glob(f"rank-{rank}_*_ascend_ms/ASCEND_PROFILER_OUTPUT")
    return found


def host_run(steps: int = 3) -> Run:
    """Two ranks without devices: a step loads data, multiplies, reduces over both, and rank 0 sends to rank 1."""
    return Run.from_frames({rank: _host_rank(rank, list(range(1, steps + 1))) for rank in range(2)})


def _host_rank(rank: int, steps: list[int]) -> dict[str, pl.DataFrame]:
    starts = [EPOCH_NS + (step - 1) * STEP_NS for step in steps]
    ends = [start + STEP_NS for start in starts]
    facts = {"world_size": [2], "host": ["node"], "process": [4000 + rank], "device_kind": ["cpu"]}
    told = {"framework": ["pytorch"], "framework_version": ["2.9"], "mode": ["eager"], "backend": ["gloo"]}
    return {
        "ranks": RANKS.frame(rank=[rank], **facts, **told, start_ns=[starts[0]], end_ns=[ends[-1]]),
        "steps": STEPS.frame(
            step=steps,
            start_ns=starts,
            end_ns=ends,
            window_start_ns=starts,
            window_end_ns=ends,
            window=["host"] * len(steps),
        ),
        **_ranges(rank, steps, starts),
        "collectives": _calls(rank, steps, starts),
        "groups": GROUPS.frame(group=["pair"], name=["dp"], members=[[0, 1]]),
        "allocations": ALLOCATIONS.frame(
            name=["aten::empty", None],
            size_bytes=[1032, 7],
            allocation_ns=[starts[0] + 5, starts[0] + 7],
            release_ns=[starts[0] + 9, None],
        ),
        "memory_curve": MEMORY_CURVE.frame(
            time_ns=[starts[0] + 5, starts[0] + 7, starts[0] + 9],
            component=["PyTorch"] * 3,
            allocated_bytes=[1032, 1039, 7],
            reserved_bytes=[0, 0, 0],
        ),
    }


def _ranges(rank: int, steps: list[int], starts: list[int]) -> dict[str, pl.DataFrame]:
    """In each step: loading, a multiplication with a call inside, and its backward on another thread."""
    main, other = str(4000 + rank), "77"
    names = [LOADER, "aten::linear", "aten::mm", "MmBackward0"]
    threads, sequences = [main, main, main, other], [None, 1, 1, 1]
    begins, lengths = [3, 100 * US + 1, 110 * US, 900 * US], [90 * US, 500 * US, 300 * US + 1, 250 * US]
    count = len(steps)
    slices = SLICES.frame(
        slice=range(4 * count),
        start_ns=[start + begin for start in starts for begin in begins],
        duration_ns=lengths * count,
        self_ns=[90 * US, 200 * US - 1, 300 * US + 1, 250 * US] * count,
        category=["annotation", "operator", "operator", "operator"] * count,
        name=names * count,
        process=[main] * (4 * count),
        thread=threads * count,
        depth=[0, 0, 1, 0] * count,
        step=[step for step in steps for _ in range(4)],
    )
    called = slices.filter(pl.col("category") == "operator").select(OPERATORS.schema.keys() & set(slices.columns))
    told = {
        "input_shapes": ["[[8, 4], [4, 2]]", "[[8, 4], [4, 2]]", None] * count,
        "input_types": ['["float", "float"]', '["float", "float"]', None] * count,
        "sequence": sequences[1:] * count,
    }
    operators = OPERATORS.conform(called.with_columns(pl.Series(name, values) for name, values in told.items()))
    flows = FLOWS.frame(
        kind=["forward_backward"] * count,
        flow=[str(step) for step in steps],
        from_ns=[start + 100 * US + 1 for start in starts],
        from_thread=[main] * count,
        to_ns=[start + 900 * US for start in starts],
        to_thread=[other] * count,
    )
    return {"slices": SLICES.conform(slices), "operators": operators, "flows": flows}


def _calls(rank: int, steps: list[int], starts: list[int]) -> pl.DataFrame:
    """In each step an all-reduce of 4 MB, then a send from rank 0 to rank 1."""
    count = len(steps)
    point = "send" if rank == 0 else "recv"
    return COLLECTIVES.frame(
        collective=range(2 * count),
        group=["pair"] * (2 * count),
        sequence=range(2 * count),
        operation=["all_reduce", point] * count,
        name=["gloo:all_reduce", f"gloo:{point}"] * count,
        size_bytes=[4_000_000, 2_000_000] * count,
        element_type=["float", "long int"] * count,
        group_size=[2] * (2 * count),
        peer=[None, 1 - rank] * count,
        start_ns=[start + begin for start in starts for begin in (2_000_003, 6_000_000)],
        duration_ns=[2_000_000, 1_000_000] * count,
        on_device=[False] * (2 * count),
        step=[step for step in steps for _ in range(2)],
    )
