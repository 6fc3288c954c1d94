"""A whole export: what lies where, what is kept, and what happens when something fails."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from export_samples import make_recording, sampled, torch_frames

from stepscope.export.__main__ import main
from stepscope.export.exporting import EXPORTERS, Outcome, export
from stepscope.export.rank_export import RankExport
from stepscope.run import Run


def opened(recording: Path) -> Run:
    return Run.from_frames({1: {**torch_frames(), **sampled(recording)}})


def exported(recording: Path, **options: object) -> Outcome:
    (outcome,) = export([recording], opener=opened, **options)  # type: ignore[arg-type]
    return outcome


def test_all_files_are_private_and_listed(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)
    before = {path: path.read_bytes() for path in recording.rglob("*") if path.is_file()}

    outcome = exported(recording)

    directory = tmp_path / "profiler"
    assert not outcome.problem
    made = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    raw = {str(path.relative_to(directory)) for path in before}
    assert made == {*outcome.files, *raw, "exported-1.json"}
    assert all((directory / name).stat().st_mode & 0o777 == 0o600 for name in [*outcome.files, "exported-1.json"])
    assert (directory / "host_info").stat().st_mode & 0o777 == 0o700
    assert before == {path: path.read_bytes() for path in before}
    listed = json.loads((directory / "exported-1.json").read_text())
    assert listed["format"] == "stepscope-exported"
    assert listed["recording"] == f"recording/{recording.name}"
    assert listed["files"] == outcome.files
    assert listed["left_out"] == outcome.left_out
    assert "parallel_strategy_1.json" in outcome.left_out


def test_one_failing_exporter_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_nothing(export: RankExport) -> None:
        raise ValueError("no such thing")

    monkeypatch.setattr("stepscope.export.exporting.EXPORTERS", (write_nothing, *EXPORTERS))

    outcome = exported(make_recording(tmp_path))

    assert outcome.left_out["nothing"] == "ValueError: no such thing"
    assert "profiler_info_1.json" in outcome.files


def test_doing_it_again_replaces_the_files_and_removes_those_that_are_not_made_any_more(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)
    first = exported(recording)
    (recording / "batches.csv").unlink()

    second = exported(recording)

    gone = set(first.files) - set(second.files)
    assert "minddata_pipeline_raw_1.csv" in gone
    assert not any((tmp_path / "profiler" / name).exists() for name in gone)
    assert not (tmp_path / "profiler" / "earlier").exists()


def test_files_of_an_earlier_recording_are_moved_and_other_ranks_stay(tmp_path: Path) -> None:
    first = exported(make_recording(tmp_path, stamp="20261121100000000"))
    stranger = tmp_path / "profiler" / "profiler_info_0.json"
    stranger.write_text("{}")

    exported(make_recording(tmp_path, stamp="20261121110000000"))

    attic = tmp_path / "profiler" / "earlier" / "20261121100000000"
    kept = {str(path.relative_to(attic)) for path in attic.rglob("*") if path.is_file()}
    assert kept == {*first.files, "exported-1.json"}
    assert attic.stat().st_mode & 0o777 == 0o700
    assert stranger.read_text() == "{}"


def test_several_recordings_of_a_rank_keep_their_places_however_often(tmp_path: Path) -> None:
    old = make_recording(tmp_path, stamp="20261121100000000")
    new = make_recording(tmp_path, stamp="20261121110000000")
    directory = tmp_path / "profiler"
    seen = []
    for recordings in ([old], [new, old], [old, new]):
        outcomes = export(recordings, opener=opened)

        assert not any(outcome.problem for outcome in outcomes)
        seen.append(json.loads((directory / "exported-1.json").read_text())["recording"])
    files = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert seen == [f"recording/{name}" for name in (old.name, new.name, new.name)]
    assert {Path(file).parts[1] for file in files if file.startswith("earlier")} == {"20261121100000000"}
    assert "earlier/20261121100000000/profiler_info_1.json" in files
    assert "earlier/20261121100000000/exported-1.json" in files


def test_no_empty_directory_is_left_behind(tmp_path: Path) -> None:
    recording = make_recording(tmp_path, about={"options": {"profile_framework": "all"}})
    exported(recording)
    about = json.loads((recording / "recording.json").read_text())
    (recording / "recording.json").write_text(json.dumps({**about, "options": {"profile_framework": None}}))

    exported(recording)

    assert not (tmp_path / "profiler" / "host_info").exists()


def test_a_list_that_points_elsewhere_moves_nothing_from_there(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)
    victim = tmp_path / "precious.txt"
    victim.write_text("mine")
    names = ["../precious.txt", str(victim), f"recording/{recording.name}/marks.csv"]
    for told in (f"recording/{recording.name}", "recording/rank-1_other_20251121100000000"):
        (tmp_path / "profiler" / "exported-1.json").write_text(json.dumps({"files": names, "recording": told}))

        exported(recording)

        assert victim.read_text() == "mine"
        assert (recording / "marks.csv").exists()


def test_a_damaged_list_is_no_obstacle(tmp_path: Path) -> None:
    recording = make_recording(tmp_path)
    (tmp_path / "profiler" / "exported-1.json").write_text("{")

    assert not exported(recording).problem


def test_steps_narrow_everything(tmp_path: Path) -> None:
    exported(make_recording(tmp_path), steps=[5, 6])

    rows = (tmp_path / "profiler" / "step_trace_raw_1_detail_time.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows] == ["step_num", "1", "2", "-"]
    assert json.loads((tmp_path / "profiler" / "exported-1.json").read_text())["steps"] == [5, 6]
    starts = [int(row.split(",")[1]) for row in rows[1:]]
    assert starts[2] == (starts[0] + starts[1]) // 2, "step 4 was recorded, so step 5 has a predecessor"
    types = (tmp_path / "profiler" / "cpu_op_type_info_1.csv").read_text().splitlines()
    assert types[1].startswith("aten::addmm,2,1,")


def test_steps_that_are_not_there_are_a_problem_and_change_nothing(tmp_path: Path) -> None:
    outcome = exported(make_recording(tmp_path), steps=[99])

    assert "no step" in outcome.problem
    assert not (tmp_path / "profiler" / "exported-1.json").exists()


def test_one_damaged_recording_hides_no_other(tmp_path: Path) -> None:
    good, bad = make_recording(tmp_path / "a"), make_recording(tmp_path / "b")
    (bad / "recording.json").write_text("{")

    outcomes = {outcome.recording: outcome for outcome in export([bad, good], opener=opened)}

    assert outcomes[bad].problem
    assert not outcomes[good].problem


def test_window_originals_are_kept_if_asked_for(tmp_path: Path) -> None:
    recording = make_recording(tmp_path, about={"options": {"data_simplification": False}})
    for number in (1, 2):
        (recording / "windows" / f"{number:06d}").mkdir(parents=True)
        (recording / "windows" / f"{number:06d}" / "trace.json").write_text("{}")
    header = "window,start_ns,end_ns,first_step,last_step,kind,state,files"
    (recording / "windows.csv").write_text(
        f"{header}\n1,1,2,1,2,kineto,complete,trace.json\n2,2,3,2,3,kineto,failed,\n"
    )

    outcome = exported(recording)

    assert [name for name in outcome.files if name.startswith("windows_1")] == ["windows_1/000001/trace.json"]
    assert not any(name.startswith("windows_1") for name in exported(recording, data_simplification=True).files)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parts() -> object:
        yield "half"
        raise OSError(28, "No space left on device")

    recording = make_recording(tmp_path)
    one = RankExport(opened(recording), 1, recording, {}, tmp_path / "profiler")
    with pytest.raises(OSError, match="No space"):
        one.write("big.json", parts())  # type: ignore[arg-type]

    assert not list((tmp_path / "profiler").glob("*big*"))
    assert not one.written


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "recording.json" in capsys.readouterr().err
    assert main([str(tmp_path), "--steps", "x"]) == 1
    assert "steps" in capsys.readouterr().err
    assert main([str(tmp_path), "--operator", "MatMul"]) == 1
    assert "recording.json" in capsys.readouterr().err


def test_the_module_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stepscope.export", str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
