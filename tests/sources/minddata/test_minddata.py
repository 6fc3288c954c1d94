"""The reader of dataset profiling on files of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from every_kind import PIPELINE_HEADER, operator, pipeline_json, usage_json

from parts import taken
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.write import write_minddata

MS = 1_000_000
RAW = PIPELINE_HEADER + (
    "0,Batch,4,,,,0,10,,[1]\n"
    '1,Shuffle,1,"[10, 20]",15.0,64,0.234375,10,0,"[2, 3]"\n'
    '2,TFReader,4,"[64, 0]",32.0,64,0.5,10,1,\n'
    '3,TFReader,4,"[1, 1]",1.0,64,0.015625,10,1,\n'
)
BATCHES = "0 0 7 4 110\n0 1 7 3 110\n0 2 7 8 110\n1 16 7 0 110\n0 0 8 1 130\n0 1 8 0 130\n0 2 8 1 130\n1 16 8 16 130\n"
QUEUE, ITERATOR = "device_queue_profiling_0.txt", "dataset_iterator_profiling_0.txt"
RAW_NAME, PIPELINE = "minddata_pipeline_raw_0.csv", "pipeline_profiling_0.json"
USAGE = "minddata_cpu_utilization_0.json"
AI_CPU, GET_NEXT = "minddata_aicpu_0.txt", "minddata_getnext_profiling_0.txt"
Issues = list[tuple[str, str]]


def read(
    directory: Path, files: dict[str, str | bytes], clock: Clock | None = None, **options: Any
) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables and issues of files that are written first."""
    for name, content in files.items():
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return taken(lambda sink: write_minddata(MinddataFiles.within(directory), clock or Clock(), sink, **options))


ONE_OPERATOR = pipeline_json(operator(0, "MapOp"))


def test_operators_of_the_analysed_file_have_parents_queues_and_samples_in_order(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {RAW_NAME: RAW})

    operators = tables["pipeline_operators"]
    assert operators.select("pipeline", "operator", "type", "parent", "workers", "queue_capacity").rows() == [
        (0, "Batch_0", "Batch", None, 4, None),
        (0, "Shuffle_1", "Shuffle", "Batch_0", 1, 64),
        (0, "TFReader_2", "TFReader", "Shuffle_1", 4, 64),
        (0, "TFReader_3", "TFReader", "Shuffle_1", 4, 64),
    ]
    assert operators["sample_interval_ns"].unique().to_list() == [10 * MS]
    samples = tables["input_pipeline"].filter(pl.col("operator") == "TFReader_2")
    assert samples.select("queue_size", "queue_capacity", "time_ns", "step").rows() == [
        (64, 64, None, None),
        (0, 64, None, None),
    ]
    assert issues == []


def test_without_the_analysed_file_operators_come_from_the_recorded_one_in_any_order(tmp_path: Path) -> None:
    recorded = pipeline_json(operator(1, "MapOp", None, [1, 2]), operator(0, "BatchOp", [1]))

    tables, issues = read(tmp_path, {PIPELINE: recorded})

    rows = tables["pipeline_operators"].select("operator", "parent", "queue_capacity")
    assert rows.rows() == [("MapOp_1", "BatchOp_0", 8), ("BatchOp_0", None, None)]
    assert tables["input_pipeline"]["queue_size"].to_list() == [1, 2]
    assert issues == []


@pytest.mark.parametrize(
    ("children", "number", "pipelines"),
    [
        pytest.param([[1], None, [3], None], 5, [5, 5, 6, 6], id="several roots"),
        pytest.param([[1], [0], [2]], 0, [0, 0, 1], id="operators that feed each other in a circle"),
    ],
)
def test_each_root_is_a_pipeline(
    tmp_path: Path, children: list[list[int] | None], number: int, pipelines: list[int]
) -> None:
    operators = [operator(at, "MapOp", fed_by) for at, fed_by in enumerate(children)]

    tables, _ = read(tmp_path, {PIPELINE: pipeline_json(*operators)}, number=number)

    assert tables["pipeline_operators"].select("number", "pipeline").rows() == list(enumerate(pipelines))


