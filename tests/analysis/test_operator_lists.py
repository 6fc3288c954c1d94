"""Lists of operators: as stated, from kernels, from operators; nothing counts twice."""

from __future__ import annotations

import polars as pl
import pytest
from phases import US, kernels, operators

from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import OPERATOR_TOTALS, RANKS

PLACE = "Default/network/conv1-Conv2d/Conv2D-op1"


def totals(rows: list[dict[str, object]]) -> pl.DataFrame:
    return OPERATOR_TOTALS.conform(pl.DataFrame(rows, infer_schema_length=None))


STATED = [
    {"unit": "AI_CORE", "level": "type", "name": "Conv2D", "count": 8, "total_ns": 800 * US},
    {"unit": "AI_CORE", "level": "type", "name": "Add", "count": 4, "total_ns": 200 * US},
    {
        **{"unit": "AI_CORE", "level": "operator", "name": "Conv2D-op1", "type": "Conv2D", "full_name": PLACE},
        **{"count": 8, "total_ns": 800 * US, "core": "AI_CORE", "subgraph": "Default", "stream": 3},
        **{"cube_flops": 2e9, "vector_flops": 1e6, "inputs": '{"Input_0": {}}'},
    },
    {
        **{"unit": "AI_CPU", "level": "operator", "name": "GetNext", "type": "GetNext", "count": 4},
        **{"total_ns": 40 * US, "wait_ns": 8 * US},
    },
    {"unit": "HOST_CPU", "level": "type", "name": "Dropout", "count": 2, "total_ns": 50 * US, "operators": 1},
    {
        **{"unit": "HOST_CPU", "level": "operator", "name": "Dropout-op3", "type": "Dropout"},
        **{"full_name": "Default/Dropout-op3", "count": 2, "total_ns": 50 * US, "process": 77, "subgraph": "Default"},
    },
    {"unit": None, "level": "kernel", "name": "Add", "count": 1, "total_ns": 1},
    {"unit": "DATASET", "level": "stage", "name": "Map", "count": 1, "total_ns": 1},
]


def test_stated_lists_are_told_with_all_that_is_known() -> None:
    found = Run.from_frames({0: {"operator_totals": totals(STATED)}}).analyse("operator_instances")

    assert found["unit"].to_list() == ["AI_CORE", "AI_CPU", "HOST_CPU"]
    conv = found.row(0, named=True)
    assert (conv["name"], conv["full_name"], conv["mean_ns"], conv["share_ratio"]) == ("Conv2D-op1", PLACE, 100 * US, 1)
    assert conv["cube_flops_per_s"] == pytest.approx(2e9 / 100e-6)
    assert conv["vector_flops_per_s"] == pytest.approx(1e6 / 100e-6)
    assert (conv["stream"], conv["inputs"], conv["subgraph"]) == (3, '{"Input_0": {}}', "Default")
    assert found.row(1, named=True)["mean_wait_ns"] == 2 * US
    assert found.row(2, named=True)["process"] == 77


def test_types_are_as_stated_and_made_of_operators_where_they_are_not() -> None:
    found = Run.from_frames({0: {"operator_totals": totals(STATED)}}).analyse("operator_types")

    rows = found.select("unit", "type", "operators", "count", "mean_ns", "share_ratio").rows()
    assert rows == [
        ("AI_CORE", "Conv2D", 1, 8, 100 * US, pytest.approx(0.8)),
        ("AI_CORE", "Add", None, 4, 50 * US, pytest.approx(0.2)),
        ("AI_CPU", "GetNext", 1, 4, 10 * US, 1.0),
        ("HOST_CPU", "Dropout", 1, 2, 25 * US, 1.0),
    ]


@pytest.mark.parametrize("unit", ["GPU", "PYNATIVE", "CPU"])
def test_other_lists_are_told_alike(unit: str) -> None:
    rows = [{"unit": unit, "level": "operator", "name": "Add-op1", "type": "Add", "count": 2, "total_ns": 4}]

    run = Run.from_frames({0: {"operator_totals": totals(rows)}})

    assert run.analyse("operator_instances")["mean_ns"].to_list() == [2]
    assert run.analyse("operator_types")["unit"].to_list() == [unit]


def test_activities_of_a_gpu_are_a_list_of_their_own() -> None:
    rows = [
        {
            **{"unit": "CUDA", "level": "activity", "name": "void conv<float>", "type": "cuLaunchKernel"},
            **{"count": 4, "total_ns": 40, "min_ns": 5, "max_ns": 15, "stream": 7, "block": "256,1,1", "grid": "8,1,1"},
        },
        {
            **{"unit": "GPU", "level": "operator", "name": "Conv2D-op1", "type": "Conv2D", "count": 2, "total_ns": 50},
            **{"activity_ns": 40, "activities": 4},
        },
    ]

    found = Run.from_frames({0: {"operator_totals": totals(rows)}}).analyse("operator_instances")

    cuda, gpu = found.rows(named=True)
    assert (cuda["min_ns"], cuda["max_ns"], cuda["stream"], cuda["block"], cuda["grid"]) == (5, 15, 7, *_DIMS)
    assert (gpu["activity_ns"], gpu["activities"]) == (40, 4)


