"""Engines by name, for the command line and the environment."""

from __future__ import annotations

import os
from functools import cache

from stepscope.errors import StepscopeError
from stepscope.run.engine.base import Engine
from stepscope.run.engine.processes import Processes
from stepscope.run.engine.ray import Ray
from stepscope.run.engine.threads import Threads

VARIABLE = "STEPSCOPE_ENGINE"
FORMS = "threads, processes, ray, ray://HOST:PORT or ray://auto"
"""The names; a number of workers may follow all but addresses: `processes:4`."""


def engine_of(engine: Engine | str | None, option: str = "engine") -> Engine | None:
    """An engine, given itself or by name; by default that of `STEPSCOPE_ENGINE`, None if that is not set.

    Engines of one name are one engine, which ends with this process. `option` is what a message calls the argument.

    Raises:
        StepscopeError: If there is no such engine.
    """
    if not isinstance(engine, str) and engine is not None:
        return engine
    name = (os.environ.get(VARIABLE) or "" if engine is None else engine).strip()
    if engine is None and not name:
        return None
    found = _named(name)
    if found is None:
        raise StepscopeError(f"{VARIABLE if engine is None else option}: {name!r} is not an engine. Give {FORMS}")
    return found


@cache
def _named(name: str) -> Engine | None:
    kind, _, rest = name.partition(":")
    if kind == "ray" and rest.startswith("//") and len(rest) > 2:
        return Ray(rest[2:].rstrip("/"))
    count = int(rest) if rest.isdecimal() and len(rest) < 5 else None
    if (rest and not count) or kind not in ("threads", "processes", "ray"):
        return None
    return Threads(count) if kind == "threads" else Processes(count) if kind == "processes" else Ray(count=count)
