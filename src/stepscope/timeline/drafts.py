"""Files that are there only once they are complete."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from stepscope.errors import StepscopeError
from stepscope.paths import shown

GZIP_LEVEL = 4


def is_packed(file: Path) -> bool:
    """Whether a file is to be compressed as a whole, by its name."""
    return file.name.lower().endswith(".gz")


@contextmanager
def draft_of(file: Path) -> Iterator[Path]:
    """Where to write what then takes the place of a file; what is no plain file (a pipe, a device) is written itself.

    Raises:
        StepscopeError: If it cannot be written.
    """
    is_plain = not file.exists() or file.is_file()
    draft = file.with_name(f".{file.name}.{os.getpid()}.part") if is_plain else file
    try:
        yield draft
        if is_plain:
            draft.replace(file)
    except OSError as reason:
        is_full = reason.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "Free some space there, or choose another disk" if is_full else "Check the path and permissions"
        raise StepscopeError(
            f"{shown(file)}: cannot write the timeline: {reason.strerror or reason}. {remedy}"
        ) from reason
    finally:
        if is_plain:
            draft.unlink(missing_ok=True)


@contextmanager
def opened(draft: Path, *, packed: bool) -> Iterator[BinaryIO]:
    """A draft to write to, from its start; the same bytes are always packed alike."""
    with draft.open("wb") as plain:
        if packed:
            with gzip.GzipFile("", "wb", GZIP_LEVEL, plain, mtime=0) as file:
                yield cast(BinaryIO, file)
        else:
            yield plain
