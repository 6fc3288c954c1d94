"""What a damaged gzip member holds up to the byte where it is damaged."""

from __future__ import annotations

import zlib
from typing import Any, BinaryIO

CHECKSUM = "incorrect data check"
"""The problem if all inflates and only the sum over it does not fit: nobody knows where the damage is."""
_STEP_BYTES = 1 << 12
_MOST_BYTES = 16 << 20
"""More than an inflater keeps for itself in one call; what follows is given up."""


def inflate_to_damage(file: BinaryIO, start: int, skip: int) -> tuple[bytes, int, str]:
    """Inflate a member once more: an inflater that fails keeps for itself what it made in that call.

    Small steps lead to the one that fails, which is then taken byte by byte.

    Args:
        file: The file, anywhere.
        start: Where the member starts in it.
        skip: How many inflated bytes of it are known already.

    Returns:
        The inflated bytes behind those, where in the file the damage was noticed, and what it is.
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
