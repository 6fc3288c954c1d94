"""How an analysis declares what it needs, so that a run can supply it.

An analysis is a pure function of tables and of other analyses' results; its parameters carry their names:

* a parameter named after a table is a `LazyFrame` of that table (with `rank`);
* a parameter named after another analysis is that analysis' result;
* a parameter named after what is prepared for several analyses (`prepared`) is a function that gives it;
* any other parameter is an option with a default.

A parameter annotated `... | None` may be missing; if any other is, the run raises `Unavailable` with the reason.
Registering an analysis checks its parameters (`parameters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any, Literal, TypeAlias, TypeVar

import polars as pl

from stepscope.analysis.parameters import Parameters, check_cycles, parameters_of
from stepscope.analysis.rank_lists import listed_ranks
from stepscope.errors import StepscopeError, close_matches
from stepscope.tables import TABLES
from stepscope.tables.base import Column, schema_of

Scope = Literal["rank", "job"]
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

Prepared: TypeAlias = Callable[[], T]
"""Gives what is prepared: made when it is first called for, as not every answer needs it."""

DIGITS = 12
"""Significant digits of fractions in an answer, chosen by us: more than any measurement has. The last of a float's 16
depend on the order in which Polars adds and on how rows are cut into blocks, so they would differ between calls."""

_ONE_RANK = ("rank", "rank_a", "rank_b", "source", "destination")
"""Columns that name one rank, if they are numbers."""

_CUT = (1e-9, 1e15)
"""Fractions of this size are cut; powers of ten are exact for them."""


@dataclass(frozen=True)
class Analysis:
    """A registered analysis.

    Args:
        name: The function's name, and the name of its result.
        function: The function that computes it.
        scope: `rank`: called with the tables of one rank, or of a few (see `together`), and the results are stacked, so
            that memory does not grow with the number of ranks; `job`: called once with the tables of all ranks.
        columns: The columns of its result, in order.
        together: Scope `rank` only: may be called with the tables of several ranks at once (column `rank`), which costs
            little more than one call if ranks are small. A rank's part of the answer depends on its own rows only. If
            some have no answer, it raises `Unavailable` and names them (`of`), and is called again without them; where
            it names none, it is called for each rank alone.
        whole_job: Scope `job` only: the answer about one rank depends on the others. If a user selects ranks, it is
            computed over all ranks and then narrowed.
        across_steps: The answer about one step depends on the others. If a user selects steps, it is computed over all
            steps and then narrowed.
        nothing: Scope `rank` only: why ranks without rows have no answer; if an analysis raises it, it is of all its
            ranks. Default: no rows are an answer, too.
        passes: Options that it passes on to the analyses that it needs, which have options of these names; it may also
            use them itself.
        as_recorded: It gets the tables as recorded. Other analyses get iterations as steps for ranks that mark none, if
            `iterations` is certain of them.
        every_step: It is asked about all steps even if the user selects some; so are the analyses that it needs.
        is_prepared: It is no answer but what answers are computed with; see `prepared`.
    """

    name: str
    function: Callable[..., Any]
    scope: Scope
    columns: tuple[Column, ...] = ()
    whole_job: bool = False
    together: bool = False
    nothing: str = ""
    passes: tuple[str, ...] = ()
    as_recorded: bool = False
    every_step: bool = False
    across_steps: bool = False
    is_prepared: bool = False

    @cached_property
    def parameters(self) -> Parameters:
        """Its parameters, sorted into tables, analyses and options.

        Raises:
            StepscopeError: If one is neither a table nor an analysis nor an option.
        """
        return parameters_of(self.name, self.function, {*ANALYSES, *PREPARED})

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        """Type of each column of the result, in order."""
        return schema_of(self.columns)

    def checked(self, result: Any) -> Any:
        """The result, if it has the declared columns in their order, with values of the declared types.

        A type that can be cast without loss, such as that of an empty column, is cast to the declared one. A function
        that is not registered declares nothing, so its result is not checked.

        Raises:
            TypeError: If it is not a frame, or has other columns or types: a bug in the analysis.
        """
        if not self.columns or result is None:
            return result
        if not isinstance(result, pl.DataFrame):
            raise TypeError(f"analysis {self.name} returned a {type(result).__name__}, not a frame")
        if result.schema == self.schema:
            return self._with_certain_digits(result)
        if result.columns != list(self.schema):
            missing = [name for name in self.schema if name not in result.columns]
            more = [name for name in result.columns if name not in self.schema]
            what = f"lacks {missing}" if missing else f"has {more} as well" if more else "is in another order"
            raise TypeError(
                f"the result of analysis {self.name} {what}. Its columns are declared as {list(self.schema)}"
            )
        return self._with_certain_digits(pl.DataFrame([self._cast(column) for column in result.get_columns()]))

    def _with_certain_digits(self, result: pl.DataFrame) -> pl.DataFrame:
        """The result with its fractions cut to `DIGITS` digits."""
        return result.with_columns(self._fractions) if self._fractions and result.height else result

    @cached_property
    def _fractions(self) -> list[pl.Expr]:
        return [_certain(name) for name, dtype in self.schema.items() if dtype == pl.Float64]

    def _cast(self, column: pl.Series) -> pl.Series:
        dtype = self.schema[column.name]
        if column.dtype == dtype:
            return column
        if _is_alike(column.dtype, dtype):
            cast: pl.Series = column.cast(dtype, strict=False)
            if cast.cast(column.dtype).equals(column):
                return cast
        raise TypeError(f"analysis {self.name} returned `{column.name}` as {column.dtype}; declared is {dtype}")

    def of_ranks(self, answer: pl.DataFrame, ranks: Sequence[int]) -> pl.DataFrame:
        """The rows of an answer about the whole job that are about some ranks.

        Rows may name one rank (`rank`), the two ends of a link (`rank_a`, `rank_b`, or `source`, `destination` if
        these are numbers) or several (`ranks`, if that is a text); rows that name none are about all.
        """
        one = [name for name in _ONE_RANK if self.schema.get(name, pl.String) != pl.String]
        named = [pl.col(name).is_in(ranks) for name in one]
        if self.schema.get("ranks") == pl.String:
            named.append(listed_ranks().list.set_intersection(pl.lit(ranks, pl.List(pl.Int32))).list.len() > 0)
        return answer.filter(pl.any_horizontal(named)) if named else answer

    @property
    def needs(self) -> Mapping[str, bool]:
        """Parameters that are tables or other analyses' results, and whether each is required."""
        return self.parameters.needs

    @property
    def others(self) -> list[Analysis]:
        """The analyses whose results it needs or uses, and what is prepared for it."""
        return [needed(name) for name in self.needs if name not in TABLES]

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """Its own options and those it passes on, with their defaults."""
        handed = {name: other.options[name] for other in self.others for name in self.passes if name in other.options}
        return {**handed, **self.parameters.options}

    @cached_property
    def tables(self) -> frozenset[str]:
        """The tables of a rank on which its answer about that rank depends."""
        own = frozenset(name for name in self.needs if name in TABLES)
        return own.union(*(other.tables for other in self.others if other.scope == "rank"))

    @cached_property
    def closure(self) -> tuple[Analysis, ...]:
        """All analyses on which its answer depends, each after those that it needs, and itself as the last."""
        used: dict[str, Analysis] = {}
        for other in [*self.others, *([] if self.as_recorded else [ANALYSES["iterations"]])]:
            used.update((one.name, one) for one in other.closure)
        return (*used.values(), self)


