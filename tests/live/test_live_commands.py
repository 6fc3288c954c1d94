"""What holds for every live command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = ("switch", "switch step=on", "status", "watch --seconds 1", "stacks", "capture", "check", "manager", "proxy")


@pytest.mark.parametrize("words", COMMANDS)
def test_without_grpc_a_command_says_what_to_install(words: str, tmp_path: Path) -> None:
    (tmp_path / "grpc.py").write_text("raise ModuleNotFoundError(\"No module named 'grpc'\", name='grpc')")

    done = subprocess.run(
        [sys.executable, "-m", "stepscope", "live", *words.split()],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 2
    assert "Install it: pip install 'stepscope[live]'" in " ".join(done.stderr.split())
