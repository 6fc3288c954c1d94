"""Lists of operators in the headers of every generation, and what stands before the place where they were cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from device_files import CONV, MATMUL, Read, lines, shapes, whole_profile, write

TYPES = ("Conv2D,0.9,3,", "MatMul,0.6,3,")
TYPES_HEADER = "kernel_type,total_time,execution_frequency,percent"
PROFILE = whole_profile()
ONE_OPERATOR = lines("full_kernel_name,execution_time,execution_frequency", f"{CONV},0.3,3")


@pytest.mark.parametrize(
    ("header", "shares"),
    [
        (TYPES_HEADER, ("0.6", "0.4")),
        (TYPES_HEADER, ("60.00", "40.00")),
        ("op_type,execution_time,execution_frequency,percent", ("60.0", "40.0")),
    ],
)
def test_types_of_every_generation(tmp_path: Path, header: str, shares: tuple[str, str]) -> None:
    text = lines(header, *(row + share for row, share in zip(TYPES, shares, strict=True)))

    read = Read(write(tmp_path, device_types=text))

    rows = read.totals("AI_CORE", "type").select("name", "type", "total_ns", "count")
    assert rows.rows() == [("Conv2D", "Conv2D", 900_000, 3), ("MatMul", "MatMul", 600_000, 3)]
    assert read.table("issues").is_empty()


def test_shares_that_do_not_fit_are_noted(tmp_path: Path) -> None:
    text = lines(TYPES_HEADER, TYPES[0] + "48.00", TYPES[1] + "40.00")

    read = Read(write(tmp_path, device_types=text))

    assert read.told("note") == [
        ("aicore_intermediate_0_type.csv", "the share of 1 of 2 rows does not match their total time, which is used")
    ]


@pytest.mark.parametrize(
    "header",
    [
        "full_kernel_name,task_duration,execution_frequency",
        "full_op_name,execution_time,execution_frequency",
        "full_kernel_time,execution_time,execution_frequency",
        "full_op_name, execution_time, execution_frequency",
    ],
)
def test_operators_of_every_generation(tmp_path: Path, header: str) -> None:
    text = lines(header, f"{CONV},0.3,3", f"{MATMUL},5e-05,2")

    read = Read(write(tmp_path, device_operators=text))

    rows = read.totals("AI_CORE", "operator").select("name", "full_name", "type", "count", "total_ns")
    assert rows.rows() == [("Conv2D-op1", CONV, "Conv2D", 3, 900_000), ("MatMul-op2", MATMUL, "MatMul", 2, 100)]
    assert read.table("issues").is_empty()


def test_counts_that_are_not_stated_are_those_of_the_type(tmp_path: Path) -> None:
    types = lines("op_type,execution_time,execution_frequency,percent", "Conv2D,0.9,6,100.0")
    operators = lines(
        "full_op_name,execution_time", "Default/Conv2D-op1,0.1", "Default/Conv2D-op2,0.2", "Default/Odd-op3,1"
    )

    read = Read(write(tmp_path, device_types=types, device_operators=operators))

    rows = read.totals("AI_CORE", "operator").select("name", "count", "total_ns")
    assert rows.rows() == [("Conv2D-op1", 3, 300_000), ("Conv2D-op2", 3, 600_000), ("Odd-op3", 1, 1_000_000)]
    assert "has average times only" in read.told("note")[0][1]
    assert read.told("error") == read.told("warning") == []


NAMED = "full_kernel_name,op_name,kernel_name,kernel_type,subgraph,op_info"
"""The framework's columns in most generations; those of `NAMED_2_1` in 2.1."""
NAMED_2_1 = "full_op_name,op_name,op_type,subgraph,op_info"
FULL, SHORT = "Default/Conv-op7", "Conv2D-op1"


