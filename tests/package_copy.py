"""A copy of the package with new files and lines, and its command: for what holds after a small addition."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import stepscope

SOURCE = Path(stepscope.__file__).parent


def copy_package(folder: Path, files: Mapping[str, str], lines: Mapping[str, tuple[str, str]]) -> None:
    """Copy the package into a folder.

    Args:
        folder: Where.
        files: Path in the package to the text of a new file.
        lines: Path in the package to a line of that file, and the one that is added behind it.
    """
    package = folder / "stepscope"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in files.items():
        (package / file).write_text(text, encoding="utf-8")
    for file, (line, added) in lines.items():
        text = (package / file).read_text(encoding="utf-8")
        assert text.count(line) == 1, f"{file} has no line {line!r}"
        (package / file).write_text(text.replace(line, line + added), encoding="utf-8")


def printed(folder: Path, *words: str) -> str:
    """What the copy's command prints, started in its folder."""
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
