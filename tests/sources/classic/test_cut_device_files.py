"""What stands before the place where a file was cut is read; all other damage is in the matrix of damages."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_files import Read, whole_profile, write


@pytest.mark.parametrize("kind", ["step_trace", "device_operators", "gpu_operators", "timeline", "ai_cpu"])
def test_rows_before_a_cut_are_kept(tmp_path: Path, kind: str) -> None:
    text = whole_profile()[kind].rstrip("\n")
    texts = whole_profile() | {kind: text[:-4] if kind != "step_trace" else text[: text.rindex("\n") - 4]}

    read = Read(write(tmp_path, **texts))

    rows = {
        "step_trace": read.table("steps"),
        "device_operators": read.totals("AI_CORE", "operator"),
        "gpu_operators": read.totals("GPU", "operator"),
        "timeline": read.table("kernels"),
        "ai_cpu": read.totals("AI_CPU", "operator"),
    }[kind]
    assert rows.height > 0
