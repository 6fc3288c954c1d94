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

    Files are told apart by size, time of change and inode, never by content, so that this stays cheap.

    Raises:
        OSError: If one of the files is gone or cannot be looked at.
    """
    digest = hashlib.sha256()
    root = path.resolve()
    facts: list[object] = [str(root), label, source, source_version, schema_version()]
    for file in sorted(files):
        stat = file.stat()
        name = os.path.relpath(file.resolve(), root)
        facts.append((name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev))
    for fact in facts:
        digest.update(repr(fact).encode("utf-8", "surrogateescape") + b"\n")
    return digest.hexdigest()[:40]
