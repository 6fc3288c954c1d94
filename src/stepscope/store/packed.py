"""Packed recordings: what was read of one input, in one file that another machine can open.

A file is `MAGIC`, the length of a header, the header (JSON), and Parquet files of the tables behind each other. It may
come from anywhere: `PackedFile` checks all that the header states before it reads rows, and their checksums.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import polars as pl

from stepscope._version import __version__
from stepscope.errors import UnreadableInput
from stepscope.store.manifest import schema_version
from stepscope.store.recording import Recording, StoredRecording
from stepscope.store.sinks import write_compressed
from stepscope.tables import RANKS, TABLES

SUFFIX = ".stepscope"
MAGIC = b"stepscope packed recording 1\n"
_KIND = b"stepscope packed recording "
_LENGTH = struct.Struct("<Q")
_HEADER_BYTES = 16 << 20
_PART_BYTES = 64 << 20
"""Parts are made of some 8 MiB of rows; what is much larger was not written by us."""
_PART_ROWS = 1 << 24
_WRITTEN_ROWS = 1 << 20
_ROWS_PER_BYTE = 16
_FEW_ROWS = 1_000_000
"""Rows of a small file; of a larger one, each takes bytes: what claims many more would only fill the disk."""
_SLICE_ROWS = 1 << 18
"""Rows that are in memory at a time, whatever a part claims to unpack to."""
_AGAIN = "Pack the recording again, or copy the file again"


class PackedPart(msgspec.Struct, frozen=True):
    """A Parquet file: where it begins behind the header, its size, rows and SHA-256."""

    at: int
    size: int
    rows: int
    sha256: str


class Header(msgspec.Struct, frozen=True):
    """What is in a packed recording.

    Args:
        stepscope: Version of the package that packed it.
        schema: Fingerprint of its table definitions.
        source: The reader that read it.
        input_bytes: Size of the files of the recording.
        facts: The row of `ranks`.
        tables: The parts of each table that has rows, in order.
    """

    stepscope: str
    schema: str
    source: str
    input_bytes: int
    facts: dict[str, Any]
    tables: dict[str, list[PackedPart]]


def pack_recording(recording: Recording, file: Path, input_bytes: int) -> int:
    """Write a recording as a packed one; returns the size. The file must not exist.

    Raises:
        OSError: If it cannot be written.
    """
    parts: dict[str, list[PackedPart]] = {}
    body = file.with_name(f".{file.name}.body")
    try:
        with body.open("xb") as out:
            for table in sorted(recording.rows):
                parts[table] = [_added(out, content) for content in _parts_of(recording, table)]
        header = msgspec.json.encode(
            Header(__version__, schema_version(), recording.source, input_bytes, dict(recording.facts), parts)
        )
        with file.open("xb") as out, body.open("rb") as rows:
            out.write(MAGIC + _LENGTH.pack(len(header)) + header)
            while piece := rows.read(1 << 20):
                out.write(piece)
            return out.tell()
    finally:
        body.unlink(missing_ok=True)


def _parts_of(recording: Recording, table: str) -> Iterator[bytes]:
    """The Parquet files of a table: those of the store as they are, small tables written as one."""
    if isinstance(recording, StoredRecording):
        stored = recording.parts_of(table)
        if not any(part.is_small for part in stored):
            yield from ((recording.directory / part.name).read_bytes() for part in stored)
            return
    rows = recording.scan(table).collect()
    full = [column.name for column in rows.get_columns() if column.null_count() < rows.height]
    for part in rows.select(full or rows.columns[:1]).iter_slices(_WRITTEN_ROWS):
        out = io.BytesIO()
        write_compressed(part, out)
        yield out.getvalue()


def _added(out: BinaryIO, content: bytes) -> PackedPart:
    at = out.tell()
    out.write(content)
    rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
    return PackedPart(at, len(content), int(rows), hashlib.sha256(content).hexdigest())


class PackedFile:
    """A packed recording that may come from anywhere; a context manager that closes it.

    Raises:
        UnreadableInput: If it is none, or another version packed it, or what it states cannot be.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise self._problem(f"cannot be read: {error.strerror}", "Check the file and its disk") from error
        self._file = os.fdopen(descriptor, "rb")
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode):
                raise self._problem("is not a file", _AGAIN)
            self.header = self._header(info.st_size)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> PackedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def rows(self, table: str) -> Iterator[pl.DataFrame]:
        """The rows of a table, some at a time, with those of its columns that have values.

        Raises:
            UnreadableInput: If they are not what the header states.
        """
        for part in self.header.tables[table]:
            self._file.seek(self._begin + part.at)
            content = self._file.read(part.size)
            if hashlib.sha256(content).hexdigest() != part.sha256:
                raise self._problem(f"is damaged: the checksum of its table {table} differs", _AGAIN)
            try:
                yield from self._slices(table, part, content)
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
                raise self._problem(f"has a table {table} that is no Parquet ({error})", _AGAIN) from error

    def _slices(self, table: str, part: PackedPart, content: bytes) -> Iterator[pl.DataFrame]:
        whole, declared = pl.scan_parquet(io.BytesIO(content)), TABLES[table].stored_schema
        schema = whole.collect_schema()
        strange = [name for name, dtype in schema.items() if declared.get(name) != dtype]
        if strange:
            raise self._problem(
                f"has columns in {table} that are not of this table: {', '.join(strange)[:200]}", _AGAIN
            )
        if whole.select(pl.len()).collect().item() != part.rows:
            raise self._problem(f"has another number of rows in {table} than it states", _AGAIN)
        for start in range(0, part.rows, _SLICE_ROWS):
            yield whole.slice(start, _SLICE_ROWS).collect()

    def _header(self, size: int) -> Header:
        start = self._file.read(len(MAGIC))
        if start != MAGIC:
            if start.startswith(_KIND):
                raise self._problem("is a packed recording of a later version of stepscope", "Update stepscope here")
            raise self._problem("is no packed recording", _AGAIN)
        stated = self._file.read(_LENGTH.size)
        length = _LENGTH.unpack(stated)[0] if len(stated) == _LENGTH.size else 0
        self._begin = len(MAGIC) + _LENGTH.size + length
        if not 0 < length <= _HEADER_BYTES or self._begin > size:
            raise self._problem("is cut off or damaged", _AGAIN)
        text = self._file.read(length)
        try:
            header = msgspec.json.decode(text, type=Header)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise self._problem(f"has a damaged header ({error})", _AGAIN) from None
        if header.schema != schema_version():
            raise self._problem(
                f"was packed by stepscope {header.stepscope[:40]}, whose tables differ from those of this version "
                f"({__version__})",
                "Install the same version here and on the hosts, or collect the recordings themselves",
            )
        self._check_parts(header, size - self._begin)
        return header

    def _check_parts(self, header: Header, size: int) -> None:
        """Refuse tables and places that cannot be, among them bytes that are used twice."""
        end = rows = 0
        for name, parts in header.tables.items():
            if name not in TABLES or name == RANKS.name:
                raise self._problem(f"has a table {name[:80]!r} that does not exist", _AGAIN)
            for part in parts:
                if part.at < end or not 0 <= part.size <= min(_PART_BYTES, size - part.at):
                    raise self._problem(f"states impossible places of its table {name}", _AGAIN)
                end, rows = part.at + part.size, rows + part.rows
                if not 0 <= part.rows <= _PART_ROWS or rows > _FEW_ROWS + _ROWS_PER_BYTE * size:
                    raise self._problem(f"states an impossible number of rows of its table {name}", _AGAIN)

    def _problem(self, problem: str, remedy: str) -> UnreadableInput:
        return UnreadableInput(self.path, problem, remedy)


def problem_of_packed(file: Path) -> str | None:
    """Why a packed recording cannot be opened here; None if it can."""
    try:
        with PackedFile(file):
            return None
    except UnreadableInput as error:
        return f"{error.problem}. {error.remedy}"


def facts_of_packed(file: Path) -> Mapping[str, Any]:
    """The row of `ranks` of a packed recording; empty if it cannot be opened here."""
    try:
        with PackedFile(file) as packed:
            return packed.header.facts
    except UnreadableInput:
        return {}
