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
from pathlib import Path
from typing import Any, Literal

from stepscope.errors import StepscopeError

Group = Literal["stepscope.sources", "stepscope.analyses", "stepscope.rules"]

problems: dict[str, str] = {}
"""Why an entry point could not be loaded, by its group and name."""


def install() -> None:
    """Load the analyses and rules of installed packages, which register themselves."""
    installed("stepscope.analyses")
    installed("stepscope.rules")


@functools.cache
def installed(group: Group) -> tuple[Any, ...]:
    """What installed packages offer for a group, loaded; what cannot be loaded is left out and listed in `problems`."""
    if not _any_offered():
        return ()
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow to import, and hardly anybody has plug-ins

    loaded = []
    for point in sorted(entry_points(group=group), key=lambda p: (p.name, p.value)):
        try:
            loaded.append(point.load())
        except Exception as error:  # whatever a stranger's module raises, the rest of the analysis goes on
            why = f"{type(error).__name__}: {error}. Update the package that offers it, or uninstall it"
            problems[f"{group}: {point.name}"] = (
                f"the plug-in {point.name} ({group} = {point.value}) cannot be loaded: {why}"
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
    except Exception as error:
        raise StepscopeError(
            f"cannot load {path!r}: {type(error).__name__}: {error}. Give the import path of a Python module, e.g. "
            "my_package.my_rules, and check that it is installed or in PYTHONPATH"
        ) from error


@functools.cache
def _any_offered() -> bool:
    """Whether any installed package names an entry point of ours: reads the small files in which they are listed."""
    for folder in map(Path, sys.path):
        for listing in folder.glob("*.dist-info/entry_points.txt"):
            try:
                if "[stepscope." in listing.read_text(encoding="utf-8", errors="replace"):
                    return True
            except OSError:
                continue
    return False
