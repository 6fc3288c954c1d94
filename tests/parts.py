"""Calls one part of a reader on files that a test writes, and gives tables and issues."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.sources.base import Sink
from stepscope.sources.classic import ClassicSource
from stepscope.sources.classic.files import RankFiles, rank_files
from stepscope.sources.discover import discover
from stepscope.store import MemorySink


def profile(directory: Path, files: dict[str, str | bytes]) -> RankFiles:
    """The files of rank 0 in `directory`, written by their names relative to it."""
    for name, content in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return rank_files(directory, 0, [(name, directory / name) for name in files])


def read_part(
    part: Callable[[RankFiles, Sink], None], directory: Path, files: dict[str, str | bytes]
) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables that one part of a classic profile writes, and the severity and file of each issue."""
    return taken(lambda sink: part(profile(directory, files), sink))


def read_rank(directory: Path, rank: int | None = None) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables of one rank of a classic profile, the only one by default, and severity and file's name of each issue."""
    (item,) = (item for item in discover([directory]).inputs if rank is None or item.label == f"rank {rank}")
    return taken(lambda sink: ClassicSource().read(item, sink))


def golden(shared: Path, run: str, request: str) -> Any:
    """What MindInsight answered."""
    return json.loads((shared / "golden" / "mindinsight" / run / f"{request}.json").read_bytes())["response"]


def taken(write: Callable[[Sink], object]) -> tuple[dict[str, pl.DataFrame], list[tuple[str, str]]]:
    """Tables that a function writes, and the severity and file's name of each issue."""
    sink = MemorySink("classic")
    write(sink)
    tables = sink.close()
    issues = tables.pop("issues", pl.DataFrame({"severity": [], "file": []}))
    return tables, [(severity, Path(file).name) for severity, file in issues.select("severity", "file").iter_rows()]