@pytest.mark.parametrize(
    ("header", "rest", "core", "graph"),
    [
        (f"{NAMED},model_id,task_type", f"{FULL},{SHORT},Conv2D,Default,{{}},5,AI_CORE", "AI_CORE", 5),
        (f"{NAMED},graph_id", f"{FULL},{SHORT},Conv2D,Default,{{}},5", None, 5),
        (NAMED, f"{FULL},{SHORT},Conv2D,Default,{{}}", None, None),
        (f"{NAMED_2_1},model_id,kernel_type", f"{FULL},Conv2D,Default,{{}},5,AI_CORE", "AI_CORE", 5),
    ],
)
def test_the_framework_of_every_generation(
    tmp_path: Path, header: str, rest: str, core: str | None, graph: int | None
) -> None:
    row = f"1,3,32,{CONV}," + rest.replace("{}", shapes("32,3,8,8"))
    framework = lines("task_id,stream_id,block_dim," + header, row, row)

    read = Read(write(tmp_path, device_operators=ONE_OPERATOR, framework=framework))

    (told,) = read.totals("AI_CORE", "operator").rows(named=True)
    assert (told["type"], told["core"], told["graph"], told["subgraph"]) == ("Conv2D", core, graph, "Default")
    assert (told["framework_name"], told["stream"], told["block_dim"]) == ("Default/Conv-op7", 3, 32)
    assert json.loads(told["inputs"])["Input_0"]["shape"] == "32,3,8,8"
    assert read.table("issues").is_empty()


def test_an_operator_that_the_framework_does_not_know_keeps_what_its_name_says(tmp_path: Path) -> None:
    framework = lines(*PROFILE["framework"].splitlines()[:2])

    read = Read(write(tmp_path, device_operators=PROFILE["device_operators"], framework=framework))

    told = read.totals("AI_CORE", "operator").select("type", "inputs").rows()
    assert told[1] == ("MatMul", None)
    assert told[0][1] is not None


CUBE_AND_VECTOR = "full_kernel_name,MFLOPs(10^6 cube),GFLOPS(10^9 cube),MFLOPs(10^6 vector),GFLOPS(10^9 vector)"
WITH_UTILIZATION = (
    "full_kernel_name, MFLOPs(10^6 cube), GFLOPS(10^9 cube), FLOPS utilization(cube), "
    "MFLOPs(10^6 vector), GFLOPS(10^9 vector), FLOPS utilization(vec)"
)


@pytest.mark.parametrize(
    ("header", "row", "flops", "noted"),
    [
        (CUBE_AND_VECTOR, "600.0,2000.0,3.0,10.0", (6e8, 3e6), False),
        (WITH_UTILIZATION, " 600, 2000, 33, 3, 10, 33", (6e8, 3e6), False),
        ("op_full_name, MFLOPs(10^6), GFLOPS(10^9), FLOPS utilization(%)", " 600, 2000, 3", (6e8, None), False),
        ("full_kernel_name, FLOPs, FLOPS, FLOPS utilization", " 600, 2000, 3", (6e8, None), True),
    ],
)
def test_operations_of_every_generation(
    tmp_path: Path, header: str, row: str, flops: tuple[float, float | None], noted: bool
) -> None:
    read = Read(write(tmp_path, device_operators=ONE_OPERATOR, flops=lines(header, f"{CONV},{row}")))

    assert read.totals("AI_CORE", "operator").select("cube_flops", "vector_flops").row(0) == flops
    assert bool(read.told("note")) == noted
    assert read.told("error") == read.told("warning") == []


def test_rates_that_are_not_operations_over_time_are_noted(tmp_path: Path) -> None:
    flops = PROFILE["flops"].replace(",2000.0,", ",2500.0,")

    read = Read(write(tmp_path, device_operators=PROFILE["device_operators"], flops=flops))

    assert read.told("note") == [
        ("flops_0.txt", "the rate of 1 of 2 operators does not match their operations and time")
    ]


def test_operations_without_a_list_of_operators_are_told(tmp_path: Path) -> None:
    read = Read(write(tmp_path, flops=PROFILE["flops"], ai_cpu=PROFILE["ai_cpu"]))

    assert [file for file, _ in read.told("warning")] == ["flops_0.txt"]


@pytest.mark.parametrize(
    "header", ["kernel_type,total_time,dispatch_time,execution_time", "op_type,total_time,dispatch_time"]
)
def test_executions_on_the_ai_cpu_are_summed_by_kernel(tmp_path: Path, header: str) -> None:
    rows = ["GetNext,0.05,0.01,0.04", "GetNext,0.07,0.03,0.04", "InitData,0.1,0.05,0.05"]
    width = header.count(",") + 1
    cells = [",".join([str(at), *row.split(",")[:width], "1.0", "2.0"]) for at, row in enumerate(rows)]

    read = Read(write(tmp_path, ai_cpu=lines(f"serial_number,{header},run_start,run_end", *cells)))

    columns = ["name", "type", "core", "count", "total_ns", "wait_ns", "min_ns", "max_ns"]
    assert read.totals("AI_CPU", "operator").select(columns).rows() == [
        ("GetNext", "GetNext", "AI_CPU", 2, 120_000, 40_000, 50_000, 70_000),
        ("InitData", "InitData", "AI_CPU", 1, 100_000, 50_000, 100_000, 100_000),
    ]


