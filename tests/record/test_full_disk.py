"""A disk that really is full: a small file system in memory, where the system lets us mount one."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorder_standin import StandIn

import stepscope
from stepscope.recording_format.marks import RUN_DELAY


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no right to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_training_goes_on_and_what_was_written_stays_whole(backend: StandIn, small_disk: Path, caplog: Any) -> None:
    profiler = stepscope.Profiler(output_path=str(small_disk))
    for _ in range(100):
        backend.train(500)
        if "No space left" in caplog.text:
            break
        time.sleep(0.1)
    backend.train(100)
    profiler.stop()
    assert "No space left" in caplog.text
    marks = backend.rows()
    assert len(marks) > 100
    whole = re.compile(rf"({RUN_DELAY})?")
    assert all(whole.fullmatch(mark["detail"]) and int(mark["thread"]) for mark in marks)


def test_a_disk_that_is_full_from_the_start(backend: StandIn, small_disk: Path, caplog: Any) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(b"x" * 4096)
    profiler = stepscope.Profiler(output_path=str(small_disk))
    backend.train(3)
    profiler.stop()
    profiler.analyse()
    assert "training continues" in caplog.text
