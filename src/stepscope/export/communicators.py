"""Names of communicators: files of Ascend devices name a group by a text, and its key is a hash of that text.

Recordings of Ascend devices state the keys, but not always the texts. So that what is exported from them has the same
keys, a text with a given key is made: the key itself, and letters that make up for the rest. Both halves of the hash
are sums of the letters' codes times powers of a number, modulo 2^32, so texts of one hash differ by the vectors of a
lattice. Of all suitable changes to a row of equal letters, Babai's nearest plane algorithm finds a small one.
"""

from __future__ import annotations

from functools import cache, lru_cache
from operator import mul

from stepscope.sources.ascend.groups import group_key

_HALF = 1 << 32
_FACTORS = 29, 131
"""Of the two halves of the hash."""
_MIDDLE, _REACH = ord("m"), 12
"""Letters are at most so far from the middle of the alphabet; as a rule five suffice."""
_MOST_ATTEMPTS = 100
_LATTICE = """
     2  2 -1  0  1  2  1  0  0 -1 -1  0 -3 -3 -2 -2  1  3  0  3  1  4  1  0
     3  0 -1  2 -1 -2  1  0  2 -1 -2  2 -3 -1  2  2 -2  0  0  5  1  1  0  0
    -1  1  0 -3  2 -1 -1  2  2  1 -2 -1  1  2 -1 -2  2 -5 -1 -2 -2 -1  1  1
     1 -3  0  3  2  1  1 -1 -4  0  1  1 -3  2  0  1  0  2  3  2 -2  1  1 -1
     0 -2  1  3  2  1 -1  1 -2  0 -3 -2 -4 -3  1  3 -2  2  1  3 -1  3  0 -1
    -2  0  0  4  0  0  1 -2  1 -1  0 -2  4 -1 -1  2 -3  2  0 -4  0  2  0  0
     1 -1 -1 -2  1  1  1  0 -1  4  0 -1  0  0 -2 -4  2 -1 -1  1 -3 -4  3 -1
    -2 -1  4  1  1  2 -3  2 -1  1 -1  3  0  0  1 -1  0 -1  2 -1 -2  4  1 -1
     2  1 -1 -2  2  3  2  2  0 -3  0  0 -2  4 -2  0 -2  0  3  2  0  0 -2  1
     0 -1  0  1 -5  4  2  0 -1  1  2  2 -1  2  2  1 -2 -3  3  1  1  0 -1  0
    -1  2  4 -1  3 -1 -1  1  0  1  2 -4  0  0  0 -1  1  2 -3  0  4  0 -1  1
    -2  0 -1  5  2  2  1  0  2  2  0  2 -1  2 -1 -3  0 -4 -1  3 -1 -1  2  0
     1 -1  2  4 -2 -1 -2  2 -2 -2 -1  2  1 -3 -2  1  0  3 -1 -1 -1 -2 -1 -2
     2  3  0  0 -4 -2  0  2  1 -2  3  3  1 -2  2  0  1  0  2 -3 -2  1  2  0
     4 -1  1  1  3 -4  2 -1  2 -2  2  0  1  2  4  2 -1  0  2 -2  2 -4  2  1
     0  0 -3  0  1 -2  1  2 -1  0 -2  1  2 -2  3  1 -2 -2  2  0  0 -5 -1 -1
     1 -1  1 -1  0  1 -1  0  1 -4  0  2  4  1  5  1 -2  2  1 -4 -3  1  1  2
     0  1  1  2  0 -2 -1 -1  1  3  0  0  7  1  2  2 -2  0 -3  1  1  0  2  1
     0  2  2 -1  0  1  2  1  0  0 -1 -1  0 -3 -3 -2 -2  1  3  0  3  1  4  1
    -1  2  0  3  0  0  1  1  0 -2  0  1 -2 -1  1  3 -1  2  2  1 -1 -2 -7  0
     0  2  0 -1  0  2  0 -2 -2  0 -3  0  0  1  2 -5  5  0  3  2  0  1  3  0
     2  2 -2 -2 -2 -1 -1 -2 -2  0 -1  0  1  4 -2 -1 -2  3  4 -2  0 -2 -3  1
     1  2  4 -1 -1  1  1 -2 -3 -2  1 -1 -1 -3  2 -1  1  0 -2 -1  4  3  1 -3
     1 -2  2 -2 -2  2 -3  1  0  0  1 -3  0 -7 -2 -1  3  0  0  1  0  2  0  1
"""
"""A basis of all changes of 24 letters, the last one first, that leave the hash as it is, reduced by the algorithm of
Lenstra, Lenstra and Lovász: its vectors are short and nearly at right angles."""

