"""The manifest of a stored input: what it is, the parts with its tables, and who recorded it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from stepscope.paths import shown

MANIFEST = "manifest.json"
_MAGIC = b"PAR1"


class StoredPart(msgspec.Struct, frozen=True):
    """One Parquet file of a table; `size` in bytes."""

    name: str
    size: int


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
    """Write the manifest of an entry, readable by its owner only."""
    file = directory / MANIFEST
    file.write_bytes(msgspec.json.format(msgspec.json.encode(_writable(manifest))))
    file.chmod(0o600)


def _writable(manifest: Manifest) -> Manifest:
    """The manifest as JSON can hold it, whatever bytes the names are made of."""
    files = [shown(file) for file in manifest.files]
    raw = None if files == manifest.files else [os.fsencode(file) for file in manifest.files]
    return msgspec.structs.replace(manifest, path=shown(manifest.path), files=files, raw_files=raw)


def is_whole(directory: Path, manifest: Manifest) -> bool:
    """Whether every part is there, as long as it was, and ends as a Parquet file does.

    The end is looked at because a machine that lost power may keep a file's length and lose its content.
    """
    return all(
        _ends_well(directory / part.name, part.size) for table in manifest.tables.values() for part in table.parts
    )


def _ends_well(file: Path, size: int) -> bool:
    try:
        with file.open("rb", buffering=0) as stream:
            if stream.seek(0, os.SEEK_END) != size or size < len(_MAGIC):
                return False
            stream.seek(-len(_MAGIC), os.SEEK_END)
            return stream.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False
