"""`recording.json`: who recorded, where and how."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.json_values import json_text, small_number, whole_number
from stepscope.sources.kineto.header import member_list
from stepscope.tables import RANKS

ABOUT = "recording.json"
FORMAT = "stepscope-recording"
VERSION = 1
_FRAMEWORKS = {"torch": "pytorch"}
"""What a framework is called in `ranks`, where that is not its module's name."""

_RANK_IN_NAME = re.compile(r"rank-(\d{1,9})_")


@dataclass(frozen=True)
class About:
    """What a recording says of itself.

    Args:
        directory: The recording.
        values: The JSON object.
    """

    directory: Path
    values: Mapping[str, Any]

    @property
    def shift_ns(self) -> int:
        """Added to all times, so that they are of rank 0's clock."""
        return whole_number(self._part("clock").get("offset_ns")) or 0

    @property
    def epoch_shift_ns(self) -> int | None:
        """Added to times of the monotonic clock to get those since the epoch; None if it was not recorded."""
        return whole_number(self.values.get("epoch_shift_ns"))

    @property
    def process(self) -> str | None:
        """The process, as events name it."""
        pid = whole_number(self.values.get("pid"))
        return None if pid is None else str(pid)

    @property
    def framework(self) -> str | None:
        """The framework, as `ranks` names it."""
        name = _text(self.values.get("framework"))
        return _FRAMEWORKS.get(name, name) if name else None

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Every start() to stop(), in ns since the epoch by this rank's own clock; the last sign of life ends an
        open one."""
        listed = self.values.get("spans")
        spans = []
        for span in listed if isinstance(listed, list) else ():
            if isinstance(span, list) and len(span) == 2 and (start := whole_number(span[0])) is not None:
                end = whole_number(span[1]) or whole_number(self.values.get("updated_ns")) or start
                spans.append((start, max(start, end)))
        return spans

    @property
    def was_stopped(self) -> bool:
        """Whether the recorder came to its end."""
        return self.values.get("state") != "recording"

    @property
    def own_threads(self) -> frozenset[str]:
        """The recorder's own threads, as traces name them."""
        listed = self.values.get("own_threads")
        return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()

    @property
    def problems(self) -> list[str]:
        """What the recorder could not do."""
        listed = self.values.get("problems")
        return [str(problem) for problem in listed] if isinstance(listed, list) else []

    @property
    def groups(self) -> list[dict[str, Any]]:
        """Rows of `groups`."""
        listed = self.values.get("groups")
        rows = []
        for entry in listed if isinstance(listed, list) else ():
            if isinstance(entry, dict) and entry.get("group") is not None:
                name = entry.get("name")
                members = member_list(entry.get("members"))
                rows.append({"group": str(entry["group"]), "name": _text(name), "members": members})
        return rows

    def rank_row(self, span: tuple[int, int] | None) -> pl.DataFrame:
        """The row of `ranks`.

        Args:
            span: First and last time of what was recorded.
        """
        rank, origin = self._rank()
        clock = self._part("clock")
        row = {
            "rank": rank,
            "rank_origin": origin,
            "world_size": small_number(self.values.get("world_size")),
            "process": whole_number(self.values.get("pid")),
            "device": small_number(self.values.get("device_id")),
            "format": "recording",
            "clock_offset_ns": whole_number(clock.get("offset_ns")),
            "clock_error_ns": whole_number(clock.get("error_ns")),
            "start_ns": span[0] if span else None,
            "end_ns": span[1] if span else None,
            "options": json_text(self.values.get("options")),
            "environment": json_text(self.values.get("environment")),
            "parallelism": json_text(self.values.get("parallel")),
        }
        words = ("host", "device_kind", "device_name", "framework_version", "mode", "backend")
        row |= {name: _text(self.values.get(name)) for name in words}
        row["framework"] = self.framework
        return RANKS.unchecked(**{name: [value] for name, value in row.items()})

    def _rank(self) -> tuple[int | None, str | None]:
        stated = small_number(self.values.get("rank"))
        if stated is not None and stated >= 0:
            return stated, "content"
        named = _RANK_IN_NAME.match(self.directory.name)
        return (int(named[1]), "file name") if named else (None, None)

    def _part(self, key: str) -> Mapping[str, Any]:
        part = self.values.get(key)
        return part if isinstance(part, dict) else {}


def is_recording(directory: Path) -> bool:
    """Whether a directory with a `recording.json` is a recording of ours, of any version.

    Raises:
        OSError: If the file cannot be read.
    """
    try:
        values = json.loads((directory / ABOUT).read_bytes())
    except ValueError:
        return (directory / "marks.csv").exists() or (directory / "windows.csv").exists()
    return isinstance(values, dict) and values.get("format") == FORMAT


def read_about(directory: Path) -> About:
    """What a recording says of itself.

    Raises:
        UnreadableInput: If that is damaged, or of a version that is not known here.
    """
    path = directory / ABOUT
    try:
        values = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(path, f"is damaged ({error})", "Copy the recording again") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise UnreadableInput(path, "does not describe a recording", "Copy the recording again")
    version = whole_number(values.get("version"))
    if version is None or version > VERSION:
        raise UnreadableInput(
            path,
            f"is of version {values.get('version')} of the format; this stepscope reads up to {VERSION}",
            "Update stepscope to at least the version that recorded it",
        )
    return About(directory, values)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
