"""What a training process is in, written by the process itself, also while its training hangs in a call."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from stepscope.live.capture.room import NoRoom, files_in, make_room, new_capture
from stepscope.live.messages import Captured, Dump
from stepscope.record.files import FILE_MODE, new_private

STACKS = "stacks.json"
"""Stacks of all threads, in the form of `py-spy dump --json`."""
CALLS = "nccl_trace_rank_"
"""Name of a dump of the flight recorder, with the rank behind it; `stepscope hangs` finds the rank there."""
_MOST_FRAMES = 200
_DUMP_FILES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
_NCCL_WITHIN_S = 20.0
_LOOK_S = 0.2
_QUIET_NS = 1_000_000_000
"""A dump that has not grown for this long is whole."""


def dump(request: Dump, rank: int, rank_directory: Path) -> Captured:
    """Write what was asked for below the directory of the rank's records. To be called on a thread that may block."""
    try:
        directory = new_capture(rank_directory, request.capture)
    except NoRoom as error:
        return Captured(rank, request.capture, error=str(error))
    notes = []
    try:
        if request.stacks:
            _write(directory / STACKS, json.dumps(own_stacks()).encode())
        if request.calls:
            notes += [problem] if (problem := _dump_calls(directory / f"{CALLS}{rank}", rank)) else []
    except OSError as error:
        return Captured(rank, request.capture, error=f"{directory}: cannot be written ({error.strerror or error})")
    make_room(directory)
    return Captured(rank, request.capture, files_in(directory), directory=str(directory), note="; ".join(notes))


def own_stacks() -> list[dict[str, Any]]:
    """Stacks of all Python threads of this process but this one, the innermost frame first."""
    names = {thread.ident: thread for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        if ident == threading.get_ident():
            continue
        thread = names.get(ident)
        stack = traceback.extract_stack(frame, _MOST_FRAMES)  # lines of source are only read when they are shown
        found.append(
            {
                "pid": os.getpid(),
                "thread_id": ident,
                "thread_name": thread.name if thread else None,
                "os_thread_id": thread.native_id if thread else None,
                "active": False,
                "owns_gil": False,
                "frames": [{"name": one.name, "filename": one.filename, "line": one.lineno} for one in reversed(stack)],
            }
        )
    return found


def _dump_calls(path: Path, rank: int) -> str:
    """Write the last calls of torch's flight recorder; return why not, or an empty text."""
    if "torch" not in sys.modules:
        return "only torch.distributed keeps its last calls"
    if _dumped_by_nccl(path, rank):
        return ""
    try:
        from torch._C import _distributed_c10d as c10d
    except ImportError:
        return "this torch has no torch.distributed"
    dumps = getattr(c10d, "_dump_fr_trace", None) or getattr(c10d, "_dump_nccl_trace", None)
    if dumps is None:
        return "this torch has no flight recorder"
    if not (os.environ.get("TORCH_FR_BUFFER_SIZE") or os.environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE")):
        return "the last calls of torch.distributed are not kept; start the job with TORCH_FR_BUFFER_SIZE=2000"
    now = time.time_ns()  # making a dump takes seconds on a busy host
    _write(path, dumps())
    os.utime(path, ns=(now, now))
    return ""


def _dumped_by_nccl(path: Path, rank: int) -> bool:
    """Have NCCL's own thread dump, if the job was started so that it listens; it needs nothing of Python."""
    prefix = os.environ.get("TORCH_NCCL_DEBUG_INFO_PIPE_FILE")
    if not prefix:
        return False
    stem = next(filter(None, map(os.environ.get, _DUMP_FILES)), "/tmp/nccl_trace_rank_")
    file = Path(f"{stem}{rank}")
    before_ns = time.time_ns()
    try:
        pipe = os.open(f"{prefix}{rank}.pipe", os.O_WRONLY | os.O_NONBLOCK)  # fails if nobody listens
        try:
            os.write(pipe, b"1\n")
        finally:
            os.close(pipe)
        end = time.monotonic() + _NCCL_WITHIN_S
        while time.monotonic() < end:
            time.sleep(_LOOK_S)
            found = file.stat() if file.exists() else None
            if found is not None and found.st_mtime_ns >= before_ns and time.time_ns() - found.st_mtime_ns > _QUIET_NS:
                shutil.copyfile(file, path)
                path.chmod(FILE_MODE)
                os.utime(path, ns=(before_ns, before_ns))
                return True
    except OSError:
        return False
    return False


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(new_private(path), "wb") as file:
        file.write(content)
