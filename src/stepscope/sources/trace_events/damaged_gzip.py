"""Reading a damaged gzip member up to the byte that is damaged."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

CHECKSUM = "incorrect data check"
"""The problem if everything inflates and only the checksum is wrong: the place of the damage is unknown."""
_STEP_BYTES = 1 << 12
_MOST_BYTES = 16 << 20
"""More than an inflater holds back in one call; data after that is not searched."""


def inflate_to_damage(file: BinaryIO, start: int, skip: int) -> tuple[bytes, int, str]:
    """Inflate a member again, to get what the inflater held back in the call that failed.

    Small steps find the call that fails; its input is then inflated byte by byte.

    Args:
        file: The file, anywhere.
        start: Where the member starts in it.
        skip: Inflated bytes of it that are known already.

    Returns:
        The inflated bytes after those, the byte of the file at which the damage shows, and what it is.
    """
    file.seek(start)
    inflater: Any = zlib.decompressobj(wbits=31)
    place = start
    found: list[bytes] = []
    held = 0
    while held < _MOST_BYTES and (data := file.read(_STEP_BYTES)):
        before = inflater.copy()
        try:
            text = inflater.decompress(data)
        except zlib.error:
            text, good, problem = _bytewise(before, data)
            return b"".join([*found, text[skip:]]), place + good, problem
        found.append(text[skip:])
        held += len(found[-1])
        skip = max(0, skip - len(text))
        place += len(data)
        if inflater.eof:
            break
    return b"".join(found), place, "its blocks contradict each other"


def _bytewise(inflater: Any, data: bytes) -> tuple[bytes, int, str]:
    """Inflate to the first byte that fails: the text, the number of good bytes and the problem."""
    found = []
    for at in range(len(data)):
        try:
            found.append(inflater.decompress(data[at : at + 1]))
        except zlib.error as error:
            return b"".join(found), at, str(error).rpartition(": ")[2]
    return b"".join(found), len(data), "unknown"
