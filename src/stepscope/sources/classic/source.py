"""The reader of classic MindSpore profiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.sources.base import Found, Input, Sink
from stepscope.sources.classic.files import RankFiles, is_known, kind_of, sort_files
from stepscope.sources.classic.parts import PARTS
from stepscope.tables import ISSUES, RANKS, Table

_FOLDERS = ("host_info", "msadvisor")
"""Folders of a profile whose files are its own."""


class ClassicSource:
    """Reads what MindSpore's own profiler wrote until 2.4."""

    name = "classic"
    version = 1

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with files of a classic profile: one input a rank."""
        kinds = {found[0] for name in names if (found := kind_of(name))}
        if kinds <= {"profiler_info"}:  # other profilers write one too
            return None
        ranks = sort_files(directory, _profile_files(directory, names))
        inputs = [
            Input(self.name, directory, tuple(file for kind in files.kinds.values() for file in kind), f"rank {rank}")
            for rank, files in ranks.items()
        ]
        rest = [name for name in names if not _is_ours(name)]
        return Found(tuple(inputs), tuple(rest)) if inputs else None

    def sniff(self, file: Path, head: bytes) -> Input | None:  # noqa: ARG002
        """One file of a profile, by its name: its content alone has no mark of its own."""
        found = kind_of(file.name)
        if found is None or found[1] is None:
            return None
        return Input(self.name, file, (file,), f"rank {found[1]}")

    def read(self, item: Input, sink: Sink) -> None:
        """Read the files of one rank, each part by itself, so that a damaged one costs no other.

        Raises:
            UnreadableInput: If nothing of it can be read.
        """
        rank = int(item.label.removeprefix("rank "))
        root = item.path if item.path.is_dir() else item.path.parent
        named = [(file.relative_to(root).as_posix(), file) for file in item.files]
        files = sort_files(item.path, named)[rank]
        counting = _Counting(sink)
        for part in PARTS:
            try:
                part(files, counting)
            except UnreadableInput as error:
                sink.issue("error", Path(error.path), error.problem, error.remedy)
        if not counting.rows:
            raise UnreadableInput(
                item.path,
                f"none of the files of rank {rank} holds anything readable",
                "Copy the profile again, or run the profiler's analysis again",
            )


class _Counting:
    """A sink that knows whether anything but who recorded it came in."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.workers = sink.workers
        self.rows = 0
        self.issue = sink.issue
        self.scratch = sink.scratch

    def write(self, table: Table, frame: pl.DataFrame) -> None:
        """Hand rows on."""
        if table not in (RANKS, ISSUES):
            self.rows += frame.height
        self._sink.write(table, frame)


def _profile_files(directory: Path, names: Sequence[str]) -> list[tuple[str, Path]]:
    """The files of a profile, those in its folders too, with their names relative to it."""
    found = [(name, directory / name) for name in names]
    for name in names:
        if _is_folder(name) and (directory / name).is_dir():
            below = sorted(file for file in (directory / name).rglob("*") if file.is_file())
            found += [(file.relative_to(directory).as_posix(), file) for file in below]
    return [(name, file) for name, file in found if kind_of(name) is not None]


def _is_folder(name: str) -> bool:
    return name in _FOLDERS or name.startswith("PROF_")


def _is_ours(name: str) -> bool:
    return kind_of(name) is not None or is_known(name) or _is_folder(name)


__all__ = ["ClassicSource", "RankFiles"]
