"""Limits: frozen dataclasses whose fields declare their unit and source, and how they are overridden.

A file of limits is TOML with a table for each rule or analysis, e.g.

    [input-stages]
    host_empty_ratio = 0.2
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from stepscope.errors import StepscopeError, close_matches

T = TypeVar("T", bound=float)


def limit(default: T, unit: str, source: str) -> T:
    """A field of a dataclass of limits.

    Args:
        unit: Its unit, or what it is a share of.
        source: Where the value comes from.
    """
    return field(default=default, metadata={"unit": unit, "source": source})


def described(limits: Any) -> list[dict[str, Any]]:
    """Name (`limit`), `value`, `unit` and `source` of each limit of a set."""
    return [
        {
            "limit": one.name,
            "value": getattr(limits, one.name),
            "unit": one.metadata.get("unit", ""),
            "source": one.metadata.get("source", ""),
        }
        for one in fields(limits)
    ]


def read_limits(file: Path) -> dict[str, Any]:
    """The tables of a limits file, unchecked.

    Raises:
        StepscopeError: If it cannot be read or is not valid TOML.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415 - few commands get a file of limits
    else:
        import tomli as tomllib  # noqa: PLC0415
    try:
        with file.open("rb") as opened:
            content: dict[str, Any] = tomllib.load(opened)
    except OSError as error:
        raise StepscopeError(f"{file}: cannot read the limits: {error.strerror or error}. Check the path") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StepscopeError(
            f"{file}: is not valid TOML: {error}. Write a table for each rule, e.g. [idle-time], with its limits, "
            "e.g. idle_ratio = 0.2"
        ) from error
    return content


def overridden(known: Mapping[str, Any], changes: Mapping[str, Any], where: str = "limits") -> dict[str, Any]:
    """The sets of limits with some values changed.

    Args:
        known: Rule or analysis to its set with the default values.
        changes: Rule or analysis to limit to value, or to a whole set of limits.
        where: Origin of the changes, for errors.

    Raises:
        StepscopeError: If a rule or limit is unknown, or a value is not a number of at least 0.
    """
    sets: dict[str, Any] = {}
    for name, values in changes.items():
        if name not in known:
            raise StepscopeError(
                f"{where}: there is no rule or analysis {name!r} with limits. {close_matches(name, known)}"
            )
        default = known[name]
        if type(values) is type(default) and is_dataclass(values):
            sets[name] = values
        elif isinstance(values, Mapping):
            sets[name] = replace(default, **{key: _checked(default, name, key, v, where) for key, v in values.items()})
        else:
            raise StepscopeError(
                f"{where}: {name} is {values!r}, not a table of limits. Write [{name}] on its own line"
            )
    return sets


def _checked(default: Any, name: str, key: str, value: Any, where: str) -> int | float:
    """The value, checked for a limit."""
    there = {one.name for one in fields(default)}
    if key not in there:
        raise StepscopeError(f"{where}: {name} has no limit {key!r}. {close_matches(key, there)}")
    whole = isinstance(getattr(default, key), int)
    if whole and isinstance(value, float) and value.is_integer():
        value = int(value)
    wanted = "a whole number" if whole else "a number"
    fits = isinstance(value, int) if whole else isinstance(value, (int, float))
    if not fits or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise StepscopeError(f"{where}: {name}.{key} is {value!r}. Write {wanted}, 0 or above")
    return value if whole else float(value)
