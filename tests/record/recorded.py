"""Reading what was recorded, and running what records."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"
BOOTSTRAP = SOURCE / "stepscope" / "record" / "bootstrap"


def recordings(out: Path) -> list[Path]:
    """The recordings below an `output_path`."""
    return sorted((out / "profiler" / "recording").iterdir())


def rows(recording: Path, name: str = "marks.csv", kind: str | None = None) -> list[dict[str, str]]:
    """A CSV file of a recording; with `kind` only these marks."""
    with (recording / name).open(newline="") as file:
        return [row for row in csv.DictReader(file) if kind is None or row["kind"] == kind]


def steps(recording: Path) -> list[int]:
    """The steps that are marked."""
    return [int(row["name"]) for row in rows(recording, kind="step")]


def about(recording: Path) -> dict[str, Any]:
    """`recording.json`."""
    content: dict[str, Any] = json.loads((recording / "recording.json").read_text())
    return content


def run(command: Sequence[str], directory: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory, without what the environment of the tests says of recording."""
    given = {k: v for k, v in os.environ.items() if not k.startswith(("RANK", "MS_", "STEPSCOPE_", "COV"))}
    paths = [environment.pop("PYTHONPATH", ""), str(SOURCE), given.get("PYTHONPATH", "")]
    variables = {**given, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    return subprocess.run(
        command, cwd=directory, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
