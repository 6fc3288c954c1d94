"""Operators on the cores of a device: blocks, bounds, dynamic shapes, and those on the AI CPU."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice import advise
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import OPERATORS, SLICES, STACKS
from tests.analysis.device.cores import cube, on_ai_cpu, tables_of_cores, vector


def _run(*works: dict, ranks: int = 1, **about: object) -> Run:
    return Run.from_frames({rank: tables_of_cores(list(works), steps=2, **about) for rank in range(ranks)})


def test_work_is_summed_by_shapes_and_its_pipes_are_means_by_time() -> None:
    run = _run(cube(300, aic_mac_ratio=0.9), cube(100, aic_mac_ratio=0.5), cube(100, "8,8;8,8"))
    first, other = run.analyse("operator_work").to_dicts()

    assert (first["count"], first["total_ns"], first["counted"]) == (4, 800_000, 4)
    assert first["mac_ratio"] == pytest.approx(0.8)
    assert (other["input_shapes"], other["counted"], other["mac_ratio"]) == ("8,8;8,8", 0, None)


def test_blocks_are_compared_with_cores_of_their_kind() -> None:
    mixed = cube(100, core="MIX_AIC", block_dim=24, mix_block_dim=36)
    rows = _run(vector("Sum", 100, block_dim=7), vector("Add", 100, block_dim=60), mixed, cube(50))
    found = {row["type"]: (row["cores"], row["idle_ratio"]) for row in rows.analyse("block_dims").to_dicts()[:3]}

    assert found["Sum"] == (48, pytest.approx(1 - 7 / 48))
    assert found["Add"] == (48, pytest.approx(1 - 60 / 96))
    assert found["MatMulV3"] == (48, pytest.approx(1 - 36 / 48))


def test_without_the_number_of_cores_nothing_is_said_of_blocks() -> None:
    run = _run(vector("Sum", 100, block_dim=7), ai_cores=None, vector_cores=None)
    with pytest.raises(Unavailable, match="number of the device's cores"):
        run.analyse("block_dims")


def test_the_busiest_pipe_limits_an_operator_and_none_if_it_is_not_busy() -> None:
    run = _run(
        cube(300, aic_mac_ratio=0.9, aic_mte2_ratio=0.3), vector("Add", 100, aiv_vec_ratio=0.2, aiv_mte2_ratio=0.4)
    )
    bound, free = run.analyse("operator_bounds").to_dicts()

    assert (bound["bound"], bound["space_ns"]) == ("mac", 0)
    assert (free["bound"], free["space_ratio"], free["space_ns"]) == ("none", pytest.approx(0.5), 100_000)


def test_a_state_that_is_not_recorded_is_unknown() -> None:
    (row,) = _run(cube(9, state="dynamic"), cube(9), cube(9, state=None)).analyse("dynamic_operators").to_dicts()
    assert (row["dynamic"], row["static"], row["unknown"], row["count"]) == (2, 2, 2, 6)

    with pytest.raises(Unavailable, match="static or dynamic"):
        _run(cube(9, state=None)).analyse("dynamic_operators")


def test_a_single_dynamic_operator_is_found_and_hides_nothing() -> None:
    run = _run(cube(900), vector("Sum", 400, block_dim=7, state="dynamic"))
    found = {finding.rule: finding for finding in advise(run, strict=True)}

    assert {"dynamic-shape", "block-dim"} <= set(found)
    assert found["dynamic-shape"].where["operators"] == ["Sum"]
    assert found["dynamic-shape"].severity == "low"


def test_uneven_work_on_all_ranks_saves_at_most_the_idle_share() -> None:
    run = _run(cube(900), vector("Sum", 100, block_dim=24), ranks=2)
    (finding,) = [one for one in advise(run, strict=True) if one.rule == "block-dim"]

    assert (finding.saving_ns, finding.saving_low_ns, finding.severity) == (50_000, 0, "medium")
    assert finding.ranks == [0, 1]


def _with_code(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The second kernel launched by an operator with a stack."""
    kernels = tables["kernels"].with_columns(correlation=pl.col("kernel"))
    call = {"slice": [0], "start_ns": [0], "duration_ns": [5], "name": ["aten::grid_sampler_2d"]}
    text = "torch/nn/functional.py(9): grid_sample\n/train/model.py(7): forward"
    return {
        **tables,
        "kernels": kernels,
        "operators": OPERATORS.frame(**call, stack=[0]),
        "slices": SLICES.frame(**call, category=["operator"], correlation=[1]),
        "stacks": STACKS.frame(stack=[0], text=[text]),
    }


def test_operators_on_the_ai_cpu_with_types_code_and_the_time_that_nothing_hides() -> None:
    hidden = vector("Add", 30, stream=1)
    tables = tables_of_cores([cube(100), on_ai_cpu(50), hidden])
    kernels = tables["kernels"].with_columns(
        start_ns=pl.when(pl.col("kernel") == 2).then(120_000).otherwise("start_ns")
    )
    run = Run.from_frames({0: _with_code({**tables, "kernels": kernels})})
    (row,) = run.analyse("ai_cpu_operators").to_dicts()

    assert (row["total_ns"], row["exposed_ns"], row["rare_types"]) == (50_000, 20_000, ["DOUBLE"])
    assert (row["operator"], row["code"]) == ("aten::grid_sampler_2d", "/train/model.py(7): forward")
    (finding,) = [one for one in advise(run, strict=True) if one.rule == "ai-cpu"]
    assert (finding.saving_ns, finding.code) == (20_000, ("/train/model.py(7): forward",))


def test_only_some_ranks_on_the_ai_cpu_save_nothing_that_is_known() -> None:
    ranks = {rank: tables_of_cores([cube(100), *([on_ai_cpu(50)] if rank else [])]) for rank in range(2)}
    (finding,) = [one for one in advise(Run.from_frames(ranks), strict=True) if one.rule == "ai-cpu"]

    assert (finding.saving_ns, finding.ranks) == (0, [1])


def test_short_calls_on_the_ai_cpu_are_no_finding() -> None:
    assert not [one for one in advise(_run(cube(100), on_ai_cpu(19)), strict=True) if one.rule == "ai-cpu"]