Vector = tuple[int, ...]


def communicator(group: str) -> str:
    """A name for a group, from which its key follows.

    Args:
        group: As in `groups.group`: a key of an Ascend recording, or the name of a group elsewhere.

    Returns:
        A text of which `group_key` is the key, if it is one; else the name. A number that is no key becomes a word,
        since readers take numbers for keys.

    Examples:
        >>> communicator("default_pg"), communicator("0")
        ('default_pg', 'group 0')
        >>> communicator("11517043351967950690"), group_key(communicator("11517043351967950690"))
        ('11517043351967950690:momkjlnmlnmoionkjmmopmik', '11517043351967950690')
    """
    if not group.isdecimal():
        return group
    return _text_of(group) or f"group {group}"


def key_of(group: str) -> str:
    """The key of a group, which is the group itself if it is a key."""
    return group_key(communicator(group))


@lru_cache(1 << 16)
def _text_of(key: str) -> str | None:
    """A text with a key; None if it is the key of no text."""
    number = int(key) if len(key) <= len(str(_HALF**2)) else -1
    if not _HALF <= number < _HALF**2 or str(number) != key:
        return None
    basis, planes = _reduced()
    for attempt in range(_MOST_ATTEMPTS):
        prefix = f"{key}:" + "." * attempt
        letters = chr(_MIDDLE) * len(basis)
        high, low = (
            (end - begin) % _HALF
            for end, begin in zip(*map(_halves, (number, int(group_key(prefix + letters)))), strict=True)
        )
        if (low - high) % 2:  # both factors are odd, so both halves are odd or both are even
            return None
        change = _nearest(_some_change(high, low, len(basis)), basis, planes)
        if max(map(abs, change)) <= _REACH:
            return prefix + "".join(chr(_MIDDLE + each) for each in reversed(change))
    return None


def _halves(key: int) -> tuple[int, int]:
    return divmod(key, _HALF)


def _some_change(high: int, low: int, letters: int) -> list[int]:
    """Changes of letters, the last one first, that add this to both halves: of the last two letters alone."""
    smaller, larger = _FACTORS
    half = (larger - smaller) // 2  # odd, so it can be divided by
    second = (low - high) % _HALF // 2 * pow(half, -1, _HALF // 2) % (_HALF // 2)
    return [(high - smaller * second) % _HALF, second, *[0] * (letters - 2)]


def _nearest(change: list[int], basis: tuple[Vector, ...], planes: tuple[tuple[float, ...], ...]) -> list[int]:
    """A change with the same effect that is small: less a vector of the lattice nearby."""
    for vector, plane in zip(reversed(basis), reversed(planes), strict=True):
        times = round(sum(map(mul, change, plane)))
        change = [each - times * step for each, step in zip(change, vector, strict=True)]
    return change


@cache
def _reduced() -> tuple[tuple[Vector, ...], tuple[tuple[float, ...], ...]]:
    """The basis; and of each vector the part at right angles to those before it, over the square of its length."""
    basis = tuple(tuple(map(int, line.split())) for line in _LATTICE.strip().splitlines())
    planes: list[tuple[float, ...]] = []
    upright: list[list[float]] = []
    for vector in basis:
        part = [float(each) for each in vector]
        for other, plane in zip(upright, planes, strict=True):
            share = sum(map(mul, vector, plane))
            part = [each - share * step for each, step in zip(part, other, strict=True)]
        length = sum(map(mul, part, part))
        upright.append(part)
        planes.append(tuple(each / length for each in part))
    return basis, tuple(planes)
