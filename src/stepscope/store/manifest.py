"""What identifies a stored input, and its manifest: the parts with its tables, and who recorded it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from stat import S_ISLNK
from typing import Any

import msgspec

from stepscope.paths import shown
from stepscope.tables import TABLES

MANIFEST = "manifest.json"
SMALL_TABLES = "small.arrow"
"""The file of the small tables."""
_PARQUET_END = b"PAR1"
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


@cache
def schema_version() -> str:
    """A fingerprint of all table definitions; it changes when any table, column or type does."""
    text = repr([(table.name, [(c.name, c.dtype) for c in table.columns]) for table in TABLES.values()])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def identify(source: str, source_version: int, path: Path, files: Iterable[Path], label: str = "") -> str:
    """The key under which an input's rows are stored.

    Files are compared by size, time of change and inode, never by content, so that this stays cheap.

    Raises:
        OSError: If none of the files can be read. One missing file among others is ignored.
    """
    digest = hashlib.sha256()
    root = os.path.realpath(path)
    facts: list[object] = [root, label, source, source_version, schema_version()]
    problems: list[OSError] = []
    folders: dict[str, str] = {}
    names = sorted(map(str, files))
    for file in names:
        try:
            stat, real = _looked_up(file, folders)
        except OSError as error:  # a link to itself or to nothing
            problems.append(error)
            facts.append((file, error.errno))
            continue
        name = real[len(root) + 1 :] if real.startswith(root + os.sep) else os.path.relpath(real, root)
        facts.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev))
    if problems and len(problems) == len(names):
        raise problems[0]
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()[:40]


def _looked_up(file: str, folders: dict[str, str]) -> tuple[os.stat_result, str]:
    """Facts of a file, and its name without links; `folders` keeps those of the folders seen so far.

    In texts, since paths would cost more than what they are asked for.
    """
    stat = os.lstat(file)
    if S_ISLNK(stat.st_mode):
        return Path(file).stat(), os.path.realpath(file)
    folder, name = os.path.split(file)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return stat, os.path.join(folders[folder], name)  # noqa: PTH118


def size_of(file: Path) -> int:
    """Bytes of a file; 0 if it cannot be looked at."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


class StoredPart(msgspec.Struct, frozen=True):
    """Rows of a table: a Parquet file, or `size` bytes in `SMALL_TABLES` that begin `at` a byte."""

    name: str
    size: int
    at: int = 0

    @property
    def is_small(self) -> bool:
        """Whether it shares its file with other tables."""
        return self.name == SMALL_TABLES


class StoredTable(msgspec.Struct, frozen=True):
    """The rows of one table and the parts that hold them, in order."""

    rows: int
    parts: list[StoredPart]


class Manifest(msgspec.Struct, frozen=True):
    """The content of `manifest.json`.

    Args:
        source: Name of the source that read the input.
        source_version: Its version.
        schema: Fingerprint of the table definitions.
        stepscope: Version of the package that wrote it.
        path: The input, as a user would call it. As `shown` once it is written.
        files: What the source read of it, likewise.
        input_bytes: Size of these files.
        tables: The tables that have rows.
        facts: The input's row of `ranks`.
        created_ns: When it was written, ns since the epoch.
        size_bytes: Size of all parts.
        raw_files: The names of `files` as bytes, if any is not UTF-8.
    """

    source: str
    source_version: int
    schema: str
    stepscope: str
    path: str
    files: list[str]
    input_bytes: int
    tables: dict[str, StoredTable]
    facts: dict[str, Any]
    created_ns: int
    size_bytes: int
    raw_files: list[bytes] | None = None

    def paths(self) -> tuple[Path, ...]:
        """What the source read, to be opened."""
        names = self.files if self.raw_files is None else map(os.fsdecode, self.raw_files)
        return tuple(map(Path, names))


_DECODER = msgspec.json.Decoder(Manifest)


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest of an entry; None if it is missing or damaged."""
    try:
        return _DECODER.decode((directory / MANIFEST).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Write the manifest of an entry, readable by its owner only; names may be made of any bytes."""
    files = [shown(file) for file in manifest.files]
    raw = None if files == manifest.files else [os.fsencode(file) for file in manifest.files]
    writable = msgspec.structs.replace(manifest, path=shown(manifest.path), files=files, raw_files=raw)
    file = directory / MANIFEST
    file.write_bytes(msgspec.json.encode(writable))
    file.chmod(0o600)


def is_whole(directory: Path, manifest: Manifest) -> bool:
    """Whether every file is there, as long as it was, and ends as one of its kind does.

    The end is looked at because a machine that lost power may keep a file's length and lose its content.
    """
    sizes: dict[str, int] = {}
    for table in manifest.tables.values():
        for part in table.parts:
            sizes[part.name] = max(sizes.get(part.name, 0), part.at + part.size)
    return all(_ends_well(directory / name, size) for name, size in sizes.items())


def _ends_well(file: Path, size: int) -> bool:
    end = _STREAM_END if file.name == SMALL_TABLES else _PARQUET_END
    try:
        with file.open("rb", buffering=0) as stream:
            if stream.seek(0, os.SEEK_END) != size or size < len(end):
                return False
            stream.seek(-len(end), os.SEEK_END)
            return stream.read(len(end)) == end
    except OSError:
        return False