def test_samples_take_the_times_of_the_cpu_samples_or_their_own_interval_from_the_first(tmp_path: Path) -> None:
    recorded = pipeline_json(operator(1, "MapOp", None, [1, 2]), operator(2, "MapOp", None, [1, 2, 3, 4]))

    tables, _ = read(tmp_path, {PIPELINE: recorded, USAGE: usage_json()}, Clock(5))

    times = tables["input_pipeline"].group_by("operator", maintain_order=True).agg("time_ns")["time_ns"].to_list()
    assert times == [
        [100 * MS + 5, 120 * MS + 5],
        [100 * MS + 5, 110 * MS + 5, 120 * MS + 5, 130 * MS + 5],
    ]


def test_two_files_of_different_pipelines_are_told(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {RAW_NAME: RAW, PIPELINE: ONE_OPERATOR})

    assert tables["pipeline_operators"].height == 4
    assert issues == [("warning", PIPELINE)]


def test_stated_means_that_are_not_those_of_the_samples_are_told(tmp_path: Path) -> None:
    _, issues = read(tmp_path, {RAW_NAME: RAW.replace("15.0,64,0.234375", "15.0,64,0.5")})

    assert issues == [("note", RAW_NAME)]


@pytest.mark.parametrize("name", [QUEUE, ITERATOR])
def test_batches_have_costs_queue_and_steps_from_one(tmp_path: Path, name: str) -> None:
    tables, issues = read(tmp_path, {name: BATCHES}, Clock(1))

    rows = tables["input_pipeline"]
    columns = ("step", "batch", "time_ns", "get_ns", "push_ns", "duration_ns", "queue_size", "queue_capacity")
    assert rows.select(columns).rows() == [
        (1, 7, 110 * MS + 1, 4 * MS, 3 * MS, 8 * MS, 0, 16),
        (2, 8, 130 * MS + 1, 1 * MS, 0, 1 * MS, 16, 16),
    ]
    assert rows["operator"].unique().to_list() == [name.removesuffix("_profiling_0.txt")]
    assert issues == []


def test_a_batch_number_that_comes_again_is_another_batch(tmp_path: Path) -> None:
    tables, _ = read(tmp_path, {QUEUE: BATCHES + BATCHES})

    assert tables["input_pipeline"].select("batch", "duration_ns").rows() == [(7, 8 * MS), (8, MS)] * 2


BEGINS_NS = 130 * MS + MS // 2
"""Start of a step: the file says that the second batch was taken at 130 ms, and cuts off the rest."""


@pytest.mark.parametrize("name", [QUEUE, ITERATOR])
@pytest.mark.parametrize(
    ("step_of", "steps"),
    [
        (lambda times: pl.repeat(9, len(times), dtype=pl.Int32, eager=True), [9, 9]),
        (lambda times: (times >= BEGINS_NS).cast(pl.Int32), [0, 1]),
    ],
)
def test_a_relation_to_steps_within_the_ms_of_a_batch_beats_its_number(
    tmp_path: Path, name: str, step_of: Callable[[pl.Series], pl.Series], steps: list[int]
) -> None:
    tables, _ = read(tmp_path, {name: BATCHES}, Clock(0, step_of))

    assert tables["input_pipeline"]["step"].to_list() == steps
    assert tables["input_pipeline"]["time_ns"].to_list() == [110 * MS, 130 * MS]


def get_next(unit: int, every: int) -> str:
    """A file of three batches that took 5 units each, and a line of something else."""
    lines = [f"GetNext_dequeue_wait {1000 * unit + k * every} {1000 * unit + k * every + 5} {k}" for k in range(3)]
    return "\n".join(["node_name start_time end_time queue_size", *lines, "TdtSend 1 2 3"]) + "\n"


