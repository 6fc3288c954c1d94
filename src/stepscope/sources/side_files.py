"""Files next to recorded data, found by name; damage to a JSON file becomes an issue, and everything else is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from stepscope import json_files
from stepscope.errors import UnreadableInput
from stepscope.json_files import COPY_AGAIN, SMALL_BYTES
from stepscope.sources.base import Sink
from stepscope.tables.issues import Severity

AGAIN = f"{COPY_AGAIN}; everything else is read."
_Files = TypeVar("_Files", bound="NamedFiles")


def named(pattern: str) -> Any:
    """A field of `NamedFiles`: the file whose name matches a regular expression, None if there is none."""
    return field(default=None, metadata={"pattern": pattern})


@dataclass(frozen=True)
class NamedFiles:
    """Files by what they hold: a subclass has a field, made by `named`, for each kind."""

    @classmethod
    def among(cls: type[_Files], files: Iterable[Path]) -> _Files:
        """Those among `files`, by their names; the first of several of a kind."""
        patterns, is_any = _patterns(fields(cls))
        known = [(name, file) for file in files if is_any(name := file.name)]  # of most directories, none is
        return cls(
            **{kind: next((file for name, file in known if is_of(name)), None) for kind, is_of in patterns.items()}
        )

    @property
    def all(self) -> list[Path]:
        """Those that are there."""
        return [file for kind in fields(self) if (file := getattr(self, kind.name)) is not None]


@cache
def _patterns(kinds: tuple[Field[Any], ...]) -> tuple[dict[str, Callable[[str], Any]], Callable[[str], Any]]:
    """Whether a name is of each kind of file, and whether it is of any."""
    patterns = {kind.name: kind.metadata["pattern"] for kind in kinds}
    every = "|".join(f"(?:{pattern})" for pattern in patterns.values())
    return {kind: re.compile(pattern).fullmatch for kind, pattern in patterns.items()}, re.compile(every).fullmatch


def read_object(path: Path | None, sink: Sink, severity: Severity = "error") -> dict[str, Any] | None:
    """The JSON object in a file; None, with an issue, if there is none that can be read.

    A `path` of None is a missing file, of which nothing is reported.
    """
    if path is None:
        return None
    try:
        return json_files.read_object(path)
    except UnreadableInput as error:
        report_unreadable(error, path, sink, severity)
        return None


def object_in(text: bytes, path: Path, sink: Sink) -> dict[str, Any] | None:
    """The JSON object that the text of a file is; None, with an issue, if it is none."""
    try:
        return json_files.object_in(text, path)
    except UnreadableInput as error:
        report_unreadable(error, path, sink)
        return None


def peek_object(path: Path | None) -> dict[str, Any]:
    """The JSON object in a small file; empty, without an issue, if there is none that can be read."""
    try:
        return {} if path is None else json_files.read_object(path, most_bytes=SMALL_BYTES)
    except UnreadableInput:
        return {}


def report_unreadable(error: UnreadableInput | OSError, path: Path, sink: Sink, severity: Severity = "error") -> None:
    """Report that a file cannot be read."""
    if isinstance(error, OSError):
        problem, remedy = f"cannot be read: {error.strerror or error}", "Check the file and its disk"
    else:
        problem, remedy = error.problem, error.remedy
    sink.issue(severity, path, problem, f"{remedy}; everything else is read.")