_DIMS = ("256,1,1", "8,1,1")

WORK = [
    ("compute", "void gemm<float, (anonymous namespace)::x>(float*)", 10, 100, 200),
    ("compute", "void gemm<float, (anonymous namespace)::x>(float*)", 210, 300, 500),
    ("communication", "ncclKernel_AllReduce(ncclComm*)", 400, 500, 600),
]


def test_kernels_of_a_gpu_are_its_list_each_once() -> None:
    run = Run.from_frames({0: {"kernels": kernels(WORK), "ranks": RANKS.frame(device_kind=["cuda"])}})

    found = run.analyse("operator_instances")

    assert found.select("unit", "kind", "type", "count", "total_ns", "min_ns", "max_ns").rows() == [
        ("CUDA", "compute", "gemm", 2, 300 * US, 100 * US, 200 * US),
        ("CUDA", "communication", "ncclKernel_AllReduce", 1, 100 * US, 100 * US, 100 * US),
    ]
    assert found["share_ratio"].sum() == pytest.approx(1)
    assert run.analyse("operator_types")["share_ratio"].to_list() == pytest.approx([0.75, 0.25])


def test_a_kernel_without_type_has_that_of_its_place_in_the_model() -> None:
    rows = kernels([("compute", f"Default/network/fc-Dense/Cast-op{at}", None, at, at + 1) for at in range(3)])

    found = Run.from_frames({0: {"kernels": rows}}).analyse("operator_types")

    assert found.select("type", "operators", "count").rows() == [("Cast", 3, 3)]


def test_kernels_of_an_ascend_device_stand_under_the_core_that_ran_them() -> None:
    cores = {"core": ["AI_CORE", "AI_CPU", "COMMUNICATION"], "type": ["MatMulV3", "Print", "hcom_allReduce_"]}
    shapes = {"input_shapes": ["2,3;3,5", None, None], "wait_ns": [1, 2, 3]}

    run = Run.from_frames({0: {"kernels": kernels(WORK, **cores, **shapes)}})

    found = run.analyse("operator_instances").select("unit", "type", "core", "input_shapes", "wait_ns").sort("type")
    assert found.rows() == [
        ("AI_CORE", "MatMulV3", "AI_CORE", "2,3;3,5", 1),
        ("AI_CPU", "Print", "AI_CPU", None, 2),
        ("AI_CORE", "hcom_allReduce_", "COMMUNICATION", None, 3),
    ]


def test_copies_of_an_ascend_device_are_no_work_of_its_cores() -> None:
    work = [("compute", "MatMul-op1", None, 0, 10), ("memory", "MEMCPY_ASYNC", None, 10, 100)]
    npu = RANKS.frame(device_kind=["npu"])

    found = Run.from_frames({0: {"kernels": kernels(work), "ranks": npu}}).analyse("operator_types")

    rows = found.select("unit", "type", "share_ratio").rows()
    assert rows == [("AI_CORE", "MatMul-op1", 1.0), ("MEMORY", "MEMCPY_ASYNC", 1.0)]


def test_a_kernel_of_an_ascend_device_whose_core_is_not_known_is_one_of_its_cores() -> None:
    run = Run.from_frames({0: {"kernels": kernels(WORK[:1]), "ranks": RANKS.frame(device_kind=["npu"])}})

    assert run.analyse("operator_instances")["unit"].to_list() == ["AI_CORE"]


NESTED = [("aten::linear", 0, 100), ("aten::addmm", 10, 90), ("aten::relu", 200, 220)]


def nested(**columns: object) -> pl.DataFrame:
    return operators(NESTED, **columns).with_columns(self_ns=pl.Series([20 * US, 80 * US, 20 * US]))


def test_operators_that_call_each_other_share_the_time_without_their_children() -> None:
    found = Run.from_frames({0: {"operators": nested()}}).analyse("operator_types")

    assert found["unit"].unique().to_list() == ["CPU"]
    assert found.select("type", "share_ratio").rows()[0] == ("aten::addmm", pytest.approx(80 / 120))
    assert found["share_ratio"].sum() == pytest.approx(1)
    each = Run.from_frames({0: {"operators": nested()}}).analyse("operator_instances")
    assert each["share_ratio"].to_list() == found["share_ratio"].to_list()


