"""What a host is to whoever copies from it: directories to list, files to read, commands to run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["file", "folder", "link", "other"]


class HostFailed(Exception):
    """A host that cannot be reached or fails on the way; the text says why, without its address."""


class NoAnswer(HostFailed):
    """A host that did not answer in time."""


@dataclass(frozen=True)
class Seen:
    """An entry of a directory; `changed_ns` is as exact as the host states it."""

    name: str
    kind: Kind
    size: int
    changed_ns: int


@dataclass(frozen=True)
class Ran:
    """A command that ended: its exit status (None if a signal ended it), and what it printed, cut to some length."""

    status: int | None
    out: str
    err: str


class Place(Protocol):
    """The files of one host. All methods raise `HostFailed` if the host does, `OSError` for a single file."""

    def entries(self, folder: str) -> AsyncIterator[Seen]:
        """What a directory holds, in any order, without following links."""

    async def look(self, path: str) -> Seen | None:
        """What a path named by the user leads to, also through links; None if there is nothing."""

    def content(self, path: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a regular file from `start` to `end`, never more."""

    async def state(self, path: str) -> tuple[int, int]:
        """Size and time of change of a regular file."""

    async def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """The SHA-256 of files as the host computes them; those that it cannot compute are missing."""

    async def can_checksum(self) -> bool:
        """Whether the host computes checksums."""

    async def run(self, words: Sequence[str], timeout_s: float) -> Ran:
        """Run a command there, without a shell's interpretation of its words."""

    async def close(self) -> None:
        """End the connection."""
