"""Operator windows where not all is one thread of one process."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch_recorder import Attached, attached, batches, in_thread, make, train  # noqa: E402

from stepscope.record.backend import WindowLost  # noqa: E402
from stepscope.record.options import Options  # noqa: E402


def added(directory: Path) -> int:
    """Matrix products of linear layers in a window's trace."""
    return gzip.decompress((directory / "trace.json.gz").read_bytes()).count(b'"aten::addmm"')


def begins(recorder: Attached, directory: Path) -> bool:
    try:
        recorder.backend.windows.begin(directory)
    except RuntimeError:
        return False
    return True


def loses(recorder: Attached, directory: Path) -> str:
    with pytest.raises(WindowLost) as raised:
        recorder.backend.windows.end(directory)
    return str(raised.value)


def script(text: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with what tests use, in a process of its own."""
    text = (
        "from torch_recorder import *\nfrom stepscope.record.backend import WindowLost\nimport os, sys, threading\n"
        + textwrap.dedent(text)
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    return subprocess.run(
        [sys.executable, "-c", text, str(directory)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_another_thread_may_train_or_end_the_window(tmp_path: Path) -> None:
    with attached() as recorder:
        in_thread(lambda: recorder.backend.windows.begin(tmp_path))
        in_thread(lambda: train(*make(), batches(2)))
        train(*make(), batches(1))
        recorder.finish(tmp_path)
    assert added(tmp_path) == 6


@pytest.mark.parametrize("memory", [False, True])
def test_a_window_that_a_thread_left_open_harms_nobody(tmp_path: Path, memory: bool) -> None:
    text = f"""
        from pathlib import Path
        recorder = Attached(Options(profile_memory={memory}))
        def work():
            recorder.backend.windows.begin(None)
            train(*make(), batches(2))
        for _ in range(2):
            in_thread(work)
            recorder.backend.windows.end(Path(sys.argv[1]))()
        in_thread(work)
    """
    done = script(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert added(tmp_path) == 4


def test_memory_is_recorded_where_asked_for(tmp_path: Path) -> None:
    with attached(Options(profile_memory=True)) as recorder:
        recorder.backend.windows.begin(tmp_path)
        train(*make(), batches(1))
        recorder.finish(tmp_path)
    assert b'"[memory]"' in gzip.decompress((tmp_path / "trace.json.gz").read_bytes())


def test_it_gives_way_to_a_profiler_of_another_thread(tmp_path: Path) -> None:
    counts = []

    def theirs() -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            train(*make(), batches(3))
        counts.append(sum(event.name == "aten::addmm" for event in profile.events()))

    with attached() as recorder:
        recorder.backend.windows.begin(tmp_path)
        train(*make(), batches(2))
        assert recorder.backend.windows.cut is None
        in_thread(theirs)
        train(*make(), batches(1))
        assert recorder.backend.windows.cut is not None
        assert recorder.backend.windows.cut[0] == 2
        recorder.finish(tmp_path)
    assert added(tmp_path) == 4
    assert counts == [6]


def test_with_memory_it_loses_what_it_has_to_a_profiler_of_another_thread(tmp_path: Path) -> None:
    text = """
        recorder = Attached(Options(profile_memory=True))
        def theirs():
            with torch.profiler.profile() as profile:
                train(*make(), batches(3))
            print(sum(event.name == "aten::addmm" for event in profile.events()))
        for _ in range(2):
            try:
                recorder.backend.windows.begin(None)
            except RuntimeError:
                print("no")
            train(*make(), batches(2))
            in_thread(theirs)
            try:
                print(recorder.backend.windows.end(None))
            except WindowLost as error:
                print("took over" in str(error))
    """
    done = script(text, tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["6", "True", "no", "6", "None"]), done.stderr


def test_with_memory_only_a_living_thread_can_end_its_window(tmp_path: Path) -> None:
    lost: list[str] = []
    begun: list[bool] = []
    with attached(Options(profile_memory=True)) as recorder:
        recorder.backend.windows.begin(tmp_path)
        in_thread(lambda: lost.append(loses(recorder, tmp_path)))
        in_thread(lambda: begun.append(begins(recorder, tmp_path)))
    assert begun == [False]
    assert "only the thread that started" in lost[0]
    with attached() as recorder:
        recorder.backend.windows.begin(tmp_path)
        train(*make(), batches(1))
        recorder.finish(tmp_path)
    assert added(tmp_path) == 2


def test_a_forked_child_ends_well_with_its_status_and_output() -> None:
    text = """
        import atexit
        recorder = Attached()
        recorder.backend.windows.begin(None)
        train(*make(), batches(1))
        atexit.register(lambda: print("exit handler of", "child" if os.getpid() == child_pid else "parent"))
        if os.fork() == 0:
            child_pid = os.getpid()
            train(*make(), batches(1))
            print("child")
            sys.exit(7)
        child_pid = 0
        print("status", os.waitstatus_to_exitcode(os.wait()[1]))
        recorder.backend.windows.end(None)
    """
    done = script(text, Path())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["child", "exit handler of child", "status 7", "exit handler of parent"]


@pytest.mark.parametrize("memory", [False, True])
def test_a_forked_child_may_record_itself(tmp_path: Path, memory: bool) -> None:
    text = f"""
        from pathlib import Path
        options = Options(profile_memory={memory})
        recorder = Attached(options)
        recorder.backend.windows.begin(None)
        train(*make(), batches(3))
        if os.fork() == 0:
            recorder.backend.detach()
            own = Attached(options)
            own.backend.windows.begin(None)
            train(*make(), batches(1))
            own.backend.windows.end(Path(sys.argv[1]))()
            sys.exit(0)
        print("status", os.waitstatus_to_exitcode(os.wait()[1]))
        recorder.backend.windows.end(None)
    """
    done = script(text, tmp_path)
    assert (done.returncode, done.stdout.split()) == (0, ["status", "0"]), done.stderr
    assert added(tmp_path) == 2