@pytest.mark.parametrize(("name", "unit_ns"), [(AI_CPU, 1000), (GET_NEXT, 1)])
def test_batches_of_the_device_are_in_the_unit_of_their_file(tmp_path: Path, name: str, unit_ns: int) -> None:
    tables, issues = read(tmp_path, {name: get_next(1, 100)})

    rows = tables["input_pipeline"].select("operator", "batch", "step", "duration_ns", "queue_size", "time_ns").rows()
    assert rows[0] == ("get_next", 1, 1, 5 * unit_ns, 0, 1005 * unit_ns)
    assert len(rows) == 3
    assert issues == []


BARE = get_next(1, 100).split("\n", 1)[1]


@pytest.mark.parametrize(
    ("name", "text", "queue", "severities"),
    [
        (AI_CPU, BARE, [0, 1, 2], []),
        (GET_NEXT, BARE, [0, 1, 2], []),
        (QUEUE, "type extra batch value time\n" + BATCHES, [0, 16], []),
        (ITERATOR, "type extra batch value time\n" + BATCHES, [0, 16], []),
        (AI_CPU, BARE.replace("1000 1005", "1x00 1005", 1), [1, 2], ["warning"]),
    ],
)
def test_a_header_is_no_batch_and_a_first_batch_damaged_or_not_is_no_header(
    tmp_path: Path, name: str, text: str, queue: list[int], severities: list[str]
) -> None:
    tables, issues = read(tmp_path, {name: text})

    assert tables["input_pipeline"]["queue_size"].to_list() == queue
    assert issues == [(severity, name) for severity in severities]


@pytest.mark.parametrize(("unit", "cost_ns", "severities"), [(1, 5000, []), (1000, 5, ["note"])])
def test_the_pace_of_the_host_settles_the_unit_of_the_device(
    tmp_path: Path, unit: int, cost_ns: int, severities: list[str]
) -> None:
    queue = "".join(f"1 16 {k} 3 {100 + 20 * k}\n" for k in range(1, 5))

    tables, issues = read(tmp_path, {AI_CPU: get_next(unit, 18_000 * unit), QUEUE: queue})

    assert tables["input_pipeline"].filter(operator="get_next")["duration_ns"].to_list() == [cost_ns] * 3
    assert issues == [(severity, AI_CPU) for severity in severities]


def test_a_first_sample_of_zeros_has_measured_nothing(tmp_path: Path) -> None:
    busy, idle = {"user_utilization": [0, 40, 80]}, {"user_utilization": [0, 0, 0]}
    shares = {"user": [0, 50, 60], "sys": [0, 10, 0], "idle": [0, 40, 40], "io": [0, 0, 0]}
    usage = usage_json(
        device_info={f"{name}_utilization": values for name, values in shares.items()}
        | {"runable_processes": [0, 2, 3], "context_switch_count": [0, 0, 8]},
        process_info={"user_utilization": [0, 100, 200], "sys_utilization": [0, 0, 0]},
        op_info=[{"op_id": 1, "metrics": busy}, {"op_id": 2, "metrics": idle}],
    )

    tables, _ = read(tmp_path, {USAGE: usage, PIPELINE: pipeline_json(operator(1, "MapOp"), operator(2, "BatchOp"))})

    rows = tables["host_usage"].select("scope", "name", "user_ratio", "runnable", "context_switches")
    assert rows.rows() == [
        *(("operator", "MapOp_1", share, None, None) for share in (0.2, 0.4)),
        *(("operator", "BatchOp_2", 0.0, None, None) for _ in range(2)),
        *(("process", None, share, None, None) for share in (0.5, 1.0)),
        ("host", None, 0.5, 2, 0),
        ("host", None, 0.6, 3, 8),
    ]


def test_an_idle_machine_is_no_sample_of_nothing(tmp_path: Path) -> None:
    zeros = [0, 0, 0]
    idle = {"user_utilization": zeros, "sys_utilization": zeros, "io_utilization": zeros, "idle_utilization": [100] * 3}

    tables, _ = read(tmp_path, {USAGE: usage_json(device_info=idle), PIPELINE: pipeline_json(operator(1, "MapOp"))})

    host = tables["host_usage"].filter(pl.col("scope") == "host")
    assert host.select("user_ratio", "idle_ratio").rows() == [(0.0, 1.0)] * 3


