"""The reader of dataset profiling on files of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from parts import taken
from stepscope.sources.minddata.files import Clock, MinddataFiles
from stepscope.sources.minddata.write import write_minddata

MS = 1_000_000
HEADER = (
    "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
    "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
)
RAW = HEADER + (
    "0,Batch,4,,,,0,10,,[1]\n"
    '1,Shuffle,1,"[10, 20]",15.0,64,0.234375,10,0,"[2, 3]"\n'
    '2,TFReader,4,"[64, 0]",32.0,64,0.5,10,1,\n'
    '3,TFReader,4,"[1, 1]",1.0,64,0.015625,10,1,\n'
)
BATCHES = "0 0 7 4 110\n0 1 7 3 110\n0 2 7 8 110\n1 16 7 0 110\n0 0 8 1 130\n0 1 8 0 130\n0 2 8 1 130\n1 16 8 16 130\n"
QUEUE, ITERATOR = "device_queue_profiling_0.txt", "dataset_iterator_profiling_0.txt"
RAW_NAME, PIPELINE, USAGE = (
    "minddata_pipeline_raw_0.csv",
    "pipeline_profiling_0.json",
    "minddata_cpu_utilization_0.json",
)
AI_CPU, GET_NEXT = "minddata_aicpu_0.txt", "minddata_getnext_profiling_0.txt"
Issues = list[tuple[str, str]]


def read(
    directory: Path, files: dict[str, str | bytes], clock: Clock | None = None, **options: Any
) -> tuple[dict[str, pl.DataFrame], Issues]:
    """Tables and issues of files that are written first."""
    for name, content in files.items():
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return taken(lambda sink: write_minddata(MinddataFiles.within(directory), clock or Clock(), sink, **options))


def pipeline_json(*operators: dict[str, Any]) -> str:
    """A `pipeline_profiling` file."""
    return json.dumps({"op_info": list(operators), "sampling_interval": 10})


def operator(
    number: int, kind: str, children: list[int] | None = None, sizes: list[Any] | None = None
) -> dict[str, Any]:
    """One of its operators."""
    metrics = None if sizes is None else {"output_queue": {"length": 8, "size": sizes}}
    return {"op_id": number, "op_type": kind, "num_workers": 2, "children": children, "metrics": metrics}


def usage_json(count: int = 3, **parts: Any) -> str:
    """A `minddata_cpu_utilization` file of 2 processors with samples every 20 ms from 100 ms on."""
    times = [100 + 20 * k for k in range(count)]
    return json.dumps({"cpu_processor_num": 2, "sampling_interval": 20, "time_stamp": times, **parts})


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


def test_several_roots_are_several_pipelines(tmp_path: Path) -> None:
    operators = [operator(0, "BatchOp", [1]), operator(1, "MapOp"), operator(2, "BatchOp", [3]), operator(3, "MapOp")]

    tables, _ = read(tmp_path, {PIPELINE: pipeline_json(*operators)}, number=5)

    assert tables["pipeline_operators"].select("number", "pipeline").rows() == [(0, 5), (1, 5), (2, 6), (3, 6)]


def test_operators_that_feed_each_other_in_a_circle_do_not_hang_the_reader(tmp_path: Path) -> None:
    circle = pipeline_json(operator(0, "A", [1]), operator(1, "B", [0]), operator(2, "C", [2]))

    tables, _ = read(tmp_path, {PIPELINE: circle})

    assert tables["pipeline_operators"].select("number", "pipeline").rows() == [(0, 0), (1, 0), (2, 1)]


def test_samples_take_the_times_of_the_cpu_samples_or_their_own_interval_from_the_first(tmp_path: Path) -> None:
    recorded = pipeline_json(operator(1, "MapOp", None, [1, 2]), operator(2, "MapOp", None, [1, 2, 3, 4]))

    tables, _ = read(tmp_path, {PIPELINE: recorded, USAGE: usage_json()}, Clock(5))

    times = tables["input_pipeline"].group_by("operator", maintain_order=True).agg("time_ns")["time_ns"].to_list()
    assert times == [
        [100 * MS + 5, 120 * MS + 5],
        [100 * MS + 5, 110 * MS + 5, 120 * MS + 5, 130 * MS + 5],
    ]


def test_two_files_of_different_pipelines_are_told(tmp_path: Path) -> None:
    tables, issues = read(tmp_path, {RAW_NAME: RAW, PIPELINE: pipeline_json(operator(0, "MapOp"))})

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


def test_a_relation_to_steps_beats_the_number_of_the_batch(tmp_path: Path) -> None:
    clock = Clock(0, lambda times: pl.repeat(9, len(times), dtype=pl.Int32, eager=True))

    tables, _ = read(tmp_path, {QUEUE: BATCHES}, clock)

    assert tables["input_pipeline"]["step"].to_list() == [9, 9]


def test_a_batch_is_of_the_step_that_begins_within_its_ms(tmp_path: Path) -> None:
    begins_ns = 130 * MS + MS // 2  # the file says that the second batch was taken at 130 ms, and cuts off the rest
    clock = Clock(0, lambda times: (times >= begins_ns).cast(pl.Int32))

    tables, _ = read(tmp_path, {ITERATOR: BATCHES}, clock)

    assert tables["input_pipeline"]["step"].to_list() == [0, 1]
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


@pytest.mark.parametrize("name", [AI_CPU, GET_NEXT])
def test_the_first_batch_of_a_file_without_a_header_is_kept(tmp_path: Path, name: str) -> None:
    bare = get_next(1, 100).split("\n", 1)[1]

    tables, issues = read(tmp_path, {name: bare})

    assert tables["input_pipeline"]["queue_size"].to_list() == [0, 1, 2]
    assert issues == []


@pytest.mark.parametrize("name", [QUEUE, ITERATOR])
def test_a_header_above_the_batches_of_the_host_is_no_damage(tmp_path: Path, name: str) -> None:
    tables, issues = read(tmp_path, {name: "type extra batch value time\n" + BATCHES})

    assert tables["input_pipeline"].height == 2
    assert issues == []


def test_a_damaged_first_batch_is_no_header(tmp_path: Path) -> None:
    text = get_next(1, 100).split("\n", 1)[1].replace("1000 1005", "1x00 1005", 1)

    tables, issues = read(tmp_path, {AI_CPU: text})

    assert tables["input_pipeline"].height == 2
    assert issues == [("warning", AI_CPU)]


def test_the_pace_of_the_host_settles_the_unit_of_the_device(tmp_path: Path) -> None:
    queue = "".join(f"1 16 {k} 3 {100 + 20 * k}\n" for k in range(1, 5))

    right, silent = read(tmp_path, {AI_CPU: get_next(1, 18_000), QUEUE: queue})
    other, told = read(tmp_path, {AI_CPU: get_next(1000, 18_000_000), QUEUE: queue})

    def costs(tables: dict[str, pl.DataFrame]) -> list[int]:
        return tables["input_pipeline"].filter(pl.col("operator") == "get_next")["duration_ns"].to_list()

    assert (costs(right), silent) == ([5000] * 3, [])
    assert (costs(other), told) == ([5] * 3, [("note", AI_CPU)])


def test_a_first_sample_of_zeros_has_measured_nothing(tmp_path: Path) -> None:
    busy, idle = {"user_utilization": [0, 40, 80]}, {"user_utilization": [0, 0, 0]}
    usage = usage_json(
        device_info={
            "user_utilization": [0, 50, 60],
            "sys_utilization": [0, 10, 0],
            "idle_utilization": [0, 40, 40],
            "io_utilization": [0, 0, 0],
            "runable_processes": [0, 2, 3],
            "context_switch_count": [0, 0, 8],
        },
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
        device_info={
            "user_utilization": [0, 50, 100],
            "runable_processes": [1, 2, 3],
            "context_switch_count": [0, 9, 8],
        },
        process_info={"user_utilization": [100, 200], "sys_utilization": [0, 50]},
        op_info=[
            {"op_id": 1, "metrics": {"user_utilization": [0, 40, 80]}},
            {"op_id": -1, "metrics": {"user_utilization": [9, 9, 9]}},
        ],
        process_memory_info={"rss_mbytes": [1.5, 2, 3]},
        system_memory_info={"available_sys_memory_mbytes": [7, 7, 7], "total_sys_memory_mbytes": [8, 8, 8]},
    )

    tables, issues = read(tmp_path, {USAGE: usage, PIPELINE: pipeline_json(operator(1, "MapOp"))})

    rows = tables["host_usage"]
    operators = rows.filter(pl.col("scope") == "operator")
    assert operators.select("name", "user_ratio").rows() == [("MapOp_1", 0.2), ("MapOp_1", 0.4)]
    process = rows.filter(pl.col("scope") == "process")
    assert process["user_ratio"].to_list() == [None, 0.5, 1.0]
    assert process["rss_bytes"].to_list() == [3 << 19, 2 << 20, 3 << 20]
    host = rows.filter(pl.col("scope") == "host")
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
    tables, issues = read(tmp_path, {RAW_NAME: HEADER, PIPELINE: pipeline_json(operator(0, "MapOp"))})

    assert tables["pipeline_operators"]["operator"].to_list() == ["MapOp_0"]
    assert issues == [("warning", RAW_NAME)]


def test_text_and_huge_values_in_json_are_unknown(tmp_path: Path) -> None:
    recorded = pipeline_json(
        {
            "op_id": 0,
            "op_type": 7,
            "num_workers": 2**40,
            "metrics": {"output_queue": {"length": "x", "size": [1, "a", 2**70]}},
        }
    )
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
