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

import polars as pl

from stepscope.tables import TABLES

Scope = Literal["rank", "job"]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Analysis:
    """A registered analysis.

    Args:
        name: The function's name, and the name of its result.
        function: What computes it.
        scope: `rank`: called with the tables of one rank, or of a few (see `together`), the results stacked, so that
            memory does not grow with the number of ranks; `job`: called once with the tables of all ranks.
        together: Of scope `rank`: may be called with the tables of several ranks at once, told apart by `rank`, which
            costs little more than one call where ranks are small. A rank's part of the answer depends on its own
            rows only.
        whole_job: The answer about one rank depends on the others: where a user selects ranks, it is computed over
            all of them and then narrowed.
        passes: Options that it hands on to the answers that it needs, which have options of these names; it may have
            them itself, too.
        as_recorded: It is given the tables as they were recorded. Others find steps in the tables of ranks that mark
            none, where `iterations` is certain of them.
        every_step: It is given all steps, also where the user selects some.
    """

    name: str
    function: Callable[..., Any]
    scope: Scope
    whole_job: bool = False
    together: bool = False
    passes: tuple[str, ...] = ()
    as_recorded: bool = False
    every_step: bool = False

    @property
    def needs(self) -> dict[str, bool]:
        """Parameters that are tables or other analyses' results, and whether each must be there."""
        return {
            name: "None" not in str(parameter.annotation)
            for name, parameter in inspect.signature(self.function).parameters.items()
            if name in TABLES or name in ANALYSES
        }

    @property
    def own_options(self) -> tuple[str, ...]:
        """The remaining parameters."""
        needs = self.needs
        return tuple(name for name in inspect.signature(self.function).parameters if name not in needs)

    @property
    def options(self) -> tuple[str, ...]:
        """The remaining parameters, and what it hands on."""
        return tuple(dict.fromkeys([*self.own_options, *self.passes]))


ANALYSES: dict[str, Analysis] = {}


def ranks_of(table: pl.LazyFrame) -> list[int]:
    """The ranks that a table has rows of, in order."""
    return table.select(pl.col("rank").unique().sort()).collect()["rank"].to_list()


def analysis(
    scope: Scope,
    *,
    whole_job: bool = False,
    together: bool = False,
    passes: tuple[str, ...] = (),
    as_recorded: bool = False,
    every_step: bool = False,
) -> Callable[[F], F]:
    """Register a function as an analysis; for the arguments see `Analysis`."""

    def register(function: F) -> F:
        ANALYSES[function.__name__] = Analysis(
            function.__name__, function, scope, whole_job, together, passes, as_recorded, every_step
        )
        return function

    return register
