"""Small profiles of several hosts, and what is in a directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

STEP_TRACE = (
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"
    "1,100000,200000,100000,120000,180000,20000,60000,20000\n"
    "-,100000,200000,100000,120000,180000,20000,60000,20000\n"
)


def write_devices(root: Path, devices: int, *, extra: int = 0) -> Path:
    """The profiles of the devices of one host, as MindSpore 1.3 leaves them: `device<k>/data/profiler/*_<k>`."""
    for device in range(devices):
        profile = root / f"device{device}" / "data" / "profiler"
        profile.mkdir(parents=True)
        (profile / f"step_trace_raw_{device}_detail_time.csv").write_text(STEP_TRACE)
        (profile / f"framework_raw_{device}.csv").write_bytes(hashlib.sha256(root.name.encode()).digest() * (1 + extra))
    return root


def content(directory: Path) -> dict[str, bytes]:
    """Names and content of the files in a directory, without those of `collect` itself."""
    return {
        name: file.read_bytes()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and not (name := file.relative_to(directory).as_posix()).startswith(".stepscope-collect")
    }