def test_pynative_operators(tmp_path: Path) -> None:
    read = Read(write(tmp_path, **{kind: PROFILE[kind] for kind in ("pynative_types", "pynative_operators")}))

    assert read.totals("PYNATIVE", "type").select("name", "count", "total_ns").rows() == [
        ("Add", 4, 400_000),
        ("Mul", 2, 600_000),
    ]
    rows = read.totals("PYNATIVE", "operator").select("name", "full_name", "type", "subgraph", "count", "total_ns")
    assert rows.rows() == [
        ("Add-op1", "Default/Add-op1", "Add", "Default", 4, 400_000),
        ("Mul-op2", "Default/Mul-op2", "Mul", "Default", 2, 600_000),
    ]


def test_operators_and_kernels_of_a_gpu(tmp_path: Path) -> None:
    read = Read(write(tmp_path, **{kind: text for kind, text in PROFILE.items() if kind.startswith("gpu_")}))

    assert read.totals("GPU", "type").select("name", "count", "total_ns").rows() == [
        ("Conv2D", 2, 800_000),
        ("Add", 1, 200_000),
    ]
    columns = ["core", "type", "name", "full_name", "count", "total_ns", "activity_ns", "activities"]
    assert read.totals("GPU", "operator").select(columns).row(0) == (
        ("Device", "Conv2D", "Conv2D-op1", "Default/Conv2D-op1", 2, 800_000, 700_500, 4)
    )
    columns = ["name", "type", "full_name", "stream", "block", "grid", "count", "total_ns", "max_ns", "min_ns"]
    assert read.totals("CUDA", "activity").select(columns).row(0) == (
        *("void f<float, 3>(f)", "cuLaunchKernel", "Default/Conv2D-op1", 7, "256,1,1", "32,1,1"),
        *(4, 700_500, 200_000, 150_000),
    )
    assert read.table("issues").is_empty()


@pytest.mark.parametrize(
    ("content", "stated"),
    [
        ({"cube_FLOPs": 800.0, "vec_FLOPS": 6.0}, {"cube_flops": 8e8, "vector_flops_per_s": 6e9}),
        (
            {"FLOPs": 800.0, "FLOPS": 2.0, "FLOPS_Utilization": 23},
            {"flops": 8e8, "flops_per_s": 2e9, "flops_utilization_ratio": 0.23},
        ),
    ],
)
def test_operations_of_the_model(tmp_path: Path, content: object, stated: dict[str, float]) -> None:
    assert Read(write(tmp_path, flops_summary=json.dumps(content))).stated() == pytest.approx(stated)


def test_operations_of_scopes(tmp_path: Path) -> None:
    links = [{"source": "Total", "target": "Default", "value": 6.5}, {"source": 3}, "odd"]

    read = Read(write(tmp_path, flops_scope=json.dumps({"data": {"links": links}, "max_scope_num": 4})))

    assert read.table("flop_scopes").rows() == [("Total", "Default", 6_500_000.0)]
    assert read.stated() == {"flop_scope_levels": 4.0}
    assert read.told() == [("flops_scope_0.json", "2 of 3 links cannot be read")]


@pytest.mark.parametrize("kind", ["step_trace", "device_operators", "gpu_operators", "timeline", "ai_cpu"])
def test_rows_before_a_cut_are_kept(tmp_path: Path, kind: str) -> None:
    text = PROFILE[kind].rstrip("\n")
    texts = PROFILE | {kind: text[:-4] if kind != "step_trace" else text[: text.rindex("\n") - 4]}

    read = Read(write(tmp_path, **texts))

    rows = {
        "step_trace": read.table("steps"),
        "device_operators": read.totals("AI_CORE", "operator"),
        "gpu_operators": read.totals("GPU", "operator"),
        "timeline": read.table("kernels"),
        "ai_cpu": read.totals("AI_CPU", "operator"),
    }[kind]
    assert rows.height > 0
