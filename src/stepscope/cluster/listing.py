"""What is to be copied from a host: its directories that match a pattern, and the regular files in them."""

from __future__ import annotations

import asyncio
import fnmatch
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from stepscope.cluster.names import problem_of
from stepscope.cluster.places import Place, Seen
from stepscope.present import printable, size

DEEPEST = 32
"""Directories within each other; no profiler comes near, and a host could go on for ever."""
NAMED = 20
"""What is not taken is named so often, then only counted."""
_MATCHES = 4096
_LOOKED_AT = 1_000_000
_WILD = frozenset("*?[")


@dataclass(frozen=True)
class Bounds:
    """What is taken of one host at most.

    Args:
        files: Number of files.
        bytes: Size of all of them.
        free_bytes: What stays free on our disk.
    """

    files: int = 200_000
    bytes: int = 200_000_000_000
    free_bytes: int = 1_000_000_000


@dataclass(frozen=True)
class Wanted:
    """A file of a host.

    Args:
        path: What the host calls it.
        match: Its directory (or itself) that matched the pattern, as names below the part of the pattern without
            wildcards.
        below: Names from there to the file; empty if it matched itself.
        size: Its size in bytes.
        changed_ns: When it was changed, as the host states it.
    """

    path: str
    match: tuple[str, ...]
    below: tuple[str, ...]
    size: int
    changed_ns: int

    @property
    def names(self) -> tuple[str, ...]:
        """Its names below the common part of all matches."""
        return (*self.match, *self.below)


@dataclass
class Notes:
    """What was not taken, or needs a look, with its reason; many are counted."""

    named: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def add(self, name: str, why: str) -> None:
        """Note a file and why."""
        self.count += 1
        if len(self.named) < NAMED:
            self.named.append((printable(name)[:300], why))

    def extend(self, other: Notes) -> None:
        """Add the notes of another list."""
        self.count += other.count
        self.named = [*self.named, *other.named][:NAMED]


@dataclass
class Listing:
    """The files of a host that are taken.

    Args:
        files: In the order of their names.
        skipped: Links and devices, which are never taken: nothing is lost.
        refused: What was not taken for its name, or since there was too much.
    """

    files: list[Wanted] = field(default_factory=list)
    skipped: Notes = field(default_factory=Notes)
    refused: Notes = field(default_factory=Notes)


async def list_files(place: Place, patterns: Sequence[str], bounds: Bounds) -> Listing:
    """List the files under all that matches some patterns, `*`, `?` and `[...]` in a name as in a shell.

    Raises:
        HostFailed: If the host does.
    """
    walk = _Walk(place, bounds)
    for pattern in patterns:
        async for path, names in _matches(place, pattern, walk.listing.refused):
            await walk.take(path, names)
    walk.listing.files.sort(key=lambda file: file.names)
    return walk.listing


async def expanded(place: Place, patterns: Sequence[str]) -> list[str]:
    """The paths that match some patterns and lead to something."""
    found = [path for pattern in patterns async for path, _ in _matches(place, pattern, Notes())]
    seen = [(path, await place.look(path)) for path in dict.fromkeys(found)]
    return [path for path, one in seen if one is not None and one.kind in ("file", "folder")]