def test_shares_are_of_all_processors_and_a_list_that_is_short_lacks_the_first_sample(tmp_path: Path) -> None:
    usage = usage_json(
        device_info={"user_utilization": [0, 50, 100], "runable_processes": [1, 2, 3]}
        | {"context_switch_count": [0, 9, 8]},
        process_info={"user_utilization": [100, 200], "sys_utilization": [0, 50]},
        op_info=[
            {"op_id": 1, "metrics": {"user_utilization": [0, 40, 80]}},
            {"op_id": -1, "metrics": {"user_utilization": [9, 9, 9]}},
        ],
        process_memory_info={"rss_mbytes": [1.5, 2, 3]},
        system_memory_info={"available_sys_memory_mbytes": [7, 7, 7], "total_sys_memory_mbytes": [8, 8, 8]},
    )

    tables, issues = read(tmp_path, {USAGE: usage, PIPELINE: pipeline_json(operator(1, "MapOp"))})

    operators, process, host = (tables["host_usage"].filter(scope=scope) for scope in ("operator", "process", "host"))
    assert operators.select("name", "user_ratio").rows() == [("MapOp_1", 0.2), ("MapOp_1", 0.4)]
    assert process["user_ratio"].to_list() == [None, 0.5, 1.0]
    assert process["rss_bytes"].to_list() == [3 << 19, 2 << 20, 3 << 20]
    columns = ("time_ns", "user_ratio", "runnable", "context_switches", "available_bytes", "total_bytes", "processors")
    assert host.select(columns).rows() == [
        (100 * MS, 0.0, 1, 0, 7 << 20, 8 << 20, 2),
        (120 * MS, 0.5, 2, 9, 7 << 20, 8 << 20, 2),
        (140 * MS, 1.0, 3, 8, 7 << 20, 8 << 20, 2),
    ]
    assert issues == []


def test_lists_that_are_twice_as_long_are_repaired_and_told(tmp_path: Path) -> None:
    doubled = {
        "runnable_process": [4, 4, 3, 3, 2, 2],
        "context_switch_count": [0, 0, 5, 0, 6, 0],
        "user_utilization": [0, 0, 50],
    }

    tables, issues = read(tmp_path, {USAGE: usage_json(device_info=doubled)})

    host = tables["host_usage"].select("runnable", "context_switches", "user_ratio")
    assert host.rows() == [(4, 0, 0.0), (3, 5, 0.5), (2, 6, None)]
    assert issues == [("note", USAGE)]


def test_host_and_process_are_left_to_a_better_sampler(tmp_path: Path) -> None:
    usage = usage_json(
        device_info={"user_utilization": [1, 2, 3]}, op_info=[{"op_id": 0, "metrics": {"user_utilization": [1, 1, 1]}}]
    )

    tables, _ = read(tmp_path, {USAGE: usage}, with_host=False)

    assert tables["host_usage"]["name"].unique().to_list() == ["Operator_0"]


