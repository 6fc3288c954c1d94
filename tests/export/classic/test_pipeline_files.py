"""The input pipeline: MindData's files and what is computed from them, and a loader in their form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from export_samples import BASE, MS, exported, lines, make_export, raw_files, read

from stepscope.analysis.methods.pipeline_graph import LIMITS, Node
from stepscope.export.classic.cpu_usage import write_cpu_usage
from stepscope.export.classic.framework_files import write_minddata
from stepscope.export.classic.pipeline_raw import write_loader_pipeline, write_pipeline_raw
from stepscope.export.classic.pipeline_summary import advise, write_pipeline_summary
from stepscope.export.rank_export import RankExport

RAW, SUMMARY = "minddata_pipeline_raw_1.csv", "minddata_pipeline_summary_1"


def write_all(export: RankExport) -> None:
    """All exporters of the pipeline in their order."""
    for exporter in (
        write_minddata,
        write_loader_pipeline,
        write_cpu_usage,
        write_pipeline_raw,
        write_pipeline_summary,
    ):
        exporter(export)


def test_figures_are_those_of_mindspores_own_analysis(tmp_path: Path, shared: Path) -> None:
    golden = shared / "data" / "mindspore" / "real_minddata_ms210_train" / "profiler"
    export = make_export(tmp_path, framework="mindspore")
    span = export.recording / "minddata" / "1"
    span.mkdir(parents=True)
    for name in ("pipeline_profiling_0.json", "minddata_cpu_utilization_0.json", "dataset_iterator_profiling_0.txt"):
        (span / name).write_bytes((golden / name).read_bytes())

    write_all(export)

    assert read(export, "pipeline_profiling_1.json") == (golden / "pipeline_profiling_0.json").read_text()
    assert read(export, RAW) == (golden / "minddata_pipeline_raw_0.csv").read_text()
    assert read(export, f"{SUMMARY}.csv") == (golden / "minddata_pipeline_summary_0.csv").read_text()
    assert read(export, f"{SUMMARY}.json") == (golden / "minddata_pipeline_summary_0.json").read_text()


def test_the_newest_span_is_copied(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    for number in (2, 10):
        span = export.recording / "minddata" / str(number)
        span.mkdir(parents=True)
        operator = {"op_id": number, "op_type": "MapOp", "num_workers": 1, "metrics": None}
        (span / "pipeline_profiling_7.json").write_text(json.dumps({"op_info": [operator], "sampling_interval": 20}))
    (export.recording / "minddata" / "11").mkdir()

    write_minddata(export)

    assert json.loads(read(export, "pipeline_profiling_1.json"))["op_info"][0]["op_id"] == 10
    assert "1 earlier span" in export.left_out["pipeline_profiling_1.json (earlier)"]


def test_a_loader_is_a_pipeline_of_three_stages(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path), write_all)

    when = (BASE + 2 * MS) // MS
    assert lines(export, "dataset_iterator_profiling_1.txt")[:5] == [
        f"0 1 1 0 {when}",
        f"0 2 1 2 {when}",
        f"0 0 1 2 {when}",
        f"1 4 1 0 {when}",
        f"0 1 2 0 {when + 10}",
    ]
    assert lines(export, RAW) == [
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id",
        "0,EpochCtrlOp,1,,,,,10,,[1]",
        '1,BatchOp,2,"[0, 1, 0]",0.3333333333333333,4,0.08333333333333333,10,0,[2]',
        '2,GeneratorOp,2,"[0, 1, 0]",0.3333333333333333,4,0.08333333333333333,10,1,',
    ]
    summary = json.loads(read(export, f"{SUMMARY}.json"))
    assert summary["queue_utilization_pct"] == [-1, 8.25, 8.25]
    assert summary["queue_empty_freq_pct"] == [-1, 66.67, 66.67]
    assert summary["avg_cpu_pct_per_worker"] == [-1, 10.0, -1]
    assert summary["bottleneck_warning"] == ["Batch(id=1)"]


def test_only_batches_of_the_chosen_steps_count(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.run, export.steps = export.run.select(steps=[5, 6]), [5, 6]

    write_loader_pipeline(export)

    assert len(lines(export, "dataset_iterator_profiling_1.txt")) == 8


def test_of_several_loaders_the_busiest_is_shown_and_the_others_told(tmp_path: Path) -> None:
    batches = raw_files()["batches.csv"] + f"{BASE},evaluation,0,4,1000,,,0\n"
    export = exported(make_export(tmp_path, raw={"batches.csv": batches}), write_loader_pipeline)

    assert len(lines(export, "dataset_iterator_profiling_1.txt")) == 12
    assert "'loader'" in export.left_out["pipeline_profiling_1.json (loaders)"]


def test_without_batches_the_reason_is_told(tmp_path: Path) -> None:
    export = exported(make_export(tmp_path, raw={"batches.csv": None}), write_all)

    assert RAW not in export.written
    assert "data_process" in export.left_out[RAW]


def with_queues(root: Path, *queues: str) -> RankExport:
    """An export whose batches have these columns `queue_size,queue_capacity,workers`."""
    head, *rows = raw_files()["batches.csv"].splitlines()
    batches = (",".join([*row.split(",")[:5], queue]) for row, queue in zip(rows, queues, strict=True))
    return make_export(root, raw={"batches.csv": "\n".join([head, *batches, ""])})


def test_a_loader_without_workers_has_no_queue_and_no_pipeline(tmp_path: Path) -> None:
    export = with_queues(tmp_path, ",,0", ",,0", ",,0")

    write_all(export)

    assert not any(name.startswith(("dataset_iterator", "minddata_pipeline")) for name in export.written)
    assert json.loads(read(export, "pipeline_profiling_1.json"))["op_info"] == []  # for readers of CPU use
    assert "no workers" in export.left_out[RAW]
    assert "no workers" in export.left_out["dataset_iterator_profiling_1.txt"]


def test_a_batch_whose_queue_was_not_seen_found_none_empty(tmp_path: Path) -> None:
    export = with_queues(tmp_path, "3,4,2", ",,2", "1,4,2")

    write_all(export)

    assert [line for line in lines(export, "dataset_iterator_profiling_1.txt") if line[0] == "1"] == [
        f"1 4 1 3 {(BASE + 2 * MS) // MS}",
        f"1 4 2 1 {(BASE + 22 * MS) // MS}",
    ]


@pytest.mark.parametrize(("samples", "advised"), [(3, False), (4, True)])
def test_about_cpu_is_advised_from_three_shares_on(tmp_path: Path, samples: int, advised: bool) -> None:
    host = "\n".join([*raw_files()["host.csv"].splitlines()[: 1 + 3 * samples], ""])
    export = exported(make_export(tmp_path, raw={"host.csv": host}), write_all)

    summary = json.loads(read(export, f"{SUMMARY}.json"))
    assert summary["avg_cpu_pct"][1] == 20.0
    assert ("cpu_analysis_details" in summary) is advised
    assert ("bottleneck_warning" in summary) is advised


def node(number: int, kind: str, **known: object) -> Node:
    values = {"workers": 4, "children": (), "usage": 0.6, "empty": 0.0, "worker_cpu": 0.5, "depth": number, **known}
    return Node(number=number, name=f"{kind}(id={number})", kind=kind, **values)  # type: ignore[arg-type]


def advised(*nodes: Node) -> dict[str, list[str]]:
    return advise(nodes, LIMITS)


def test_a_busy_operator_is_the_bottleneck() -> None:
    found = advised(node(0, "Map", children=("TFRecord(id=1)",), worker_cpu=0.7625), node(1, "TFRecord"))

    assert found["bottleneck_warning"] == ["Map(id=0)"]
    assert found["bottleneck_suggestion"] == [
        "Map(id=0) has high CPU utilization per worker of 76.25% Try increasing num_parallel_workers above 4."
    ]
    assert "76.25%" in found["cpu_analysis_details"][0]


def test_of_several_busy_operators_the_one_nearest_to_training_is_the_bottleneck() -> None:
    found = advised(node(2, "Map", worker_cpu=0.9), node(1, "Map", children=("Map(id=2)",), worker_cpu=0.8))

    assert found["bottleneck_warning"] == ["Map(id=1)"]
    assert len(found["cpu_analysis_details"]) == 2


def test_a_slow_reader_is_told() -> None:
    found = advised(node(0, "Batch", children=("TFRecord(id=1)",), usage=None), node(1, "TFRecord", usage=0.2))

    assert "TFRecord(id=1)'s output queue usage=20.0% is low" in found["queue_analysis_details"][0]
    assert "bottleneck_warning" not in found


def test_an_idle_operator_behind_a_full_queue_is_the_bottleneck() -> None:
    slow = node(0, "Map", children=("TFRecord(id=1)",), usage=0.1, worker_cpu=0.05)

    found = advised(slow, node(1, "TFRecord", usage=0.9))

    assert found["bottleneck_suggestion"][0].startswith("Map(id=0) has low CPU utilization per worker of 5.0% and")
    assert "usage=90.0% is greater output queue usage=10.0%" in found["queue_analysis_details"][0]
    assert "num_parallel_workers=4 might not bring as much" in found["cpu_analysis_details"][0]


def test_an_empty_queue_before_the_device_is_told() -> None:
    found = advised(node(0, "DataQueue", children=("Map(id=1)",), usage=None, workers=1), node(1, "Map", empty=0.7))

    assert "empty in 70.0% of the samples" in found["queue_analysis_details"][0]


def test_operators_of_one_thread_are_left_out() -> None:
    assert advised(node(0, "Shuffle", children=("TFRecord(id=1)",), worker_cpu=0.99), node(1, "TFRecord")) == {}


def test_limits_of_the_run_decide(tmp_path: Path) -> None:
    export = make_export(tmp_path)
    export.run = export.run.with_limits({"input_operators": replace(LIMITS, low_worker_cpu=0.05, min_cpu_samples=9)})

    write_all(export)

    assert "cpu_analysis_details" not in json.loads(read(export, f"{SUMMARY}.json"))
