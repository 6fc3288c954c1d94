"""Readers, analyses and rules of other packages, which name them as entry points.

A package offers them in its `pyproject.toml`, e.g.

    [project.entry-points."stepscope.rules"]
    my-rule = "my_package.my_rule"

Analyses and rules are modules (or functions in them) that register what they define when they are imported; a reader
is a class without parameters, or an object, that is a `sources.base.Source`. A script needs none of this: it imports
its own module.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["stepscope.sources", "stepscope.analyses", "stepscope.rules"]

problems: dict[str, str] = {}
"""Why a plug-in could not be loaded, by its group and name, or by the file that lists it."""

FAILURES = (Exception, SystemExit)
"""What the code of others may raise, when it is imported or later: the rest of the analysis goes on."""

_REMEDY = "Update the package that offers it, or uninstall it"


def install() -> None:
    """Load the analyses and rules of installed packages, which register themselves."""
    installed("stepscope.analyses")
    installed("stepscope.rules")


@functools.cache
def installed(group: Group, checked: Callable[[Any], Any] | None = None) -> tuple[Any, ...]:
    """What installed packages offer for a group, loaded; what cannot be loaded is left out and listed in `problems`.

    Args:
        checked: Makes the thing to use from the one that was loaded, and raises an error if that is of no use.
    """
    loaded = []
    for point in _offered():
        if point.group != group:
            continue
        try:
            one = point.load()
            loaded.append(checked(one) if checked else one)
        except FAILURES as error:
            problems[f"{group}: {point.name}"] = (
                f"the plug-in {point.name} ({group} = {point.value}) cannot be loaded: {_said(error)}. {_REMEDY}"
            )
    return tuple(loaded)


def load(path: str) -> Any:
    """Import a module with analyses or rules, or an object in it, by its import path.

    Args:
        path: `package.module`, or `package.module:name`.

    Raises:
        StepscopeError: If it cannot be imported.
    """
    module, _, name = path.partition(":")
    try:
        found = importlib.import_module(module)
        return functools.reduce(getattr, name.split("."), found) if name else found
    except FAILURES as error:
        raise StepscopeError(f"cannot load {path!r}: {_said(error)}. {_remedy(module, error)}") from error


def _remedy(module: str, error: BaseException) -> str:
    """What to do about a module, or an object in it, that cannot be loaded."""
    if module in sys.modules:
        return "The module has been imported: give a name that it defines"
    is_missing = isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}.")
    if is_missing or not all(map(str.isidentifier, module.split("."))):
        return (
            "Give the import path of a Python module, e.g. my_package.my_rules, and check that it is installed or in "
            "PYTHONPATH"
        )
    return "The module was found but fails when it is imported: correct it, or install what it needs"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@functools.cache
def _offered() -> tuple[EntryPoint, ...]:
    """The entry points of packages that have some of ours: reads only the small files in which they are listed."""
    listings: dict[str, Path] = {}
    for folder in map(Path, sys.path):
        for listing in folder.glob("*.dist-info/entry_points.txt"):
            with suppress(OSError):
                if "[stepscope." in listing.read_text(encoding="utf-8", errors="replace"):
                    listings.setdefault(listing.parent.name.partition("-")[0], listing)
    if not listings:
        return ()
    from importlib.metadata import Distribution  # noqa: PLC0415 - slow to import, and hardly anybody has plug-ins

    points: list[EntryPoint] = []
    for listing in listings.values():
        try:
            points += Distribution.at(listing.parent).entry_points
        except Exception as error:
            problems[str(listing)] = f"{listing}: its plug-ins cannot be loaded: {_said(error)}. {_REMEDY}"
    return tuple(sorted(points, key=lambda point: point.name))