class _Walk:
    def __init__(self, place: Place, bounds: Bounds) -> None:
        self.place = place
        self.bounds = bounds
        self.listing = Listing()
        self.bytes = 0
        self.seen = 0
        self.paths: set[str] = set()

    async def take(self, path: str, match: tuple[str, ...]) -> None:
        """List a directory, or a file, that matched."""
        found = await self.place.look(path)
        if found is None or path in self.paths:
            return
        self.paths.add(path)
        if found.kind == "file":
            self._add(path, match, (), found)
            return
        if found.kind != "folder":
            self.listing.refused.add(path, "is no file or directory, or leads out of the host's own directory")
            return
        waiting: deque[tuple[str, tuple[str, ...]]] = deque([(path, ())])
        while waiting:
            folder, below = waiting.popleft()
            inside = await self._inside(folder)
            for entry in sorted(inside, key=lambda one: one.name):
                names, at = (*below, entry.name), f"{folder.rstrip('/')}/{entry.name}"
                if entry.kind == "folder" and len(names) < DEEPEST:
                    waiting.append((at, names))
                elif entry.kind == "folder":
                    self.listing.refused.add(at, f"lies more than {DEEPEST} directories deep")
                elif entry.kind == "file":
                    self._add(at, match, names, entry)
                else:
                    what = "is a link; only the files themselves are copied" if entry.kind == "link" else "is no file"
                    self.listing.skipped.add(at, what)

    async def _inside(self, folder: str) -> list[Seen]:
        """The entries of a directory with plain names; no more of them than files are taken."""
        inside: list[Seen] = []
        names: set[str] = set()
        try:
            async for entry in self.place.entries(folder):
                self.seen += 1
                if self.seen > 2 * self.bounds.files + 1000:
                    self.listing.refused.add(folder, "has more entries than are looked at (see --max-files)")
                    break
                problem = "is listed twice" if entry.name in names else problem_of(entry.name)
                if problem is None:
                    names.add(entry.name)
                    inside.append(entry)
                else:
                    self.listing.refused.add(f"{folder}/{entry.name}", problem)
                if self.seen % 1000 == 0:
                    await asyncio.sleep(0)
        except OSError as error:
            self.listing.refused.add(folder, f"cannot be listed: {error.strerror or error}")
        return inside

    def _add(self, path: str, match: tuple[str, ...], below: tuple[str, ...], seen: Seen) -> None:
        if len(self.listing.files) >= self.bounds.files:
            why = f"is beyond the {self.bounds.files} files taken of a host (see --max-files)"
        elif self.bytes + seen.size > self.bounds.bytes:
            why = f"has {size(seen.size)}, beyond the {size(self.bounds.bytes)} taken of a host (see --max-gb)"
        else:
            self.bytes += seen.size
            self.listing.files.append(Wanted(path, match, below, seen.size, seen.changed_ns))
            return
        self.listing.refused.add(path, why)


async def _matches(place: Place, pattern: str, refused: Notes) -> AsyncIterator[tuple[str, tuple[str, ...]]]:
    """What matches a pattern: path, and the names below the part without wildcards (the last name, if there are none).

    Paths are relative to the user's home, or to the directory of a share, unless they are absolute.

    Names with a leading dot match only a pattern with one.
    """
    parts = [part for part in pattern.removeprefix("~/").split("/") if part not in ("", ".")]
    fixed = next((at for at, part in enumerate(parts) if _WILD & set(part)), len(parts) - 1)
    root = "/" if pattern.startswith("/") else ""
    found: list[tuple[str, tuple[str, ...]]] = [(root + "/".join(parts[: max(fixed, 0)]), ())]
    for part in parts[max(fixed, 0) :]:
        further: list[tuple[str, tuple[str, ...]]] = []
        for folder, names in found:
            inside = [part]
            if _WILD & set(part):
                inside = await _matching(place, folder or ".", part, refused)
            further += [(_joined(folder, name), (*names, name)) for name in inside]
            if len(further) > _MATCHES:
                refused.add(folder, f"has more than {_MATCHES} matches of the pattern")
                further = further[:_MATCHES]
                break
        found = further
    for path, names in found:
        yield path, tuple(name for name in names if name != "..")


async def _matching(place: Place, folder: str, part: str, refused: Notes) -> list[str]:
    inside: list[str] = []
    looked_at = 0
    try:
        async for entry in place.entries(folder):
            looked_at += 1
            if looked_at > _LOOKED_AT:
                refused.add(folder, f"has more than {_LOOKED_AT} entries")
                break
            if not fnmatch.fnmatchcase(entry.name, part) or (entry.name.startswith(".") and part[0] != "."):
                continue
            problem = problem_of(entry.name)
            if problem is not None:
                refused.add(f"{folder}/{entry.name}", problem)
            elif len(inside) < _MATCHES:
                inside.append(entry.name)
    except OSError:
        return []  # the part of a path that is no directory matches nothing
    return sorted(set(inside))


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}" if folder else name
