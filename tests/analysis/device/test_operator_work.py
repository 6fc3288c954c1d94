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
    assert finding.code == ("/train/model.py(7): forward",)
    assert [one.saving_ns for one in advise(_run(cube(100), on_ai_cpu(50))) if one.rule == "ai-cpu"] == [50_000]


def test_ranks_on_the_ai_cpu_save_what_the_job_waits_for_them() -> None:
    works = {0: [cube(120)], 1: [cube(100), on_ai_cpu(50)]}
    ranks = {rank: tables_of_cores(own) for rank, own in works.items()}
    (finding,) = [one for one in advise(Run.from_frames(ranks), strict=True) if one.rule == "ai-cpu"]

    assert (finding.saving_ns, finding.ranks) == (30_000, [1])


def test_short_calls_on_the_ai_cpu_are_no_finding() -> None:
    assert not [one for one in advise(_run(cube(100), on_ai_cpu(19)), strict=True) if one.rule == "ai-cpu"]


def _found(run: Run, rule: str) -> list:
    return [one for one in advise(run, strict=True) if one.rule == rule]


def test_a_low_clock_in_one_step_of_one_rank_is_found_with_what_it_costs() -> None:
    busy = [cube(900, aic_mac_ratio=0.9, aic_mte2_ratio=0.3), vector("Add", 100)]
    low = tables_of_cores(busy, steps=3, clock=[(0, 1800.0), (2_000_000, 1440.0)])
    fine = tables_of_cores(busy, steps=3, clock=[(0, 1800.0)])
    run = Run.from_frames({0: fine, 1: low})
    (row,) = run.analyse("throttled_operators").to_dicts()

    assert (row["rank"], row["step"], row["type"], row["count"]) == (1, 2, "MatMulV3", 1)
    assert (row["decreased_ratio"], row["lost_ns"]) == (pytest.approx(0.2), 180_000)
    (finding,) = _found(run, "low-clock")
    assert (finding.ranks, finding.where["steps"], finding.parameters["mean_mhz"]) == ([1], [2], 1440)


def test_the_rate_of_idle_cores_between_kernels_is_no_throttling() -> None:
    clock = [(0, 1800.0), (900_000, 800.0), (1_010_000, 1800.0), (1_900_000, 800.0), (2_010_000, 1800.0)]
    run = Run.from_frames({0: tables_of_cores([cube(900, gap_ns=100_000)], steps=3, clock=clock)})

    assert run.analyse("throttled_operators").is_empty()
    assert not _found(run, "low-clock")


def test_a_device_that_is_held_at_the_rate_of_idle_cores_is_throttled() -> None:
    run = Run.from_frames({0: tables_of_cores([cube(900)], steps=2, clock=[(0, 800.0)])})

    assert run.analyse("throttled_operators")["decreased_ratio"].to_list() == [pytest.approx(1 - 800 / 1800)] * 2


ODD = "8192,1000;1000,8192"
"""Shapes of a product with an inner axis that is no multiple of 256; 167 MB."""


def _efficiency(*works: dict) -> list[dict]:
    return _run(*works).analyse("operator_efficiency").to_dicts()


def test_matrix_products_are_judged_by_the_nearest_pipe_and_by_their_inner_axes() -> None:
    good = cube(900, aic_mac_ratio=0.82, aic_mte2_ratio=0.3)
    poor = cube(800, ODD, output_shapes="8192,8192", aic_mac_ratio=0.4, aic_mte2_ratio=0.3)
    first, second = _efficiency(good, poor, cube(700, "64,64;64,64", output_shapes="64,64", aic_mac_ratio=0.1))

    assert (first["bound"], first["space_ns"], first["unaligned"]) == (True, 0, [])
    assert (second["bound"], second["unaligned"], second["multiple"]) == (False, [1000], 256)
    assert second["space_ratio"] == pytest.approx(0.5)


def test_quoted_shapes_are_read_as_plain_ones() -> None:
    plain, quoted = "4096,4096;4096,4096", '"4096,4096;4096,4096"'
    assert [row["unaligned"] for row in _efficiency(cube(9, plain), cube(9, quoted))] == [[], []]


@pytest.mark.parametrize(
    ("shapes", "outputs", "odd"),
    [
        ("4096,1,4096;4096,1,4096", "1,32,4096,8;1,32,4096,8;4096,1,4096", []),
        ("1000,1,4096;1000,1,4096", "1,64,1000,8;1,64,1000,8;1000,1,4096", [64, 1000]),
        ("2,32,4096,80;2,32,4096,80", "", [80]),
        ("4096,1,4096;4096,1,4096", "4096,1,4096", None),
    ],
)
def test_heads_and_sequences_of_attention(shapes: str, outputs: str, odd: list[int] | None) -> None:
    attention = cube(900, shapes, type="FlashAttentionScore", core="MIX_AIC", output_shapes=outputs, aic_mac_ratio=0.5)
    (row,) = _efficiency(attention)

    assert (row["unit"], row["unaligned"]) == ("attention", odd)


def test_vector_operators_are_at_their_limit_by_one_pipe_or_by_their_sum() -> None:
    ratios = [{"aiv_vec_ratio": 0.7}, {"aiv_vec_ratio": 0.3, "aiv_mte2_ratio": 0.6}, {"aiv_mte3_ratio": 0.35}]
    rows = _efficiency(*(vector(f"V{place}", 100, **one) for place, one in enumerate(ratios)))

    assert [(row["bound"], round(row["space_ratio"], 3)) for row in rows] == [(True, 0), (True, 0), (False, 0.5)]


def test_without_counters_only_sizes_are_judged() -> None:
    (row,) = _efficiency(cube(900))
    assert (row["bound"], row["space_ns"]) == (None, None)
    assert not _found(_run(cube(900)), "operator-efficiency")
    (finding,) = _found(_run(cube(900, ODD, output_shapes="8192,8192")), "operator-efficiency")
    assert (finding.severity, finding.saving_ns) == ("low", 0)


def test_an_operator_that_nothing_limits_is_found_though_the_first_is_limited_and_told_once() -> None:
    free = vector("Transpose", 300, block_dim=48, aiv_vec_ratio=0.2, aiv_mte2_ratio=0.4, aiv_mte3_ratio=0.3)
    run = _run(cube(900, aic_mac_ratio=0.9), free)

    assert [finding.where["operators"] for finding in _found(run, "operator-bound")] == [["Transpose"]]
    assert not _found(run, "operator-efficiency")
    (finding,) = _found(run, "operator-bound")
    assert (finding.saving_low_ns, finding.confidence) == (0, "possible")


def test_the_parts_of_a_step_add_up_with_computing_by_class() -> None:
    both = vector("Add", 100, stream=1)
    tables = tables_of_cores([cube(300), on_ai_cpu(50), both, cube(70, type="FlashAttentionScore", core="MIX_AIC")])
    start = pl.when(pl.col("kernel") == 2).then(250_000).otherwise("start_ns")
    run = Run.from_frames({0: {**tables, "kernels": tables["kernels"].with_columns(start_ns=start)}})
    rows = run.analyse("overall_summary")

    found = dict(rows.select("part", "length_ns").iter_rows())
    assert found == {"attention": 70_000, "matmul": 300_000, "vector": 50_000, "idle": 100_000}
    assert rows["length_ns"].sum() == run.analyse("breakdown")["window_ns"].sum()
    assert dict(rows.select("part", "kernel_ns").iter_rows())["vector"] == 100_000
