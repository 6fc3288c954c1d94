"""Names of files as text: on Linux a name is bytes, and need not be UTF-8."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath


def shown(path: Path | str) -> str:
    r"""A path as people, JSON and tables can take it: bytes that are no UTF-8 become escapes.

    To open the file or to tell it from others, use the path itself.

    Examples:
        >>> shown("run\udcff.json")
        'run\\xff.json'
    """
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def stays_below(name: str) -> bool:
    """Whether a listed name of a file, joined to a directory, leads to something below that directory.

    Examples:
        >>> stays_below("minddata/0"), stays_below("../0"), stays_below("/minddata")
        (True, False, False)
    """
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts


def lies_within(place: Path | str, directories: Iterable[Path]) -> bool:
    """Whether a place is one of some directories or lies in one, whatever links lead there."""
    resolved = Path(os.path.realpath(place))
    return any(resolved.is_relative_to(os.path.realpath(each)) for each in directories)


def input_around(place: Path, inputs: Iterable[Path]) -> Path | None:
    """The input that a place is, or lies in, whatever links lead there; None if it is apart from all inputs."""
    found = first_in_input((place,), inputs)
    return None if found is None else found[1]


def first_in_input(places: Iterable[Path], inputs: Iterable[Path]) -> tuple[Path, Path] | None:
    """The first of some places that is, or lies in, an input, and that input; None if all are apart from all inputs.

    Each place and each input is looked up once, as there may be thousands of both.
    """
    known: dict[Path, tuple[int, Path]] = {}
    for number, each in enumerate(inputs):
        known.setdefault(each.resolve(), (number, each))
    for place in places:
        resolved = place.resolve()
        around = [known[above] for above in (resolved, *resolved.parents) if above in known]
        if around:
            return place, min(around)[1]
    return None


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts names with their numbers as numbers.

    Examples:
        >>> sorted(["rank10", "rank2"], key=natural)
        ['rank2', 'rank10']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]