def _is_alike(found: pl.DataType, declared: pl.DataType) -> bool:
    """Whether values of one type may be values of the other."""
    if isinstance(found, pl.List) and isinstance(declared, pl.List):
        return _is_alike(pl.Series(dtype=found.inner).dtype, pl.Series(dtype=declared.inner).dtype)
    return found == pl.Null or (found.is_numeric() and declared.is_numeric())


ANALYSES: dict[str, Analysis] = {}
PREPARED: dict[str, Analysis] = {}
"""What several analyses compute with; see `prepared`."""
_unchecked: list[Analysis] | None = []
"""Analyses of this package, which may name others registered later; None once all are registered."""


def find_analysis(question: str | Callable[..., Any]) -> Analysis:
    """The registered analysis of a name or function; any other function is called once, for the whole job.

    Raises:
        StepscopeError: If there is no analysis of this name, or a parameter of the function is unknown.
    """
    if isinstance(question, str):
        if question not in ANALYSES:
            raise StepscopeError(f"there is no analysis {question!r}. {close_matches(question, ANALYSES)}")
        return ANALYSES[question]
    name = getattr(question, "__name__", type(question).__name__)
    registered = ANALYSES.get(name)
    if registered is not None and registered.function is question:
        return registered
    lasts = isinstance(question, FunctionType) and "<" not in question.__qualname__  # others may hold much alive
    return _kept_of(question, len(ANALYSES)) if lasts else _of(question)


def _of(function: Callable[..., Any]) -> Analysis:
    """What is asked by a function that is not registered."""
    name = getattr(function, "__name__", type(function).__name__)
    found = Analysis(f"{getattr(function, '__module__', None)}.{name}", function, "job")
    _ = found.parameters
    return found


