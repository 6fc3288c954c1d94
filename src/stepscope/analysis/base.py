"""How an analysis says what it needs, so that a run can supply it.

An analysis is a pure function of tables and of other analyses' results; its parameters carry their names:

* a parameter named after a table is a `LazyFrame` of that table (with `rank`);
* a parameter named after another analysis is that analysis' result;
* any other parameter is an option with a default.

A parameter annotated `... | None` may be missing; without any other the run raises `Unavailable` with the reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from stepscope.tables import TABLES

Scope = Literal["rank", "job"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Analysis:
    """A registered analysis.

    Args:
        name: The function's name, and the name of its result.
        function: What computes it.
        scope: `rank`: called once a rank with that rank's tables, the results stacked, so that memory does not
            grow with the number of ranks; `job`: called once with the tables of all ranks.
        needs: Parameter name to whether it must be there; tables and analyses only.
        options: Names of the remaining parameters.
    """

    name: str
    function: Callable[..., Any]
    scope: Scope
    needs: dict[str, bool]
    options: tuple[str, ...]


ANALYSES: dict[str, Analysis] = {}


def analysis(scope: Scope) -> Callable[[F], F]:
    """Register a function as an analysis of the given scope."""

    def register(function: F) -> F:
        needs: dict[str, bool] = {}
        options: list[str] = []
        for name, parameter in inspect.signature(function).parameters.items():
            if name in TABLES or name in ANALYSES:
                needs[name] = "None" not in str(parameter.annotation)
            else:
                options.append(name)
        ANALYSES[function.__name__] = Analysis(
            function.__name__, function, scope, needs, tuple(options)
        )
        return function

    return register
