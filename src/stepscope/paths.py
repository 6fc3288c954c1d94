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


def input_around(place: Path, inputs: Iterable[Path]) -> Path | None:
    """The input that a place is, or lies in, whatever links lead there; None if it is apart from all inputs."""
    resolved = place.resolve()
    for each in inputs:
        whole = each.resolve()
        if resolved == whole or (whole.is_dir() and resolved.is_relative_to(whole)):
            return each
    return None


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts names with their numbers as numbers.

    Examples:
        >>> sorted(["rank10", "rank2"], key=natural)
        ['rank2', 'rank10']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]
