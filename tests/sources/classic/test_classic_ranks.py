"""Who was profiled in a classic profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from parts import profile
from stepscope.sources.classic.ranks import write_ranks
from stepscope.store import MemorySink

INFO = "profiler_info_0.json"
NEW = {"context_mode": "graph", "rank_id": "0", "ms_version": "2.3.1", "is_heterogeneous": False}
NEW |= {"parallel_mode": "data_parallel", "stage_num": 2, "rank_size": 4}


def facts(directory: Path, files: dict[str, str | bytes]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What is known of rank 0, and severity and file's name of each issue."""
    sink = MemorySink("classic")
    write_ranks(profile(directory, files), sink)
    tables = sink.close()
    issues = tables["issues"].select("severity", "file").rows() if "issues" in tables else []
    known = {name: value for name, value in sink.facts.items() if value is not None}
    return known, [(severity, Path(file).name) for severity, file in issues]


def test_profiler_info_tells_version_mode_and_sizes_of_the_job(tmp_path: Path) -> None:
    known, issues = facts(tmp_path, {INFO: json.dumps(NEW), "aicore_intermediate_0_type.csv": ""})

    assert known == {
        "rank": 0,
        "rank_origin": "content",
        "world_size": 4,
        "device_kind": "npu",
        "framework": "mindspore",
        "framework_version": "2.3.1",
        "mode": "graph",
        "format": "classic",
        "takes_functions": False,
        "parallelism": '{"parallel_mode": "data_parallel", "stage_num": 2}',
    }
    assert issues == []


def test_older_generations_name_stages_otherwise_and_say_less(tmp_path: Path) -> None:
    old = {"context_mode": "pynative", "rank_id": 0, "ms_version": "1.9.0", "pipeline_stage_num": 3}

    known, issues = facts(tmp_path, {INFO: json.dumps(old)})

    assert known["mode"] == "pynative"
    assert known["parallelism"] == '{"stage_num": 3}'
    assert not known.keys() & {"world_size", "device_kind"}
    assert issues == []


def test_a_profile_without_profiler_info_is_whole_and_names_of_files_tell_the_sizes(tmp_path: Path) -> None:
    known, issues = facts(tmp_path, {"ascend_cluster_analyse_pipeline-parallel_2_4_0.csv": ""})

    assert (known["rank_origin"], known["world_size"], known["device_kind"]) == ("file name", 4, "npu")
    assert known["parallelism"] == '{"parallel_mode": "pipeline_parallel", "stage_num": 2}'
    assert issues == []


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["cpu_op_type_info_0.csv"], "cpu"),
        (["gpu_op_type_info_0.csv", "cpu_op_type_info_0.csv"], "cuda"),
        (["aicpu_intermediate_0.csv", "cpu_op_type_info_0.csv"], "npu"),
        (["cpu_timeline_display_0.json"], "cpu"),
        (["minddata_getnext_profiling_0.txt"], "cuda"),
        (["dataset_iterator_profiling_0.txt", "step_trace_raw_0_detail_time.csv"], None),
    ],
)
def test_the_device_is_told_by_the_files_that_there_are(tmp_path: Path, names: list[str], kind: str | None) -> None:
    known, _ = facts(tmp_path, dict.fromkeys(names, ""))

    assert known.get("device_kind") == kind


def test_files_of_pynative_tell_the_mode(tmp_path: Path) -> None:
    assert facts(tmp_path, {"pynative_op_intermediate_0_type.csv": ""})[0]["mode"] == "pynative"


def test_what_was_exported_of_pytorch_is_called_so_and_claims_no_mode(tmp_path: Path) -> None:
    known, _ = facts(tmp_path, {INFO: json.dumps(NEW | {"framework": "pytorch", "ms_version": "2.9.0"})})

    assert (known["framework"], known["framework_version"]) == ("pytorch", "2.9.0")
    assert "mode" not in known


def test_another_rank_in_the_content_is_noted(tmp_path: Path) -> None:
    known, issues = facts(tmp_path, {INFO: json.dumps(NEW | {"rank_id": "3"})})

    assert (known["rank"], known["rank_origin"]) == (0, "file name")
    assert issues == [("note", INFO)]


@pytest.mark.parametrize("text", [b"", b'{"rank_id": "0", "ms_ver', b"[1, 2]", b"\xff\xfe\x00", b"[" * 100_000])
def test_a_damaged_profiler_info_costs_only_what_it_says(tmp_path: Path, text: bytes) -> None:
    known, issues = facts(tmp_path, {INFO: text, "flops_0.txt": ""})

    named = {"rank": 0, "rank_origin": "file name", "device_kind": "npu"}
    assert known == named | {"framework": "mindspore", "format": "classic", "takes_functions": False}
    assert issues == [("error", INFO)]


def test_values_of_another_kind_are_unknown(tmp_path: Path) -> None:
    odd = {"rank_id": [1], "rank_size": "many", "stage_num": -2, "ms_version": 7, "context_mode": None}

    known, issues = facts(tmp_path, {INFO: json.dumps(odd)})

    assert not known.keys() & {"world_size", "framework_version", "mode", "parallelism"}
    assert issues == []
