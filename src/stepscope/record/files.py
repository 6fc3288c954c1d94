"""Writing files of a recording: private to the user, and either atomic or valid up to the last newline."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def make_private(directory: Path) -> None:
    """Create `directory` and missing parents, accessible to this user only. Existing directories are unchanged.

    Raises:
        OSError: If a directory cannot be created.
    """
    if not directory.exists():
        make_private(directory.parent)
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def protect(directory: Path) -> list[Path]:
    """Restrict all files below `directory` to this user. Targets of symbolic links are unchanged.

    Returns:
        All paths below `directory`, sorted.

    Raises:
        OSError: If permissions cannot be changed.
    """
    found = sorted(directory.rglob("*"))
    for path in found:
        if not path.is_symlink():
            path.chmod(DIRECTORY_MODE if path.is_dir() else FILE_MODE)
    return found


def new_private(path: Path) -> int:
    """Open a file of this user for writing, empty, and return its descriptor.

    Raises:
        OSError: If it cannot be opened.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)


def append_text(path: Path, header: str, text: str) -> None:
    """Append whole lines to a file; a new file begins with `header`.

    Raises:
        OSError: If writing fails; the file is then as before.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, FILE_MODE)
    try:
        size = os.fstat(descriptor).st_size
        data = (text if size else f"{header}\n{text}").encode("utf-8", "backslashreplace")
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


def replace_json(path: Path, content: dict[str, Any], *, durable: bool = False) -> None:
    """Write a JSON file atomically: a reader sees the old content or the new one.

    Args:
        durable: Whether to wait until the content is on the disk, so that it survives a crash of the machine.

    Raises:
        OSError: If writing fails.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(new_private(draft), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, default=str)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
