"""`recording.json`: process, job and options of a recording. Its keys are the fields of `About`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from stepscope.json_values import as_text, list_of, object_of, small_number, whole_number
from stepscope.recording_format.layout import rank_in_name

FORMAT = "stepscope-recording"
VERSION = 1
RECORDING, STOPPED, FAILED = "recording", "stopped", "failed"
"""States of a recording; it stays in the first if the process is killed."""

Span = tuple[int, "int | None"]
"""From start() to stop(), in ns since the epoch; the end is None while recording."""


@dataclass(frozen=True)
class About:
    """The metadata of a recording; docs/recording.md describes each key. None is unknown.

    Args:
        directory: The recording's directory; all other fields are keys of the file.
    """

    directory: Path
    state: str = RECORDING
    rank: int | None = None
    world_size: int | None = None
    local_rank: int | None = None
    device_id: int | None = None
    host: str | None = None
    pid: int | None = None
    boot_id: str | None = None
    epoch_shift_ns: int | None = None
    framework: str | None = None
    framework_version: str | None = None
    stepscope_version: str | None = None
    python_version: str | None = None
    device_kind: str | None = None
    device_name: str | None = None
    mode: str | None = None
    backend: str | None = None
    parallel: Mapping[str, Any] = field(default_factory=dict)
    groups: list[dict[str, Any]] = field(default_factory=list)
    clock: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    started_ns: int | None = None
    updated_ns: int | None = None
    problems: list[str] = field(default_factory=list)
    own_threads: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        keys = (key.name for key in fields(self) if key.name != "directory")
        return {"format": FORMAT, "version": VERSION, **{key: getattr(self, key) for key in keys}}

    @classmethod
    def of(cls, directory: Path, values: Mapping[str, Any]) -> About:
        """From the content of the file; values of an unexpected type are unknown."""
        texts = ["host", "boot_id", "framework", "framework_version", "stepscope_version", "python_version"]
        texts += ["device_kind", "device_name", "mode", "backend"]
        small = ("rank", "world_size", "local_rank", "device_id")
        whole = ("pid", "epoch_shift_ns", "started_ns", "updated_ns")
        objects = ("parallel", "clock", "options", "environment")
        read: dict[str, Any] = {name: as_text(values.get(name)) for name in texts}
        read |= {name: small_number(values.get(name)) for name in small}
        read |= {name: whole_number(values.get(name)) for name in whole}
        read |= {name: object_of(values, name) for name in objects}
        return cls(
            directory,
            state=str(values.get("state")),
            groups=[entry for entry in list_of(values, "groups") if isinstance(entry, dict)],
            arguments=list(map(str, list_of(values, "arguments"))),
            spans=[span for entry in list_of(values, "spans") if (span := _span(entry)) is not None],
            problems=list(map(str, list_of(values, "problems"))),
            own_threads=[n for entry in list_of(values, "own_threads") if (n := whole_number(entry)) is not None],
            **read,
        )

    @property
    def named_rank(self) -> tuple[int | None, str | None]:
        """Its rank, and where it is from: the `content` of the file or the `file name` of the directory."""
        if self.rank is not None and self.rank >= 0:
            return self.rank, "content"
        named = rank_in_name(self.directory.name)
        return named, None if named is None else "file name"

    @property
    def shift_ns(self) -> int:
        """Offset to add to all times to get rank 0's clock."""
        return whole_number((self.clock or {}).get("offset_ns")) or 0

    @property
    def process(self) -> str | None:
        """The process id as in events."""
        return None if self.pid is None else str(self.pid)

    @property
    def was_stopped(self) -> bool:
        """Whether the recorder has finished."""
        return self.state != RECORDING

    @property
    def closed_spans(self) -> list[tuple[int, int]]:
        """Every start() to stop(), on this rank's own clock; an open span ends with the last update of the file."""
        ends = [(start, end or self.updated_ns or start) for start, end in self.spans]
        return [(start, max(start, end)) for start, end in ends]


def _span(entry: object) -> Span | None:
    if not isinstance(entry, list) or len(entry) != 2 or (start := whole_number(entry[0])) is None:
        return None
    return start, whole_number(entry[1])
