"""How a comparison declares what it needs of both sides, so that a pair can supply it.

A comparison is a pure function. Its parameters carry names:

* a parameter named after a table, an analysis or a question about one side (`sides.py`) is `Sides`: what the base and
  the new side answer, as frames;
* a parameter named after another comparison is that comparison's result;
* any other parameter is an option with a default.

A side of a parameter annotated `... | None` may be missing, then both are None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import polars as pl

from stepscope.analysis.parameters import Parameters, parameters_of
from stepscope.analysis.registry import ANALYSES, Analysis, find_analysis
from stepscope.errors import StepscopeError, close_matches
from stepscope.tables import TABLES
from stepscope.tables.base import Column

F = TypeVar("F", bound=Callable[..., Any])


class Sides(NamedTuple):
    """What both sides answer."""

    base: pl.DataFrame
    new: pl.DataFrame


SIDE_QUESTIONS: dict[str, Callable[..., Any]] = {}
"""Questions about one side that only comparisons ask, by name."""


WITH_OPTIONS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "side_calls": ("rank_calls", {"by_step": True, "with_first": True}),
}
"""Answers of analyses with other options than the default ones, by the name that comparisons have for them."""


def side_question(function: F) -> F:
    """Register a function of tables and analyses that is asked about each side."""
    SIDE_QUESTIONS[function.__name__] = function
    return function


@dataclass(frozen=True)
class Comparison:
    """A registered comparison.

    Args:
        name: The function's name, and the name of its result.
        function: The function that computes it.
        columns: The columns of its result, in order.
    """

    name: str
    function: Callable[..., pl.DataFrame]
    columns: tuple[Column, ...]

    @cached_property
    def parameters(self) -> Parameters:
        """Its parameters: those that a pair supplies, and its options.

        Raises:
            StepscopeError: If one is neither.
        """
        known = {*ANALYSES, *SIDE_QUESTIONS, *WITH_OPTIONS, *COMPARISONS}
        return parameters_of(self.name, self.function, known)

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        return self.parameters.options

    @cached_property
    def closure(self) -> tuple[Analysis | Comparison, ...]:
        """All analyses and comparisons on which its answer depends, itself as the last."""
        used: dict[str, Analysis | Comparison] = {}
        for name in self.parameters.needs:
            if name in TABLES:
                continue
            question, _ = WITH_OPTIONS.get(name, (SIDE_QUESTIONS.get(name, name), {}))
            other = COMPARISONS[name] if name in COMPARISONS else find_analysis(question)
            used.update((one.name, one) for one in other.closure)
        return (*used.values(), self)

    def checked(self, result: pl.DataFrame) -> pl.DataFrame:
        """The result, if it has the declared columns.

        Raises:
            TypeError: If it has others: a bug in the comparison.
        """
        found: pl.DataFrame = Analysis(self.name, self.function, "job", self.columns).checked(result)
        return found


COMPARISONS: dict[str, Comparison] = {}


def comparison(columns: tuple[Column, ...]) -> Callable[[F], F]:
    """Register a function as a comparison with these columns.

    Raises:
        StepscopeError: If there is something else of this name.
    """

    def register(function: F) -> F:
        name = function.__name__
        if name in TABLES or name in ANALYSES:
            raise StepscopeError(f"{name}: there is a table or an analysis of this name already. Choose another name")
        COMPARISONS[name] = Comparison(name, function, columns)
        return function

    return register


def find_comparison(name: str) -> Comparison:
    """The registered comparison of a name.

    Raises:
        StepscopeError: If there is none.
    """
    if name not in COMPARISONS:
        raise StepscopeError(f"there is no comparison {name!r}. {close_matches(name, COMPARISONS)}")
    return COMPARISONS[name]
