"""Analysis of recordings in a separate process, so that its memory and errors never affect training."""

from __future__ import annotations

import csv
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from stepscope.errors import ProfilerPathError
from stepscope.record import signs
from stepscope.record.environment import CLASSIC_VARIABLE, OPTIONS_VARIABLE
from stepscope.record.files import new_private
from stepscope.recording_format.layout import ABOUT, ANALYSIS_LOG, ASCEND, RECORDINGS, window_directory
from stepscope.recording_format.rows import WINDOWS

log = logging.getLogger("stepscope")

MODES = ("sync", "async")
_OUTPUT = "ASCEND_PROFILER_OUTPUT"
_PATIENCE_S = 2
"""How long an interrupted analysis may take to clean up."""


def analyse(
    limit_mb: int | None, directories: Sequence[Path], offline_path: Any, pretty: Any, step_list: Any, mode: Any
) -> None:
    """Check the arguments of `Profiler.analyse` and export the recordings. Errors are logged, not raised.

    Args:
        limit_mb: Largest timeline; None for the limit stored in each recording.
        directories: Recordings, unless `offline_path` is given.
        offline_path: This and the others: see `Profiler.analyse`.
    """
    try:
        steps = _checked_steps(step_list)
        if offline_path is not None:
            if not isinstance(offline_path, (str, os.PathLike)):
                raise TypeError(f"offline_path must be a path, not {offline_path!r}")
            directories = recordings_below(Path(offline_path))
    except (TypeError, ValueError, ProfilerPathError) as error:
        log.error("Profiler.analyse: %s. Nothing is analysed; the recording is kept: use offline_analyse", error)
        return
    if mode not in MODES:
        log.warning('Profiler.analyse: mode must be "sync" or "async", not %r; "sync" is used', mode)
        mode = "sync"
    if not isinstance(pretty, bool):
        log.warning("Profiler.analyse: pretty must be True or False, not %r; False is used", pretty)
        pretty = False
    if not directories:
        log.error("Profiler.analyse: nothing was recorded, so there is nothing to analyse")
        return
    command = [*_exporter(), *map(str, directories)]
    command += ["--pretty"] if pretty else []
    command += ["--steps", ",".join(map(str, steps))] if steps else []
    command += ["--timeline-limit-mb", str(limit_mb)] if limit_mb is not None else []
    _run([*_exports_before(directories), *command], directories[0], wait=mode == "sync")


def operators(directory: Path, names: Sequence[str]) -> str:
    """Times and shapes of operators of one recording, as JSON.

    Raises:
        RuntimeError: If nothing was recorded, or the operator does not exist.
    """
    command = [*_exporter(), "--operator", ",".join(names), str(directory)]
    done = subprocess.run(command, env=_environment(), cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"op_analyse: {done.stderr.strip() or 'the analysis failed'}")
    return done.stdout.strip()


def recordings_below(path: Path) -> list[Path]:
    """The recordings of all ranks below an `output_path`, or below its `profiler` directory.

    Raises:
        ProfilerPathError: If there are none.
    """
    path = path.absolute()
    for root in (path / "profiler", path):
        found = sorted(file.parent for file in (root / RECORDINGS).glob(f"*/{ABOUT}"))
        if found:
            return found
    raise ProfilerPathError(
        f"{path}: no recordings in {path / 'profiler' / RECORDINGS}. Give the output_path of the job"
    )


def _checked_steps(step_list: Any) -> list[int]:
    """The requested steps in order; empty for all."""
    if step_list is None:
        return []
    if not isinstance(step_list, list) or any(isinstance(n, bool) or not isinstance(n, int) for n in step_list):
        raise TypeError(f"step_list must be a list of integers, not {step_list!r}")
    steps = sorted(step_list)
    if steps and steps != list(range(steps[0], steps[0] + len(steps))):
        raise ValueError(f"step_list must hold consecutive steps, not {step_list!r}")
    return steps


def raw_windows(recording: Path) -> Iterator[Path]:
    """The finished windows of a recording whose device data is not exported yet."""
    try:
        with (recording / WINDOWS.name).open(encoding="utf-8", errors="replace", newline="") as file:
            listed = [row["window"] for row in csv.DictReader(file) if row.get("kind") == ASCEND]
    except (OSError, KeyError, csv.Error):
        return
    for number in filter(str.isdecimal, listed):
        directory = window_directory(recording, int(number))
        if any(is_raw(found) for found in written_by_device(directory)):
            yield directory


def is_raw(written: Path) -> bool:
    """Whether there is no export; a failed one leaves an empty directory."""
    output = written / _OUTPUT
    return not (output.is_dir() and any(output.iterdir()))


def written_by_device(window: Path) -> list[Path]:
    """Directories that the device's profiler wrote in a window."""
    return sorted(path for ending in ("pt", "ms") for path in window.glob(f"*_ascend_{ending}"))


def _exports_before(directories: Sequence[Path]) -> list[str]:
    """The command to run before the exporter if the device's profiler left raw data."""
    raw = [str(directory) for directory in directories if any(raw_windows(directory))]
    module = [sys.executable or "python3", "-m", "stepscope.record.device_exports"]
    return [*module, *raw, "--"] if raw else []


def _exporter() -> list[str]:
    return [sys.executable or "python3", "-m", "stepscope.export"]


def _environment() -> dict[str, str]:
    """The environment without the variables that start a recorder, and with this stepscope on the path."""
    kept = {k: v for k, v in os.environ.items() if k not in (OPTIONS_VARIABLE, CLASSIC_VARIABLE, "LD_PRELOAD")}
    home = str(Path(__file__).resolve().parents[2])
    places = [str(Path(place).absolute()) for place in kept.get("PYTHONPATH", "").split(os.pathsep) if place]
    kept["PYTHONPATH"] = os.pathsep.join([*places, *([] if home in places else [home])])
    return kept


def _run(command: list[str], directory: Path, *, wait: bool) -> None:
    """Run the exporter. Its output goes to a file next to the raw data, and to the log if it fails."""
    output = directory / ANALYSIS_LOG
    try:
        with os.fdopen(new_private(output), "w") as file:
            process = subprocess.Popen(
                command,
                env=_environment(),
                cwd=directory,  # not the job's: Python would import modules from there
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=not wait,
            )
            if wait and _wait(process, directory):
                lines = output.read_text(errors="replace").strip().splitlines() or ["no message"]
                log.error("Profiler.analyse: failed (%s); see %s", lines[-1], output)
    except OSError as error:
        log.error("Profiler.analyse: the analysis could not be run (%s)", error)


def _wait(process: subprocess.Popen[bytes], directory: Path) -> int:
    """Wait for the analysis; terminate it on Ctrl-C, which goes on to the script."""
    signs.give(signs.ANALYSING, str(directory))
    try:
        code = process.wait()
    except KeyboardInterrupt:
        log.warning("Profiler.analyse: interrupted; the recording is kept: %s", directory)
        try:
            process.terminate()  # it already got the signal if that came from the terminal
            process.wait(_PATIENCE_S)
        except (KeyboardInterrupt, subprocess.TimeoutExpired):
            process.kill()
        raise
    if code == 0:
        signs.give(signs.ANALYSED, str(directory))
    return code