def test_beside_a_device_operators_are_the_hosts_and_tell_what_they_launched() -> None:
    tables = {"operators": nested(external_id=[1, 2, 3]), "kernels": kernels(WORK, external_id=[2, 2, 3])}

    found = Run.from_frames({0: tables}).analyse("operator_instances").filter(pl.col("unit") == "HOST_CPU")

    rows = found.sort("name").select("name", "activity_ns", "activities").rows()
    assert rows == [("aten::addmm", 300 * US, 2), ("aten::linear", None, None), ("aten::relu", 100 * US, 1)]


def test_a_rank_without_a_device_beside_others_has_operators_of_its_own_list() -> None:
    of_host = {"operators": nested(), "kernels": kernels(WORK).clear()}
    run = Run.from_frames({0: {"operators": nested(), "kernels": kernels(WORK)}, 1: of_host})

    units = run.analyse("operator_instances").select("rank", "unit").unique().sort("rank", "unit").rows()

    assert units == [(0, "CUDA"), (0, "HOST_CPU"), (1, "CPU")]


def test_calls_are_told_apart_by_their_shapes_and_places() -> None:
    shapes = ["[[2, 3]]", "[[4, 3]]", "[[4, 3]]"]
    named = operators([(PLACE, 0, 10), (PLACE, 20, 30), (PLACE, 40, 60)], input_shapes=shapes)

    found = Run.from_frames({0: {"operators": named}}).analyse("operator_instances")

    assert found.select("type", "name", "full_name", "count", "input_shapes").rows() == [
        ("Conv2D", "Conv2D-op1", PLACE, 2, "[[4, 3]]"),
        ("Conv2D", "Conv2D-op1", PLACE, 1, "[[2, 3]]"),
    ]
    types = Run.from_frames({0: {"operators": named}}).analyse("operator_types")
    assert types.select("operators", "count").rows() == [(1, 3)]


def test_the_operators_of_a_type_are_its_places_or_else_its_names() -> None:
    places = operators([("Default/a/Add-op1", 0, 10), ("Default/b/Add-op1", 20, 30)])
    streams = kernels([*WORK[:1], *WORK[:1]], stream=[1, 2])

    assert Run.from_frames({0: {"operators": places}}).analyse("operator_types")["operators"].to_list() == [2]
    assert Run.from_frames({0: {"kernels": streams}}).analyse("operator_types")["operators"].to_list() == [1]


def test_what_is_stated_is_not_counted_again_from_kernels_and_operators() -> None:
    tables = {"operator_totals": totals(STATED), "kernels": kernels(WORK), "operators": nested()}

    found = Run.from_frames({0: tables}).analyse("operator_instances")

    assert found.height == 3
    without_host = totals([row for row in STATED if row["unit"] != "HOST_CPU"])
    found = Run.from_frames({0: {**tables, "operator_totals": without_host}}).analyse("operator_instances")
    assert found["unit"].value_counts().sort("unit")["count"].to_list() == [1, 1, 3]


def test_without_anything_there_is_a_reason() -> None:
    with pytest.raises(Unavailable, match="neither operators, kernels nor totals of operators"):
        Run.from_frames({0: {"operator_totals": totals(STATED[-2:])}}).analyse("operator_instances")


def test_every_list_of_a_real_recording_adds_up(shared) -> None:
    from stepscope.run import open_run

    run = open_run(shared / "data" / "pytorch" / "dlrm_8rank_v100").select(ranks=0)

    found = run.analyse("operator_instances")

    kernel_ns = run.table("kernels").select(pl.col("duration_ns").sum()).collect().item()
    own_ns = run.table("operators").select(pl.col("self_ns").sum()).collect().item()
    sums = dict(found.group_by("unit").agg(pl.coalesce("self_ns", "total_ns").sum()).rows())
    assert sums == {"CUDA": kernel_ns, "HOST_CPU": own_ns}


@pytest.mark.parametrize("question", ["operator_instances", "operator_types"])
def test_the_mean_of_what_never_ran_is_unknown(question: str) -> None:
    never = [{**one, "count": 0, "total_ns": 0} for one in STATED if one["unit"] == "AI_CORE"]
    run = Run.from_frames({0: {"operator_totals": totals([*never, *STATED[3:]])}})

    found = run.analyse(question)

    assert set(found.filter(pl.col("count") == 0)["mean_ns"]) == {None}
    assert found.filter(pl.col("count") > 0)["mean_ns"].null_count() == 0


def test_a_recorded_type_and_that_of_a_name_are_one_operator() -> None:
    place = "Default/fc-Dense/MatMul-op3"
    calls = operators([(place, 0, 2), (place, 2, 5)], type=["MatMul", None])

    found = Run.from_frames({0: {"operators": calls}}).analyse("operator_instances")

    assert found.select("type", "name", "full_name", "count", "total_ns", "min_ns", "max_ns").rows() == [
        ("MatMul", "MatMul-op3", place, 2, 5 * US, 2 * US, 3 * US)
    ]
