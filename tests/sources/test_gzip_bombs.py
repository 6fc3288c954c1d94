"""Traces whose gzip unpacks to far more than it should: read within a bound of memory, and an error by name."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from isal import igzip

SIZE_BYTES = 200 << 20
"""What a file of less than 6 MB unpacks to."""
MEMORY_BYTES = 420 << 20
"""What the process may hold in all; of this 100 MiB are libraries."""
LIMIT_S = 60
ASK = """
import sys
from pathlib import Path
from stepscope.errors import StepscopeError
from stepscope import open_run
try:
    run = open_run(sys.argv[1], use_store=False)
    print([rank.rank for rank in run.ranks], [unread.problem for unread in run.unread], run.issues["problem"].to_list())
except StepscopeError as error:
    print(error)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) << 10)
"""
EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5, "args": {}}
OPENING = b'{"schemaVersion": 1, "traceEvents": ['
BOMBS: dict[str, tuple[bytes, bytes, bytes]] = {
    "space before": (b"", b" ", OPENING + b"]}"),
    "a header": (b'{"schemaVersion": 1, "x": "', b"x", b'", "traceEvents": []}'),
    "a list of headers": (b'{"x": [', b'{"traceEvents": [0]}, ', b"0]}"),
    "space between events": (OPENING, b" ", json.dumps(EVENT).encode() + b"]}"),
    "one name": (OPENING + b'{"ph": "X", "name": "', b"x", b'"}]}'),
    "brackets": (OPENING, b"[", b"]}"),
    "a text behind": (OPENING + json.dumps(EVENT).encode() + b'], "x": "', b"x", b'"}'),
    "lists before": (b'{"schemaVersion": 1, "x": [', b"[],", b'0], "traceEvents": []}'),
    "keys behind": (OPENING + json.dumps(EVENT).encode() + b"]", b', "x": 1', b"}"),
    "events of no kind": (OPENING, b'{"ph":"?","a":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]},', b"{}]}"),
}
"""Name to what stands before, again and again, and behind."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no peaks of memory")


def bomb(directory: Path, name: str, size: int = SIZE_BYTES) -> Path:
    """A directory of a trace that unpacks to so many bytes, and a sound one of another rank."""
    before, again, behind = BOMBS[name]
    piece = again * ((1 << 20) // len(again))
    path = directory / "rank0.json.gz"
    with igzip.open(path, "wb", compresslevel=1) as file, io.BufferedWriter(file) as out:
        out.write(before)
        for _ in range(size // len(piece)):
            out.write(piece)
        out.write(behind)
    sound = {"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": [EVENT] * 3}
    (directory / "rank1.json").write_text(json.dumps(sound))
    return path


@pytest.mark.parametrize("name", BOMBS)
def test_a_trace_that_unpacks_to_far_more_is_read_within_memory_and_costs_no_other(tmp_path: Path, name: str) -> None:
    path = bomb(tmp_path, name)
    assert path.stat().st_size < 6 << 20
    start = time.monotonic()

    command = [sys.executable, "-c", ASK, str(tmp_path)]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=10 * LIMIT_S, check=True)

    *answer, peak = asked.stdout.splitlines()
    assert int(peak) < MEMORY_BYTES, f"{int(peak) >> 20} MiB"
    assert "1]" in answer[0], answer
    assert "internal error" not in asked.stdout
    assert time.monotonic() - start < LIMIT_S


def test_reading_one_can_be_interrupted(tmp_path: Path) -> None:
    bomb(tmp_path, "events of no kind", 8 * SIZE_BYTES)  # more than is read until it is interrupted
    command = [sys.executable, "-m", "stepscope", "analyze", str(tmp_path), "--no-store"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(2.5)

    os.kill(process.pid, signal.SIGINT)
    start = time.monotonic()
    _, errors = process.communicate(timeout=LIMIT_S)

    assert time.monotonic() - start < 15
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
