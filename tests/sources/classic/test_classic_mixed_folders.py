"""Folders in which a classic profile is not alone, and clusters of many hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from every_kind import NAMES, texts, write_every_kind

import stepscope
from stepscope.sources import rank_tables
from stepscope.sources.classic import legacy
from stepscope.sources.discover import discover

DETAIL = "RuntimeProfilerDetail1795228705585228282.csv"
EVENT = (
    "[Step:1 step_time:1000ns, module_total_time:1ns]\nmodule:Kernel, event:KernelLaunch, op:MatMul, "
    "start_time:1795228705000000500, end_time:1795228705000000800, dur_time:,300,ns, tid:7, pid:42\n"
)


def test_what_one_reader_leaves_of_a_folder_is_a_recording_to_another(tmp_path: Path) -> None:
    write_every_kind(tmp_path, texts())
    (tmp_path / DETAIL).write_text(EVENT)

    found = discover([tmp_path])

    inputs = {item.source: len(item.files) for item in found.inputs}
    assert inputs == {"runtime_profiler": 1, "classic": len(NAMES)}
    assert found.problems == []


def test_what_only_says_who_recorded_is_no_recording(tmp_path: Path) -> None:
    info = tmp_path / "profiler_info_0.json"
    info.write_text(json.dumps({"rank_id": 0, "ms_version": "2.3.1"}))

    found = discover([tmp_path])

    assert found.inputs == []
    assert [(problem.severity, Path(problem.file).name) for problem in found.problems] == [("note", info.name)]


@pytest.mark.parametrize("kind", ["step_trace", "host_info", "device_info"])
def test_a_file_that_cannot_be_looked_at_costs_only_what_it_says(tmp_path: Path, kind: str) -> None:
    write_every_kind(tmp_path, {name: text for name, text in texts().items() if name != kind})
    (tmp_path / NAMES[kind]).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / NAMES[kind]).symlink_to("nowhere")

    run = stepscope.open_run(tmp_path)

    assert run.has("operator_totals")
    errors = run.issues.filter(severity="error")["file"].to_list()
    assert [Path(file).name for file in errors] == [Path(NAMES[kind]).name]


def test_the_tables_of_a_cluster_are_read_once_for_all_hosts_and_again_when_changed(tmp_path: Path) -> None:
    folders = [tmp_path / legacy.FOLDER / str(host) / "profiler" for host in range(3)]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "flops_0.txt").write_text("x")

    first, *others = [legacy.cluster_of(folder) for folder in folders]
    (tmp_path / rank_tables.TABLE).write_text(json.dumps({"server_list": [{"server_id": "a", "device": []}]}))

    assert first is not None
    assert all(cluster is first for cluster in others)
    assert legacy.cluster_of(folders[0]) is not first


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
def test_exports_of_a_later_version_in_the_folder_are_a_run_of_their_own(
    tmp_path: Path, rank: int, analysed: bool
) -> None:
    write_every_kind(tmp_path / "alone", texts())
    folder = write_every_kind(tmp_path / "both", texts()) / f"rank-{rank}_20251009163000000_ascend_ms"
    (folder / "FRAMEWORK").mkdir(parents=True)
    (folder / "FRAMEWORK" / "cpu_op_execute_timestamp_0.txt").write_text(
        "Default/Relu-op1;HostCpuOps;1760000000000000000,0.5,0 1760000000000900000,0.25,0\n"
    )
    if analysed:
        (folder / "ASCEND_PROFILER_OUTPUT").mkdir()
        dataset = "Operation,Stage,Occurrences,Avg. time (us)\nPipeline,getNext,4,2.5\n"
        (folder / "ASCEND_PROFILER_OUTPUT" / "dataset.csv").write_text(dataset)

    alone = stepscope.open_run(tmp_path / "alone")
    run = stepscope.open_run(tmp_path / "both")

    (other,) = run.others
    assert (run.path, other.path) == (tmp_path / "both", folder)
    for table in ("operators", "operator_totals", "kernels", "steps", "ranks"):
        assert run.table(table).collect().equals(alone.table(table).collect())
    assert other.table("operators").collect()["duration_ns"].to_list() == [500_000, 250_000]
    assert other.has("operator_totals") == analysed
    note = run.issues.filter(run.issues["problem"].str.contains("lies under the same path"))
    assert note["severity"].to_list() == ["note"]
    assert str(folder) in note["problem"][0]
