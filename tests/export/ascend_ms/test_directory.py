"""The directory as a whole: names, modes, and what becomes of files that cannot be made."""

from __future__ import annotations

import json
import stat
from datetime import datetime
from pathlib import Path

import pytest
from exports import EPOCH_NS, export, host_run, output

from builders import make_run
from stepscope.errors import Unavailable
from stepscope.export.ascend_ms import directory
from stepscope.export.rank_export import RankExport

ON_HOSTS = {
    "step_trace_time.csv",
    "trace_view.json",
    "op_statistic.csv",
    "operator_details.csv",
    "operator_memory.csv",
    "memory_record.csv",
    "communication.json",
    "communication_matrix.json",
}


def test_the_directory_is_named_after_rank_and_start(tmp_path: Path) -> None:
    started = EPOCH_NS + 5_000_000_000
    made = export(host_run(), tmp_path, about={"started_ns": started})

    stamp = datetime.fromtimestamp(started // 10**9).strftime("%Y%m%d%H%M%S")
    assert (tmp_path / f"rank-0_{stamp}_ascend_ms" / "profiler_info_0.json").is_file()
    assert all((tmp_path / name).is_file() for name in made[0].written)


def test_what_there_is_is_written_and_the_rest_named(tmp_path: Path) -> None:
    made = export(host_run(), tmp_path)[0]

    assert {file.name for file in output(tmp_path).iterdir()} == ON_HOSTS
    assert set(made.left_out) == {"kernel_details.csv", "api_statistic.csv"}
    assert "no rank has `kernels`" in made.left_out["kernel_details.csv"]


def test_a_device_has_kernels_and_no_operators(tmp_path: Path) -> None:
    made = export(make_run(ranks=1), tmp_path)[0]

    assert {"kernel_details.csv", "op_statistic.csv"} <= {file.name for file in output(tmp_path).iterdir()}
    assert {"operator_details.csv", "operator_memory.csv"} <= set(made.left_out)


def test_only_the_user_may_look(tmp_path: Path) -> None:
    export(host_run(), tmp_path)

    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_file_that_fails_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: RankExport) -> str:
        raise ZeroDivisionError("no such luck")

    monkeypatch.setitem(directory.FILES, "step_trace_time.csv", broken)
    made = export(host_run(), tmp_path)[0]

    assert made.left_out["step_trace_time.csv"] == "ZeroDivisionError: no such luck"
    assert {file.name for file in output(tmp_path).iterdir()} == ON_HOSTS - {"step_trace_time.csv"}
    assert "step_trace_time.csv" in caplog.text


def test_a_full_disk_is_told_to_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: RankExport) -> str:
        raise OSError("no space left")

    monkeypatch.setitem(directory.FILES, "trace_view.json", full)

    with pytest.raises(OSError, match="no space left"):
        export(host_run(), tmp_path)


def test_nothing_recorded_makes_only_the_side_files(tmp_path: Path) -> None:
    run = host_run()
    frames = {0: {"ranks": run.rank(0).table("ranks").collect()}}
    made = export(type(run).from_frames(frames), tmp_path)[0]

    assert [Path(name).name for name in made.written] == ["profiler_info_0.json", "profiler_metadata.json"]
    assert set(made.left_out) == set(directory.FILES)
    assert all(made.left_out.values())


def test_json_is_indented_if_wanted(tmp_path: Path) -> None:
    export(host_run(), tmp_path, pretty=True)

    for name in ("communication.json", "communication_matrix.json"):
        text = (output(tmp_path) / name).read_text()
        assert text.startswith('{\n    "step1"')
        json.loads(text)


def test_only_the_wanted_steps_are_written(tmp_path: Path) -> None:
    export(host_run().select(steps=[2, 3]), tmp_path)

    table = (output(tmp_path) / "step_trace_time.csv").read_text().splitlines()
    assert [row.partition(",")[0] for row in table[1:]] == ["2", "3"]
    assert list(json.loads((output(tmp_path) / "communication.json").read_bytes())) == ["step2", "step3"]


def test_pipeline_files_of_this_export_are_repeated(tmp_path: Path) -> None:
    run = host_run().select(ranks=[0])
    made = RankExport(run, 0, tmp_path, {}, tmp_path)
    made.write("minddata_pipeline_raw_0.csv", "op_id,op_type\n")
    made.write("host_info/dataset_0.csv", "Operation,Stage\n")
    (tmp_path / "minddata_pipeline_summary_0.csv").write_text("of another export")
    directory.write_ascend_ms(made)

    assert (output(tmp_path) / "minddata_pipeline_raw_0.csv").read_text() == "op_id,op_type\n"
    assert (output(tmp_path) / "dataset.csv").read_text() == "Operation,Stage\n"
    assert not (output(tmp_path) / "minddata_pipeline_summary_0.csv").exists()


def test_unavailable_is_a_reason_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(_: RankExport) -> str:
        raise Unavailable("was not recorded")

    monkeypatch.setitem(directory.FILES, "trace_view.json", missing)

    assert export(host_run(), tmp_path)[0].left_out["trace_view.json"] == "was not recorded"
    assert not caplog.records
