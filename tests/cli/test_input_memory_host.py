"""The commands about input, memory and host of one rank, and the list of rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.cli import main
from tests.cli.calling import document, printed


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A classic profile with a pipeline, a queue, CPU samples, a memory plan and host events."""
    folder = tmp_path / "profiler"
    (folder / "host_info").mkdir(parents=True)
    lines = [
        f"0 0 {k} 3 {100 + 10 * k}\n0 1 {k} 0 {100 + 10 * k}\n0 2 {k} 3 {100 + 10 * k}\n"
        f"1 16 {k} {0 if k < 5 else 4} {100 + 10 * k}\n"
        for k in range(1, 11)
    ]
    (folder / "dataset_iterator_profiling_0.txt").write_text("".join(lines))
    (folder / "minddata_pipeline_raw_0.csv").write_text(
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        "0,EpochCtrlOp,1,,,,,20,,[1]\n"
        '1,MapOp,2,"[0, 1, 1]",0.67,16,0.04,20,0,[2]\n'
        '2,GeneratorOp,1,"[16, 16, 15]",15.7,16,0.98,20,1,\n'
    )
    (folder / "minddata_cpu_utilization_0.json").write_text(
        json.dumps(
            {
                "cpu_processor_num": 4,
                "sampling_interval": 20,
                "time_stamp": [100, 120, 140],
                "device_info": {"user_utilization": [1, 50, 60], "sys_utilization": [1, 5, 5],
                                "io_utilization": [0, 0, 0], "idle_utilization": [98, 45, 35]},
                "process_info": {"user_utilization": [1, 50, 60], "sys_utilization": [1, 5, 5]},
                "op_info": [{"op_id": 1, "metrics": {"user_utilization": [0, 9, 9], "sys_utilization": [0, 0, 0]}}],
            }
        )
    )  # fmt: skip
    tensor = {"tensor_name": "t", "tensor_id": 0, "size": 0.5, "type": "output", "shape": "2", "format": "ND",
              "data_type": "FLOAT16", "life_long": "LifeLongNone", "life_start": 0, "life_end": 1}  # fmt: skip
    node = {"name": "Conv2D-op1", "fullname": "Default/Conv2D-op1", "allocations": 1, "inputs": []}
    nodes = [
        {**node, "node_id": 0, "size": 0.5, "allocated": 0.5, "outputs": [tensor]},
        {**node, "node_id": 1, "size": 0.0, "allocated": 0.5, "outputs": []},
    ]
    details = {"graph_id": 1, "static_mem": 0.25, "nodes": nodes, "fp_start": 0, "bp_end": 1, "lines": [0.75, 0.75]}
    (folder / "memory_usage_details_0.json").write_text(
        json.dumps({"1": {**details, "breakdowns": [[tensor], [tensor]]}})
    )
    (folder / "memory_usage_summary_0.json").write_text(
        json.dumps({"capacity": 1.0, "allocations": 1, "deallocations": 1, "peak_mem": 0.95, "static_mem": 0.25})
    )
    (folder / "host_info" / "host_info_0.csv").write_text(
        "tid,pid,parent_pid,module_name,event,stage,level,start_end,custom_info,memory_usage(kB),time_stamp(us)\n"
        "1,2,1,graph,compile,build,1,0,,500,1714528800000000\n"
        "1,2,1,graph,compile,build,1,1,,700,1714528800000900\n"
    )
    return folder


def test_input_shows_stages_queues_operators_and_cpu(profile: Path, capsys) -> None:
    tables = document(capsys, "input", profile)["tables"]

    assert tables["input_stages"][0]["verdict"] == "bottleneck"
    assert tables["input_queues"][0]["empty"] == 4
    assert [row["operator"] for row in tables["input_operators"] if row["bottleneck"]] == ["MapOp_1"]
    assert {row["scope"] for row in tables["cpu_summary"]} == {"host", "process", "operators", "operator"}
    assert "loader" not in tables


def test_input_for_people_names_the_bottleneck(profile: Path, capsys) -> None:
    out = printed(capsys, "input", profile)
    assert "The bottleneck is data processing." in out
    assert "Slowest operators of the pipeline: MapOp_1." in out


def test_memory_shows_the_peak_and_any_node(profile: Path, capsys) -> None:
    tables = document(capsys, "memory", profile, "--graph", "1", "--node", "0")["tables"]

    assert tables["memory_peak"][0]["peak_bytes"] == 3 * 2**28
    assert [row["kind"] for row in tables["memory_hints"]] == ["near capacity"]
    assert tables["memory_breakdown"][0]["node"] == 0
    assert [row["mark"] for row in tables["memory_usage"]] == ["forward_start", "backward_end"]


def test_host_shows_time_memory_and_the_cpu_of_some_steps(profile: Path, capsys) -> None:
    tables = document(capsys, "host", profile, "--steps", "1-2")["tables"]

    assert tables["host_time"][0]["total_ns"] == 900_000
    assert tables["host_memory"][0]["growth_bytes"] == 200 * 1024
    assert {row["step"] for row in tables["cpu_utilization"]} == {2}


def test_host_says_which_tables_are_of_all_steps(profile: Path, capsys) -> None:
    out = printed(capsys, "host", profile, "--steps", "1-2")
    assert "Host memory by module, event and stage, all steps" in out
    assert "Host memory over time, all steps" in out


def test_a_node_that_was_not_recorded_ends_with_an_error(profile: Path, capsys) -> None:
    assert main(["memory", str(profile), "--graph", "1", "--node", "99"]) != 0

    assert "graph 1 has no node 99" in capsys.readouterr().err


def test_analyze_names_the_empty_queue_although_no_step_is_there(profile: Path, capsys) -> None:
    out = printed(capsys, "analyze", "-q", profile)
    assert out.startswith("Rank 0 makes batches too slowly: 4 of 10 batches (40%) found the host queue empty.")
    assert "No step could be analysed" not in out


def test_limits_of_a_file_are_used(profile: Path, tmp_path: Path, capsys) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("[input_stages]\nhost_empty_ratio = 0.5\n[memory_hints]\nnear_capacity_ratio = 0.99\n")

    assert "host queue empty" not in printed(capsys, "analyze", "-q", profile, "--limits", file)
    assert document(capsys, "memory", profile, "--limits", file)["tables"]["memory_hints"] == []


def test_a_mistake_in_the_limits_is_told_before_anything_is_read(tmp_path: Path, capsys) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("[idle-time]\nidle_rate = 1\n")

    assert "idle-time has no limit 'idle_rate'. Did you mean idle_ratio" in printed(
        capsys, "analyze", tmp_path / "none", "--limits", file, code=2
    )


def test_rules_lists_every_rule_with_its_limits(capsys) -> None:
    plain, table = printed(capsys, "rules"), printed(capsys, "rules", "list", "--with-limits")
    rows = json.loads(printed(capsys, "rules", "-f", "json"))

    assert "  iteration-interval     Long intervals" in plain and "busy_ratio " not in plain
    assert "iteration-interval: Report long intervals" in table and "busy_ratio " in table
    assert {"rule": "cpu-busy", "limit": "busy_ratio", "value": 0.8}.items() <= next(
        row for row in rows if row["rule"] == "cpu-busy"
    ).items()


def test_rules_can_be_printed_as_a_file_that_is_read_again(tmp_path: Path, capsys) -> None:
    assert main(["rules", "--toml"]) == 0
    file = tmp_path / "limits.toml"
    file.write_text(capsys.readouterr().out)

    plain = printed(capsys, "rules", "-f", "csv")
    assert printed(capsys, "rules", "-f", "csv", "--limits", file) == plain
