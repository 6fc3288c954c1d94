"""Whether a function or cell trains or only evaluates, judged from its code and the code that it calls.

A compiled function (`ms.jit`, graph mode) runs as a whole; nothing inside can be observed. Whether it trains is
therefore read from the names that its code uses and what they refer to: an optimizer, a gradient, other functions.
"""

from __future__ import annotations

import dis
import functools
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST = 5000
"""Maximum of objects inspected, breadth first; optimizers are near the surface, layers of large nets do not matter."""
_GRADIENTS = "mindspore.ops.function.grad"
Reference = tuple[Any, frozenset[str]]
"""An object that code refers to, and the names of attributes that this code uses."""


@dataclass
class CodeContents:
    """What the code of a function or cell uses, directly or in what it calls."""

    cell: bool = False
    gradient: bool = False
    optimizer: bool = False


@dataclass(frozen=True)
class FrameworkClasses:
    """Classes of the framework."""

    cell: type
    optimizers: tuple[type, ...]
    gradient: type
    plain: tuple[type, ...]
    """Types that contain nothing of interest: tensors, operators."""


def inspect_code(root: Any, kinds: FrameworkClasses) -> CodeContents:
    """Inspect what `root`, a function, method or cell, refers to, without running its code.

    An optimizer that is passed as an argument, or looked up by a computed name, is not found.
    """
    found = CodeContents()
    seen: set[tuple[int, int]] = set()
    waiting: deque[Reference] = deque([(root, frozenset())])
    kept = []  # ids in `seen` must not be given to other objects meanwhile
    while waiting and len(seen) < MOST and not found.optimizer:
        thing, names = waiting.popleft()
        if (id(thing), hash(names)) in seen or _settles(thing, kinds, found):
            continue
        seen.add((id(thing), hash(names)))
        kept.append(thing)
        waiting.extend(_next(thing, names, kinds, found))
    return found


def _settles(thing: Any, kinds: FrameworkClasses, found: CodeContents) -> bool:
    """Record in `found` what `thing` is; return whether nothing below it needs to be inspected."""
    if isinstance(thing, kinds.optimizers):
        found.optimizer = True
        return True
    if isinstance(thing, kinds.gradient):
        found.gradient = True
        return True
    if isinstance(thing, types.FunctionType) and (thing.__module__ or "").startswith(_GRADIENTS):
        found.gradient = True  # `value_and_grad` itself, or what it made: go on, its closure holds the function
    return thing is None or isinstance(thing, (str, bytes, int, float, *kinds.plain))


def _next(thing: Any, names: frozenset[str], kinds: FrameworkClasses, found: CodeContents) -> Iterator[Reference]:
    if isinstance(thing, types.FunctionType):
        yield from _of_function(thing, None)
    elif isinstance(thing, types.MethodType) and isinstance(thing.__func__, types.FunctionType):
        yield from _of_function(thing.__func__, thing.__self__)
    elif isinstance(thing, functools.partial):
        yield from ((part, names) for part in (thing.func, *thing.args, *thing.keywords.values()))
    elif isinstance(thing, (tuple, list)):
        yield from ((part, names) for part in thing[:MOST])
    elif isinstance(thing, dict):
        yield from ((part, names) for part in list(thing.values())[:MOST])
    elif isinstance(thing, type):
        return
    else:
        if isinstance(thing, kinds.cell):
            found.cell = True
            yield getattr(thing, "construct", None), names
        yield from ((part, names) for part in _attributes(thing, names))


def _of_function(function: types.FunctionType, owner: Any) -> Iterator[Reference]:
    used = list(_used(function.__code__))
    names = frozenset(name for name, is_global in used if not is_global)
    yield getattr(function, "__wrapped__", None), names
    if owner is not None:
        wrapped = getattr(function, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):
            yield types.MethodType(wrapped, owner), names
        yield from ((part, names) for part in _attributes(owner, names))
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents, names
        except ValueError:  # not assigned yet
            continue
    if not (function.__module__ or "").startswith("mindspore."):
        space = function.__globals__
        yield from ((space[name], names) for name, is_global in used if is_global and name in space)


def _used(code: types.CodeType) -> Iterator[tuple[str, bool]]:
    """Global names (with True) and attributes that the code uses, functions inside it included.

    Compiled code lists both kinds of names together (`co_names`, as `inspect.getclosurevars` does); only instructions
    tell them apart, and the source need not be there. Without that, `model.train(...)` in an evaluation would count as
    a call of a global function `train`.
    """
    names = set(code.co_names)
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, str) and instruction.argval in names:
            yield str(instruction.argval), instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _used(constant)


def _attributes(thing: Any, names: frozenset[str]) -> Iterator[Any]:
    """The attributes of `thing` with these names; properties are not evaluated."""
    space = getattr(thing, "__dict__", None) or {}
    cells = space.get("_cells") or {}
    for name in names:
        if name in space:
            yield space[name]
        elif name in cells:
            yield cells[name]
        elif not isinstance(thing, types.ModuleType):
            for base in type(thing).__mro__:
                member = vars(base).get(name)
                if isinstance(member, types.FunctionType):
                    yield types.MethodType(member, thing)
                    break
