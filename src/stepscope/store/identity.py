"""What makes stored rows still valid: the same reader, the same tables, and files that did not change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from stepscope.tables import TABLES


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
    root = path.resolve()
    facts: list[object] = [str(root), label, source, source_version, schema_version()]
    problems: list[OSError] = []
    files = sorted(files)
    for file in files:
        try:
            stat = file.stat()
        except OSError as error:  # a link to itself or to nothing
            problems.append(error)
            facts.append((str(file), error.errno))
            continue
        name = os.path.relpath(file.resolve(), root)
        facts.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev))
    if problems and len(problems) == len(files):
        raise problems[0]
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()[:40]


def size_of(file: Path) -> int:
    """Bytes of a file; 0 if it cannot be looked at."""
    try:
        return file.stat().st_size
    except OSError:
        return 0