DEEP = "[" * 100_000
DAMAGE: dict[str, tuple[str, str | bytes, str]] = {
    "empty raw": (RAW_NAME, "", "error"),
    "cut raw": (RAW_NAME, RAW[:-60], "error"),
    "other header": (RAW_NAME, RAW.replace("op_id", "number"), "error"),
    "text for a queue": (RAW_NAME, RAW.replace('"[64, 0]"', "many"), "error"),
    "deep queue": (RAW_NAME, RAW.replace('"[64, 0]"', DEEP), "error"),
    "empty recorded": (PIPELINE, "", "error"),
    "cut recorded": (PIPELINE, pipeline_json(operator(0, "A"))[:-20], "error"),
    "no object": (PIPELINE, "[1]", "error"),
    "deep recorded": (PIPELINE, DEEP, "error"),
    "no operators": (PIPELINE, "{}", "warning"),
    "operators without numbers": (PIPELINE, '{"op_info": [{"op_id": "x"}, 7]}', "warning"),
    "empty queue": (QUEUE, "", "warning"),
    "text for a number": (QUEUE, BATCHES.replace("130", "soon"), "warning"),
    "cut queue": (QUEUE, BATCHES[:-9], "warning"),
    "another generation's queue": (QUEUE, "batch,get,push\n1,2,3\n", "warning"),
    "huge numbers": (QUEUE, BATCHES + f"0 0 1 {10**17} {10**17}\n0 0 1 1 {10**30}\n", "warning"),
    "binary queue": (QUEUE, b"\xff\x00\x01" * 9, "warning"),
    "empty device": (AI_CPU, "", "warning"),
    "text in device": (AI_CPU, get_next(1, 9) + "GetNext a b c\n", "warning"),
    "empty usage": (USAGE, "", "error"),
    "cut usage": (USAGE, usage_json()[:-5], "error"),
    "deep usage": (USAGE, DEEP, "error"),
    "no times": (USAGE, '{"cpu_processor_num": 2}', "warning"),
    "text for times": (USAGE, '{"cpu_processor_num": 2, "time_stamp": ["a", 1]}', "error"),
    "text for processors": (USAGE, '{"cpu_processor_num": "many", "time_stamp": [1, 2]}', "error"),
}


def test_a_span_shorter_than_the_interval_between_samples_is_not_damaged(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {USAGE: usage_json(0), PIPELINE: pipeline_json()})

    assert not tables
    assert issues == [("note", USAGE)]


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_costs_its_own_file_only_and_is_told(tmp_path: Path, case: str) -> None:
    name, content, severity = DAMAGE[case]
    sound: dict[str, str | bytes] = {
        RAW_NAME: RAW,
        QUEUE: BATCHES,
        USAGE: usage_json(device_info={"user_utilization": [1, 2, 3]}),
    }
    expected, _ = read(tmp_path, {other: text for other, text in sound.items() if other != name})

    tables, issues = read(tmp_path, {**sound, name: content})

    assert (severity, name) in issues
    assert {file for _, file in issues} == {name}
    for table, rows in expected.items():
        assert tables[table].height >= rows.height


def test_a_raw_file_without_any_row_gives_way_to_the_recorded_one(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {RAW_NAME: PIPELINE_HEADER, PIPELINE: ONE_OPERATOR})

    assert tables["pipeline_operators"]["operator"].to_list() == ["MapOp_0"]
    assert issues == [("warning", RAW_NAME)]


def test_text_and_huge_values_in_json_are_unknown(tmp_path: Path) -> None:
    queue = {"output_queue": {"length": "x", "size": [1, "a", 2**70]}}
    recorded = pipeline_json({"op_id": 0, "op_type": 7, "num_workers": 2**40, "metrics": queue})
    usage = usage_json(device_info={"user_utilization": [1, "x", 1e300], "runnable_process": [True, -1, 2]})

    tables, _ = read(tmp_path, {PIPELINE: recorded, USAGE: usage})

    row = tables["pipeline_operators"].row(0, named=True)
    assert (row["operator"], row["workers"], row["queue_capacity"]) == ("Operator_0", None, None)
    assert tables["input_pipeline"]["queue_size"].to_list() == [1, None, None]
    assert tables["host_usage"].select("user_ratio", "runnable").rows() == [(0.01, None), (None, 2)]


def test_no_files_are_no_rows_and_no_issues(tmp_path: Path) -> None:
    assert read(tmp_path, {}) == ({}, [])


def test_a_directory_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    for name in (QUEUE, USAGE, AI_CPU, PIPELINE):
        (tmp_path / name).mkdir()

    _, issues = read(tmp_path, {RAW_NAME: RAW})

    assert {("error", name) for name in (QUEUE, USAGE, AI_CPU, PIPELINE)} == set(issues)
