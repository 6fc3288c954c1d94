"""Which calls of two sides have inputs of the same shapes."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

Shapes = Mapping[str, float]
"""Calls in a step by the shapes of their inputs, as recorded."""

TELLING = 16
"""Size of a dimension from which on it is hardly the same by chance, chosen by us: losses and counters have 1."""

_TENSOR = re.compile(r"\[[\d, ]+\]")
_SIZE = re.compile(r"\d+")


def common_calls(base: Shapes, new: Shapes) -> float:
    """Calls of both sides with the same shapes.

    Compiled code passes one more input, into which the result is written: it does not count.

    Examples:
        >>> common_calls({"[[4, 8], [8, 2]]": 3}, {"[[4, 8], [8, 2], [4, 2]]": 2, "[[9, 8], [8, 2], [9, 2]]": 1})
        2.0
    """
    sides = [_by_inputs(side) for side in (base, new)]
    lengths = [{len(inputs) for inputs in side} for side in sides]
    for place, (own, other) in enumerate(zip(lengths, lengths[::-1], strict=True)):
        if own and own == {length + 1 for length in other}:
            sides[place] = _summed((inputs[:-1], calls) for inputs, calls in sides[place].items())
    return float(sum(min(calls, sides[1][inputs]) for inputs, calls in sides[0].items() if inputs in sides[1]))


def say_much(shapes: Shapes) -> bool:
    """Whether shapes tell calls apart: most have a dimension that is not one that any tensor may have.

    Examples:
        >>> say_much({"[[64, 128]]": 3}), say_much({"[[1], []]": 3})
        (True, False)
    """
    telling = sum(
        calls for shape, calls in shapes.items() if any(len(n) > 2 or int(n) >= TELLING for n in _SIZE.findall(shape))
    )
    return 2 * telling > sum(shapes.values())


def patterns(shapes: Shapes) -> dict[str, float]:
    """Calls by numbers of inputs and of their dimensions, whatever the sizes.

    Examples:
        >>> patterns({"[[4, 8], [8]]": 1, "[[2, 8], [8]]": 2})
        {'[[1, 1], [1]]': 3.0}
    """
    found = defaultdict[str, float](float)
    for shape, calls in shapes.items():
        found[_SIZE.sub("1", shape)] += calls
    return dict(found)


def _by_inputs(shapes: Shapes) -> dict[tuple[str, ...], float]:
    """Calls by the shapes of their tensors."""
    return _summed(
        (tuple(_TENSOR.findall(shape) if shape.startswith("[") else shape.split(";")), calls)
        for shape, calls in shapes.items()
    )


def _summed(rows: Iterable[tuple[tuple[str, ...], float]]) -> dict[tuple[str, ...], float]:
    found = defaultdict[tuple[str, ...], float](float)
    for inputs, calls in rows:
        found[inputs] += calls
    return dict(found)
