"""The Profiler's contract: errors of use, paths, two at once, and what is told instead of raised."""

from __future__ import annotations

import gc
import inspect
import logging
import os
import subprocess
import sys
import typing
import weakref
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from recorder_standin import StandIn

import stepscope
from stepscope.errors import ProfilerPathError
from stepscope.record import analysing
from stepscope.record.options import SPECS, Options


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run to analyse; nothing is."""
    seen: list[list[str]] = []

    def note(command: list[str], directory: Path, *, wait: bool) -> None:
        seen.append([*command[3:], "sync" if wait else "async"])

    monkeypatch.setattr(analysing, "_run", note)
    return seen


def test_the_signature_shows_every_option_with_its_type_and_default() -> None:
    shown = inspect.signature(stepscope.Profiler).parameters
    usual = {field.name: field.default for field in fields(Options) if field.name != "given"}

    assert [name for name, one in shown.items() if one.kind is one.KEYWORD_ONLY] == list(SPECS)
    assert {name: shown[name].default for name in SPECS} == {**usual, "host_stack": None}
    assert typing.get_type_hints(stepscope.Profiler.__init__)["timeline_limit"] is int


def test_options_at_their_defaults_are_no_matter_on_any_device(
    backend: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    guide = {"profile_memory": False, "profile_communication": False, "aicore_metrics": 0, "l2_cache": False}

    profiler = backend.profiler(start_profile=False, **guide)

    assert not caplog.records
    assert not profiler.options.with_stack
    assert stepscope.Profiler(start_profile=False, host_stack=True).options.with_stack


def test_a_value_that_only_equals_a_default_is_still_checked(
    backend: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    backend.profiler(start_profile=False, op_time=1, optime=False)

    assert "op_time must be True or False" in caplog.text
    assert "'optime' is not an option" in caplog.text


def test_the_package_lists_its_public_names() -> None:
    assert {"Profiler", "open_run", "schedule"} <= set(dir(stepscope))


def test_ctrl_c_ends_an_analysis_and_goes_on_to_the_script(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait = subprocess.Popen.wait
    pressed: list[float | None] = []
    begun: list[subprocess.Popen[bytes]] = []

    def press(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        pressed.append(timeout)
        begun.append(process)
        if len(pressed) == 1:
            raise KeyboardInterrupt
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", press)
    with pytest.raises(KeyboardInterrupt):
        analysing._run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, wait=True)

    assert begun[0].poll() is not None
    assert "interrupted; the recording is kept" in caplog.text


def test_start_twice(backend: StandIn) -> None:
    profiler = backend.profiler()
    with pytest.raises(RuntimeError, match=r"start\(\) was called already"):
        profiler.start()
    profiler.stop()
    profiler.start()
    profiler.stop()


def test_stop_before_start(backend: StandIn, tmp_path: Path) -> None:
    profiler = backend.profiler(start_profile=False)
    with pytest.raises(RuntimeError, match=r"Call start\(\) first"):
        profiler.stop()
    assert profiler.directory is None
    assert not (tmp_path / "profiler" / "recording").exists()


def test_two_at_once(backend: StandIn) -> None:
    first = backend.profiler()
    with pytest.raises(RuntimeError, match="another Profiler records"):
        backend.profiler()
    second = backend.profiler(start_profile=False)
    with pytest.raises(RuntimeError, match="another Profiler records"):
        second.start()
    first.stop()
    second.start()
    second.stop()


def test_a_profiler_without_a_name_goes_on(backend: StandIn) -> None:
    known = weakref.ref(backend.profiler())
    gc.collect()
    assert known() is not None
    backend.train(2)
    left = known()
    assert left is not None
    left.stop()


@pytest.mark.parametrize("path", [3, b"x", object()])
def test_output_path_of_another_type(backend: StandIn, path: Any) -> None:
    with pytest.raises(TypeError, match="output_path"):
        stepscope.Profiler(output_path=path)


@pytest.mark.parametrize("path", ["", "a b", "out:put", "out*", "größe"])
def test_output_path_with_odd_characters(backend: StandIn, path: str) -> None:
    with pytest.raises(RuntimeError, match="output_path"):
        stepscope.Profiler(output_path=path)


def test_output_path_by_variable(
    backend: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv("MS_DIAGNOSTIC_DATA_PATH", str(tmp_path / "stated"))
    assert stepscope.Profiler(start_profile=False).root == tmp_path / "stated" / "profiler"
    assert not caplog.records
    given = stepscope.Profiler(start_profile=False, output_path=str(tmp_path / "given"))
    assert given.root == tmp_path / "given" / "profiler"
    assert "MS_DIAGNOSTIC_DATA_PATH" in caplog.text


def test_output_path_by_default(backend: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert stepscope.Profiler(start_profile=False).root == tmp_path / "data" / "profiler"


def test_a_path_that_cannot_be_made_ends_nothing_but_the_recording(
    backend: StandIn, tmp_path: Path, caplog: Any, commands: list[list[str]]
) -> None:
    (tmp_path / "file").write_text("")
    profiler = stepscope.Profiler(output_path=str(tmp_path / "file" / "out"))
    profiler.step()
    profiler.stop()
    profiler.analyse()
    with stepscope.Profiler(output_path=str(tmp_path / "file" / "out")):
        pass
    assert "training continues" in caplog.text
    assert str(tmp_path / "file" / "out") in caplog.text
    assert not commands


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_the_right_to_write(backend: StandIn, tmp_path: Path, caplog: Any) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    stepscope.Profiler(output_path=str(tmp_path / "closed")).stop()
    assert "cannot be" in caplog.text


def test_earlier_recordings_are_kept_and_told(backend: StandIn, tmp_path: Path, caplog: Any) -> None:
    for count in (1, 2):
        profiler = backend.profiler()
        backend.train(1)
        profiler.stop()
        assert len(list((tmp_path / "profiler" / "recording").iterdir())) == count
    assert "earlier recordings" in caplog.text


def test_profiling_mode_is_refused(backend: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILING_MODE", "true")
    with pytest.raises(RuntimeError, match="PROFILING_MODE"):
        backend.profiler()


def test_beside_an_external_collector_nothing_is_done(
    backend: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_SAMPLECONFIG", "{}")
    with backend.profiler() as profiler:
        profiler.step()
        profiler.start()
        profiler.stop()
    profiler.analyse()
    assert not list(tmp_path.iterdir())


def test_in_a_worker_of_a_loader_nothing_is_recorded(backend: StandIn, tmp_path: Path, caplog: Any) -> None:
    backend.worker = True
    profiler = backend.profiler()
    profiler.stop()
    assert "helper process" in caplog.text
    assert not list(tmp_path.iterdir())


def test_start_in_a_forked_copy(backend: StandIn, tmp_path: Path) -> None:
    profiler = backend.profiler(start_profile=False)
    child = os.fork()
    if child == 0:
        profiler.start()
        backend.train(3)
        profiler.stop()
        os._exit(0 if not (tmp_path / "profiler" / "recording").exists() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_training_function_that_raises(backend: StandIn, commands: list[list[str]]) -> None:
    with pytest.raises(ZeroDivisionError), backend.profiler() as profiler:
        backend.train(2)
        raise ZeroDivisionError
    assert commands == [[str(profiler.directory), "--timeline-limit-mb", "500", "sync"]]
    assert backend.calls[-2:] == ["end", "stopped"]


def test_a_function_for_traces_that_raises(backend: StandIn, caplog: Any) -> None:
    def ready(profiler: stepscope.Profiler) -> None:
        raise ValueError("not mine")

    with backend.profiler(on_trace_ready=ready):
        backend.train(1)
    assert "on_trace_ready failed" in caplog.text


def test_analyse_in_the_function_for_traces_does_not_stop(backend: StandIn, commands: list[list[str]]) -> None:
    plan = stepscope.schedule(wait=1, active=1, repeat=2)
    profiler = backend.profiler(schedule=plan, on_trace_ready=lambda profiler: profiler.analyse())
    backend.train(6)
    profiler.stop()
    assert len(commands) == 2


def test_analyse_stops_and_passes_its_arguments_on(backend: StandIn, commands: list[list[str]]) -> None:
    profiler = backend.profiler(timeline_limit=20)
    backend.train(3)
    profiler.analyse(pretty=True, step_list=[3, 2], mode="async")
    with pytest.raises(RuntimeError):
        profiler.stop()
    expected = ["--pretty", "--steps", "2,3", "--timeline-limit-mb", "20", "async"]
    assert commands == [[str(profiler.directory), *expected]]


@pytest.mark.parametrize(
    ("arguments", "told", "runs"),
    [
        ({"step_list": 3}, "step_list", False),
        ({"step_list": [1, "2"]}, "step_list", False),
        ({"step_list": [1, 3]}, "consecutive steps", False),
        ({"offline_path": 3}, "offline_path", False),
        ({"offline_path": "/nowhere/at/all"}, "no recordings", False),
        ({"pretty": "yes"}, "pretty", True),
        ({"mode": "later"}, "mode", True),
        ({"step_list": []}, "", True),
    ],
)
def test_bad_arguments_of_analyse_are_logged(
    backend: StandIn, commands: list[list[str]], caplog: Any, arguments: dict[str, Any], told: str, runs: bool
) -> None:
    profiler = backend.profiler()
    backend.train(1)
    profiler.analyse(**arguments)
    assert told in caplog.text
    assert bool(commands) == runs
    if runs:
        assert commands[0][-1] == "sync"


def test_analyse_without_anything_recorded(backend: StandIn, commands: list[list[str]], caplog: Any) -> None:
    backend.profiler(start_profile=False).analyse()
    assert "nothing was recorded" in caplog.text
    assert not commands


def test_offline_analysis_takes_all_ranks(backend: StandIn, tmp_path: Path, commands: list[list[str]]) -> None:
    directories = []
    for rank in (0, 1):
        backend.rank = rank
        profiler = backend.profiler()
        backend.train(1)
        profiler.stop()
        directories.append(str(profiler.directory))
    stepscope.Profiler.offline_analyse(str(tmp_path), pretty=True, step_list=[1])
    stepscope.Profiler.offline_analyse(tmp_path / "profiler")
    assert commands == [[*directories, "--pretty", "--steps", "1", "sync"], [*directories, "sync"]]


def test_offline_analysis_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(ProfilerPathError, match="no recordings"):
        stepscope.Profiler.offline_analyse(str(tmp_path))


@pytest.mark.parametrize("name", [3, None, [], "", [""], ["a", 3]])
def test_op_analyse_names(backend: StandIn, name: Any) -> None:
    with pytest.raises(TypeError):
        backend.profiler(start_profile=False).op_analyse(name)


def test_op_analyse_device(backend: StandIn) -> None:
    profiler = backend.profiler()
    with pytest.raises(TypeError, match="device_id"):
        profiler.op_analyse("MatMul", "1")  # type: ignore[arg-type]
    assert "device 1" in profiler.op_analyse("MatMul", 1)
    backend.target = "ascend"
    with pytest.raises(RuntimeError, match="Ascend"):
        profiler.op_analyse("MatMul")


def test_op_analyse_before_anything_was_recorded(backend: StandIn) -> None:
    with pytest.raises(RuntimeError, match="nothing was recorded"):
        backend.profiler(start_profile=False).op_analyse("MatMul")


def test_the_failed_analysis_is_logged(backend: StandIn, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setattr(analysing, "_exporter", lambda: ["python3", "-c", "import sys; sys.exit('it broke')"])
    profiler = backend.profiler()
    backend.train(1)
    with caplog.at_level(logging.ERROR):
        profiler.analyse()
    assert "it broke" in caplog.text


def test_hooks_go_with_the_profiler(backend: StandIn) -> None:
    profiler = backend.profiler()
    profiler.stop()
    del profiler
    gc.collect()
    assert backend.calls[-1] == "detach"
