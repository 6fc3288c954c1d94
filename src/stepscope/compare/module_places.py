"""Which modules of two models are the same, also where one side wraps modules in others, or has more of a class.

PyTorch numbers the modules of a class in the order in which they run, so one module more renumbers all that follow:
what counts is the place among the modules of one class in the same module around them. Where one side has more of a
class there, it cannot be told which of them is new, so they are compared together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.analysis.methods.module_ranges import BETWEEN

Parents = Mapping[str, str | None]
"""Path of each module to that of the module around it; None at the top."""

EXACT, INNER, SEVERAL = "path", "inner", "several"
HOW = (EXACT, INNER, SEVERAL)
"""How modules of both sides are matched: by their path; by their place, under another path; all of a class together."""

_NUMBER = re.compile(r"_(\d+)$")


@dataclass(frozen=True)
class ModulePlace:
    """A place in both models.

    Args:
        text: What it is called.
        how: How it is matched; None if it is on one side only.
    """

    text: str
    how: str | None


def module_places(base: Parents, new: Parents) -> tuple[dict[str, ModulePlace], dict[str, ModulePlace]]:
    """The place of each module of both sides, by its path."""
    sides = (base, new)
    classes = [{_class(_own(path, side[path])) for path in side} for side in sides]
    one_sided = (classes[0] - classes[1], classes[1] - classes[0])
    inner = [_inner_parents(side, names) for side, names in zip(sides, one_sided, strict=True)]
    keys: tuple[dict[str, str], dict[str, str]] = ({}, {})
    several: set[str] = set()
    level = [[path for path, parent in side.items() if parent is None] for side in inner]
    while any(level):
        _place(level, inner, sides, keys, several)
        level = [
            [path for path, parent in side.items() if parent in set(of)] for side, of in zip(inner, level, strict=True)
        ]
    return _described(keys, several)


def _place(
    level: list[list[str]],
    inner: list[dict[str, str | None]],
    sides: tuple[Parents, Parents],
    keys: tuple[dict[str, str], dict[str, str]],
    several: set[str],
) -> None:
    """Give the modules of one level their keys: that of the module around them, their class and their number there."""
    groups: dict[tuple[str, str], tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, paths in enumerate(level):
        for path in paths:
            parent = inner[side][path]
            around = "" if parent is None else keys[side][parent]
            groups[around, _class(_own(path, sides[side][path]))][side].append(path)
    for (around, name), both in groups.items():
        are_several = all(both) and (len(both[0]) != len(both[1]) or around in several)
        for side, paths in enumerate(both):
            for number, path in enumerate(sorted(paths, key=_by_number)):
                key = f"{around}{BETWEEN}{name}_{'*' if are_several else number}"
                keys[side][path] = key
                if are_several:
                    several.add(key)


def _described(
    keys: tuple[dict[str, str], dict[str, str]], several: set[str]
) -> tuple[dict[str, ModulePlace], dict[str, ModulePlace]]:
    paths: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for side, own in enumerate(keys):
        for path, key in own.items():
            paths[key][side].append(path)
    places: dict[str, ModulePlace] = {}
    for key, (of_base, of_new) in paths.items():
        is_one = len(of_base) <= 1 and len(of_new) <= 1 and key not in several
        how = None if not of_base or not of_new else SEVERAL if not is_one else EXACT if of_base == of_new else INNER
        places[key] = ModulePlace((of_base or of_new)[0] if is_one else key.removeprefix(BETWEEN), how)
    return tuple({path: places[key] for path, key in own.items()} for own in keys)  # type: ignore[return-value]


def _inner_parents(side: Parents, one_sided: set[str]) -> dict[str, str | None]:
    """The module around each one, without those of classes that the other side does not have."""
    found: dict[str, str | None] = {}
    for path in side:
        parent = side[path]
        while parent is not None and _class(_own(parent, side[parent])) in one_sided:
            parent = side[parent]
        found[path] = parent
    return found


def _own(path: str, parent: str | None) -> str:
    """A module's own name in its path."""
    return path if parent is None else path.removeprefix(f"{parent}{BETWEEN}")


def _class(name: str) -> str:
    return _NUMBER.sub("", name)


def _by_number(path: str) -> tuple[int, str]:
    found = _NUMBER.search(path)
    return int(found[1]) if found else -1, path
