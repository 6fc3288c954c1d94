"""What the parameters of an analysis, a rule or a user's function mean, checked before anything is computed.

A parameter is a table, an analysis or an option. Options are plain data (see `frozen`), so that questions can be
compared and sent to another process.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any

from stepscope.errors import StepscopeError, close_matches
from stepscope.tables import TABLES

DATA = "text, a number, True, False, None, a path, or a tuple or frozen dataclass of these"
"""Allowed types of an option, for messages."""

LIMITS = "limits"
"""The option of an analysis, and the only one of a rule, that holds its limits."""

CHOSEN = "chosen"
"""The option of an analysis with the steps that its answer is about. By default it gets those that the user selected,
and the tables of all steps: for tables without steps, whose rows an analysis assigns to steps by their time."""

_PLAIN = (str, bytes, bool, int, float, type(None), PurePath, Enum)
_SEVERAL = (tuple, list, set, frozenset, range)
_FRAMES = ("LazyFrame", "DataFrame")


@dataclass(frozen=True)
class Parameters:
    """The parameters of a function.

    Args:
        needs: Tables and analyses to supply, and whether each is required: one annotated `... | None` is None if the
            run lacks it.
        options: The other parameters with their defaults.
    """

    needs: Mapping[str, bool]
    options: Mapping[str, Any]


def parameters_of(who: str, function: Callable[..., Any], analyses: Collection[str]) -> Parameters:
    """Sort the parameters of a function into tables, analyses and options.

    Args:
        who: Name of the analysis, rule or function, for messages.
        function: The function.
        analyses: Names of all analyses.

    Raises:
        StepscopeError: If a parameter is none of these; the message names it and suggests close matches.
    """
    needs: dict[str, bool] = {}
    options: dict[str, Any] = {}
    for name, parameter in _signature(who, function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise StepscopeError(f"{who}: parameter `{parameter}` cannot be supplied by name. Name each table it needs")
        if name in TABLES or name in analyses:
            may_lack = any(word in str(parameter.annotation) for word in ("None", "Optional"))
            needs[name] = not may_lack and parameter.default is not None
            continue
        is_frame = any(frame in str(parameter.annotation) for frame in _FRAMES)
        if is_frame or parameter.default is parameter.empty:
            problem = "is a frame" if is_frame else "has no default"
            hint = close_matches(name, [*TABLES, *analyses])
            raise StepscopeError(f"{who}: parameter `{name}` {problem}, but is neither a table nor an analysis. {hint}")
        if not isinstance(parameter.annotation, str) and not _is_data(parameter.annotation):
            text = inspect.formatannotation(parameter.annotation)
            raise StepscopeError(f"{who}: option `{name}` is annotated as {text}. An option must be {DATA}")
        options[name] = frozen(who, name, parameter.default)
    return Parameters(needs, options)


def check_cycles(
    name: str, needs: Callable[[str], Iterable[str]], settled: set[str], chain: tuple[str, ...] = ()
) -> None:
    """Check that an analysis does not need itself.

    Args:
        name: Its name.
        needs: What each analysis needs.
        settled: Analyses known not to need themselves, nor to need one that does; those found to be so are added.
        chain: The analyses that led to it.

    Raises:
        StepscopeError: If it does.
    """
    if name in chain:
        cycle = " -> ".join([*chain[chain.index(name) :], name])
        raise StepscopeError(f"{name}: it needs its own result ({cycle}). Split one of these analyses in two")
    for other in needs(name):
        if other not in settled:
            check_cycles(other, needs, settled, (*chain, name))
    settled.add(name)


RULE_OPTIONS: dict[str, Mapping[str, Any]] = {}
"""Options of the rules and of the verdict, with their defaults. They enter them, as a run knows no rules."""


def check_options(who: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that an analysis, rule or function has the given options, and that limits are of the right kind.

    Raises:
        StepscopeError: If not; the message suggests close matches.
    """
    for option, value in given.items():
        if option not in defaults:
            there = close_matches(option, defaults) if defaults else "It has none"
            raise StepscopeError(f"{who} has no option {option!r}. {there}")
        kind = type(defaults[option])
        if option == LIMITS and is_dataclass(kind) and not isinstance(value, kind):
            wanted = f"{kind.__module__}.{kind.__qualname__}"
            raise StepscopeError(f"{who}: `limits` is {value!r}, not a {wanted}. Make it with advice.limits_from")


def frozen(who: str, option: str, value: Any) -> Any:
    """The value of an option, made immutable: lists become tuples, sets become frozensets.

    Raises:
        StepscopeError: If it is not plain data.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Integral):  # e.g. of NumPy
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, _SEVERAL):
        parts = (frozen(who, option, part) for part in value)
        if isinstance(value, (set, frozenset)):
            return frozenset(parts)
        return value._make(parts) if hasattr(value, "_make") else tuple(parts)
    if _is_frozen(type(value)):
        return replace(
            value, **{one.name: frozen(who, option, getattr(value, one.name)) for one in fields(value) if one.init}
        )
    raise StepscopeError(
        f"{who}: option `{option}` is a {type(value).__name__}. An option must be {DATA}; to use other objects, pass a "
        "function that holds them"
    )


def identity(value: Any) -> Any:
    """A key that is equal only for frozen values of the same type and content: 1, 1.0 and True have different keys."""
    if isinstance(value, float):
        return (float, value.hex())
    if isinstance(value, tuple):
        return (type(value), tuple(map(identity, value)))
    if isinstance(value, frozenset):
        return (frozenset, frozenset(map(identity, value)))
    if is_dataclass(value):
        return (type(value), tuple(identity(getattr(value, one.name)) for one in fields(value)))
    return (type(value), value)


def _signature(who: str, function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function; their annotations are text if one cannot be resolved."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:  # a type that is imported for the type checker alone
        try:
            return inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise StepscopeError(
                f"{who}: its parameters are unknown. Wrap it in a function with named parameters"
            ) from error


def _is_data(annotation: Any) -> bool:
    """Whether values of a type can be options; True if the annotation names no type."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (Any, None, inspect.Parameter.empty) or origin is typing.Literal:
        return True
    if origin in (typing.Union, types.UnionType, typing.Annotated):
        return all(map(_is_data, arguments[:1] if origin is typing.Annotated else arguments))
    kind = annotation if origin is None else origin
    if not isinstance(kind, type):
        return False
    if issubclass(tuple, kind) or issubclass(kind, _SEVERAL):  # a collection that a tuple or list is one of
        return all(_is_data(argument) for argument in arguments if argument is not ...)
    return issubclass(kind, _PLAIN) or _is_frozen(kind)


def _is_frozen(kind: type) -> bool:
    return is_dataclass(kind) and bool(kind.__dataclass_params__.frozen)  # type: ignore[attr-defined]
