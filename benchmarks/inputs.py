"""Inputs of benchmarks, made in processes of their own: what they hold in memory must not count for the cases."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "ddp_gloo_4rank_slow_loader"


def scaled_trace(directory: Path, megabytes: int, source: Path | None) -> Path:
    """A trace of so many megabytes, alone in its directory; `source` is scaled up, by default rank 0 of the example."""
    trace = directory / f"rank-0.{megabytes}MB.pt.trace.json"
    _python(HERE / "scale.py", source or min(EXAMPLE.glob("*.pt.trace.json.gz")), megabytes, trace)
    return trace


def ascend_directory(generator: Path, directory: Path, kind: str, ranks: int, *, steps: int, ops: int) -> Path:
    """What the generator makes: profiles of Ascend devices as `text` or `db`, with so many operators a step."""
    amounts = ("--ranks", ranks, "--steps", steps, "--ops-per-step", ops)
    _python(generator, "--out", directory, "--format", kind, *amounts)
    return directory


def size_bytes(path: Path) -> int:
    """Size of a file, or of all files of a directory."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)


def _python(script: Path, *arguments: object) -> None:
    subprocess.run([sys.executable, script, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)