@lru_cache(maxsize=1000)
def _kept_of(function: Callable[..., Any], _registered: int) -> Analysis:
    """The same for a function of a module, looked through once, unless more analyses are registered meanwhile: each
    part of a page asks some, and rules are such functions."""
    return _of(function)


def needed(name: str) -> Analysis:
    """The analysis, or what is prepared, that a parameter of an analysis names."""
    return ANALYSES[name] if name in ANALYSES else PREPARED[name]


def check_registered() -> None:
    """Check the analyses of this package, now that all of them are registered; see `analysis`."""
    global _unchecked
    unchecked, _unchecked = _unchecked or [], None
    settled: set[str] = set()
    for one in unchecked:
        _check(one, settled)


def ranks_of(table: pl.LazyFrame) -> list[int]:
    """The ranks that have rows in a table, in order."""
    return table.select(pl.col("rank").unique().sort()).collect()["rank"].to_list()


def without_rows(ranks: Iterable[int], rows: pl.DataFrame) -> list[int]:
    """Those of some ranks that have no rows."""
    having = {*rows["rank"].unique()}
    return [rank for rank in ranks if rank not in having]


def analysis(
    scope: Scope,
    columns: tuple[Column, ...],
    *,
    whole_job: bool = False,
    together: bool = False,
    nothing: str = "",
    passes: tuple[str, ...] = (),
    as_recorded: bool = False,
    every_step: bool = False,
    across_steps: bool = False,
) -> Callable[[F], F]:
    """Register a function as an analysis; for the arguments see `Analysis`.

    Raises:
        StepscopeError: If a parameter is unknown, it needs itself, or passes an option that no analysis it needs has;
            or if an analysis of scope `rank` has no column `rank`, or compares ranks.
    """

    def register(function: F) -> F:
        name = function.__name__
        added = Analysis(
            *(name, function, scope, columns, whole_job, together, nothing),
            *(passes, as_recorded, every_step, across_steps),
        )
        before = ANALYSES.get(name)
        is_taken = name in TABLES or name in PREPARED
        if is_taken or (before is not None and before.function.__module__ != function.__module__):
            what = "a table" if before is None else f"an analysis (of {before.function.__module__})"
            raise StepscopeError(f"{name}: there is {what} of this name already. Choose another name")
        if _unchecked is None:
            _check(added, set())
        else:
            _unchecked.append(added)
        ANALYSES[name] = added
        if before is not None:
            _forget_dependants()
        return function

    return register


def prepared(function: F) -> F:
    """Register what several analyses compute with, e.g. the graph of a job, so that it is made once for all of them.

    The function is supplied like an analysis of the whole job, without options. What it gives is any object; nobody
    changes it, it is shown to nobody, and kept in memory only. A parameter of its name is a function that gives it.
    What it needs is asked before: where that has no answer, who names it has none either, whether it is called or not.
    """
    name = function.__name__
    if name in TABLES or name in ANALYSES:
        raise StepscopeError(f"{name}: there is a table or an analysis of this name already. Choose another name")
    PREPARED[name] = Analysis(name, function, "job", whole_job=True, is_prepared=True)
    return function


def _forget_dependants() -> None:
    """Forget what analyses know of those that they need: one was replaced."""
    for one in (*ANALYSES.values(), *PREPARED.values()):
        for known in ("closure", "options", "tables"):
            one.__dict__.pop(known, None)


def _check(added: Analysis, settled: set[str]) -> None:
    """Check the parameters and columns of an analysis; for `settled` see `check_cycles`."""
    if added.scope == "rank" and (added.whole_job or all(column.name != "rank" for column in added.columns)):
        problem = "compares ranks (whole_job)" if added.whole_job else "declares no column `rank`"
        raise StepscopeError(f"{added.name}: it is asked for each rank, but {problem}")

    def needs(name: str) -> Iterable[str]:
        one = added if name == added.name else needed(name)
        return [other for other in one.needs if other not in TABLES]

    check_cycles(added.name, needs, settled)
    for option in added.passes:
        if not any(option in other.options for other in added.others):
            raise StepscopeError(f"{added.name}: it passes option `{option}` on, which no analysis that it needs has")


def _certain(name: str) -> pl.Expr:
    """A column's fractions cut to `DIGITS` digits; whole numbers stay as they are."""
    value = pl.col(name)
    is_fraction = value.abs().is_between(*_CUT) & (value != value.floor())
    return pl.when(is_fraction).then(value.round_sig_figs(DIGITS)).otherwise(value).alias(name)
