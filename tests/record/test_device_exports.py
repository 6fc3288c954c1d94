"""Raw windows of Ascend devices are exported by the device's own software before the analysis."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope.record import analysing
from stepscope.record.analysing import raw_windows
from stepscope.recording_format.rows import WINDOWS

ANALYSE = """
import pathlib, sys
def analyse(path, data_simplification=None):
    if "000001" in path:
        sys.exit(3)
    for rank in pathlib.Path(path).glob("*_ascend_*"):
        (rank / "ASCEND_PROFILER_OUTPUT").mkdir()
        (rank / "ASCEND_PROFILER_OUTPUT" / "said.txt").write_text(f"{__name__} {data_simplification}")
"""


@pytest.fixture
def software(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages that stand in for the software of the device, where subprocesses find them."""
    for framework in ("torch_npu", "mindspore"):
        package = tmp_path / "software" / framework / "profiler"
        package.mkdir(parents=True)
        for directory in (package.parent, package):
            (directory / "__init__.py").touch()
        (package / "profiler.py").write_text(ANALYSE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "software"))
    return tmp_path / "software"


def recording(root: Path, ending: str, windows: int = 3) -> Path:
    """A recording with raw windows and one that was not finished."""
    directory = root / "profiler" / "recording" / f"rank-0_{ending}"
    for number in range(windows + 1):
        raw = directory / "windows" / f"{number:06d}" / f"host_1_20260101000000000_ascend_{ending}" / "PROF_1"
        raw.mkdir(parents=True)
        (raw / "data").write_text("raw")
    lines = [f"{number},0,1,1,1,ascend,complete," for number in range(windows)]
    (directory / "windows.csv").write_text("\n".join([WINDOWS.header, *lines, ""]))
    about = {"format": "stepscope-recording", "version": 1, "options": {"data_simplification": True}}
    (directory / "recording.json").write_text(json.dumps(about))
    return directory


@pytest.mark.parametrize(
    ("ending", "said"), [("pt", "torch_npu.profiler.profiler None"), ("ms", "mindspore.profiler.profiler True")]
)
def test_each_raw_window_is_exported_and_a_failure_costs_only_itself(
    software: Path, tmp_path: Path, ending: str, said: str
) -> None:
    directory = recording(tmp_path, ending)
    command = [sys.executable, "-c", "print('the exporter ran')"]

    done = subprocess.run(
        [*analysing._exports_before([directory]), *command],
        env=analysing._environment(),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "the exporter ran\n")
    assert "000001 is not exported" in done.stderr
    assert "exit status 3" in done.stderr
    outputs = sorted(directory.glob("windows/*/*/ASCEND_PROFILER_OUTPUT/said.txt"))
    assert [path.relative_to(directory).parts[1] for path in outputs] == ["000000", "000002"]
    assert [path.read_text() for path in outputs] == [said] * 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in outputs} == {0o600}
    assert [path.name for path in raw_windows(directory)] == ["000001"]


def test_without_the_software_the_analysis_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "software" / "mindspore"
    blocked.mkdir(parents=True)
    (blocked / "__init__.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(blocked.parent))
    directory = recording(tmp_path, "ms", windows=1)
    ran = tmp_path / "ran"
    monkeypatch.setattr(analysing, "_exporter", lambda: [sys.executable, "-c", f"open({str(ran)!r}, 'w')"])

    analysing.analyse(None, [directory], None, False, None, "sync")

    assert ran.exists()
    assert "mindspore failed to export it" in (directory / "analysis.log").read_text()


def test_it_is_a_command_of_its_own(software: Path, tmp_path: Path) -> None:
    directories = [recording(tmp_path / name, "ms", windows) for name, windows in (("good", 1), ("bad", 2))]
    command = [sys.executable, "-m", "stepscope.record.device_exports"]

    for directory, status in zip(directories, (0, 1), strict=True):
        for _ in range(2):
            done = subprocess.run([*command, str(directory)], env=analysing._environment(), check=False)
            assert done.returncode == status


def test_nothing_runs_where_nothing_is_raw(tmp_path: Path) -> None:
    directory = recording(tmp_path, "pt", windows=1)
    for raw in directory.glob("windows/*/*"):
        (raw / "ASCEND_PROFILER_OUTPUT").mkdir()
    assert list(raw_windows(directory))  # an export that failed leaves that much
    for raw in directory.glob("windows/*/*"):
        (raw / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").touch()

    assert analysing._exports_before([directory, tmp_path / "missing"]) == []


def test_mindspores_own_analysis_takes_these_arguments() -> None:
    """Its Python source says so; importing it takes seconds and changes the process."""
    found = [Path(place) / "mindspore" / "profiler" / "profiler.py" for place in sys.path]
    source = next((file for file in found if file.is_file()), None)
    if source is None:
        pytest.skip("no mindspore")
    signature = source.read_text().partition("\ndef analyse(profiler_path")[2].partition("):")[0]
    assert "data_simplification=" in signature
