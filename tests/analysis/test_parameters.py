"""What an analysis, a rule or a user's function may name in its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest

from stepscope.advice.advise import RULES
from stepscope.advice.finding import per_of
from stepscope.analysis import ANALYSES, registry
from stepscope.analysis.columns import columns
from stepscope.analysis.parameters import frozen, identity, parameters_of
from stepscope.analysis.registry import analysis, find_analysis
from stepscope.errors import StepscopeError

COLUMNS = columns("rank")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses registered by a test are forgotten after it."""
    monkeypatch.setattr(registry, "ANALYSES", dict(ANALYSES))


@dataclass(frozen=True)
class Limits:
    ratio: float = 0.5


@dataclass
class Changeable:
    ratio: float = 0.5


class Kind(Enum):
    FAST = "fast"


def test_parameters_are_tables_analyses_and_options() -> None:
    def busy(kernels: pl.LazyFrame, steps: pl.LazyFrame | None, breakdown: pl.DataFrame, top: int = 3) -> None:
        """Names one of each."""

    found = parameters_of("busy", busy, ANALYSES)

    assert dict(found.needs) == {"kernels": True, "steps": False, "breakdown": True}
    assert dict(found.options) == {"top": 3}


def misspelt_table(kernel: pl.LazyFrame) -> None: ...
def misspelt_optional_table(kernel: pl.LazyFrame | None = None) -> None: ...
def misspelt_analysis(breakdwn: pl.DataFrame) -> None: ...
def without_default(kernels: pl.LazyFrame, top: int) -> None: ...
def with_any_names(**tables: pl.LazyFrame) -> None: ...
def with_a_function(kernels: pl.LazyFrame, key: Callable[[str], str] | None = None) -> None: ...
def with_a_mapping(kernels: pl.LazyFrame, names: dict[str, str] | None = None) -> None: ...
def with_a_changeable_default(kernels: pl.LazyFrame, limits: Any = Changeable()) -> None: ...  # noqa: B008


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (misspelt_table, "misspelt_table: parameter `kernel` is a frame, but is neither.*Did you mean kernels"),
        (misspelt_optional_table, "parameter `kernel` is a frame"),
        (misspelt_analysis, "parameter `breakdwn`.*Did you mean breakdown"),
        (without_default, "without_default: parameter `top` has no default"),
        (with_any_names, "parameter `.*tables.*` cannot be supplied by name"),
        (with_a_function, "option `key` is annotated as .*Callable.*must be text, a number"),
        (with_a_mapping, "option `names` is annotated as .*dict"),
        (with_a_changeable_default, "option `limits` is a Changeable"),
    ],
)
def test_what_cannot_be_supplied_is_refused_when_it_is_registered(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(StepscopeError, match=message):
        analysis("rank", COLUMNS)(function)

    assert function.__name__ not in registry.ANALYSES


def test_functions_that_are_not_registered_are_checked_too() -> None:
    with pytest.raises(StepscopeError, match=r"<lambda>: parameter `kernel` has no default.*Did you mean kernels"):
        find_analysis(lambda kernel: kernel)
    with pytest.raises(StepscopeError, match="its parameters are unknown"):
        find_analysis(min)


def test_a_function_of_a_module_is_looked_through_once_and_no_other_is_kept() -> None:
    def inside(steps: pl.LazyFrame) -> None: ...

    assert find_analysis(per_of) is find_analysis(per_of)
    assert find_analysis(inside) is not find_analysis(inside)


def test_the_same_check_serves_rules() -> None:
    for name, rule in RULES.items():
        assert parameters_of(name, rule.function, ANALYSES).needs

    with pytest.raises(StepscopeError, match=r"idle-time: parameter `idel` is a frame.*Did you mean idle"):
        parameters_of("idle-time", _misspelt_rule, ANALYSES)


def _misspelt_rule(idel: pl.DataFrame) -> Iterator[int]:
    yield idel.height


def test_an_analysis_may_not_need_itself() -> None:
    @analysis("job", COLUMNS)
    def first(kernels: pl.LazyFrame) -> pl.LazyFrame:
        return kernels

    @analysis("job", COLUMNS)
    def second(first: pl.DataFrame) -> pl.DataFrame:
        return first

    def circular(second: pl.DataFrame) -> pl.DataFrame:
        return second

    circular.__name__ = "first"
    with pytest.raises(StepscopeError, match="first: it needs its own result \\(first -> second -> first\\)"):
        analysis("job", COLUMNS)(circular)

    assert registry.ANALYSES["first"].function is first
    assert registry.ANALYSES["second"].function is second


def test_a_name_is_taken_once_but_may_be_defined_again_in_its_own_module() -> None:
    def kernels(steps: pl.LazyFrame) -> pl.LazyFrame:
        return steps

    def breakdown(steps: pl.LazyFrame) -> pl.LazyFrame:
        return steps

    for function, what in ((kernels, "a table"), (breakdown, "an analysis")):
        with pytest.raises(StepscopeError, match=f"there is {what}.*of this name already"):
            analysis("rank", COLUMNS)(function)

    def mine(steps: pl.LazyFrame) -> pl.LazyFrame:
        return steps

    analysis("rank", COLUMNS)(mine)
    assert analysis("rank", COLUMNS)(mine) is mine


def test_options_that_are_handed_on_belong_to_something_needed() -> None:
    def summary(cpu_utilization: pl.DataFrame) -> pl.DataFrame:
        return cpu_utilization

    with pytest.raises(StepscopeError, match="passes option `choosen` on"):
        analysis("rank", COLUMNS, passes=("choosen",))(summary)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([1, [2]], (1, (2,))),
        (range(3), (0, 1, 2)),
        ({1}, frozenset({1})),
        (Path("a"), Path("a")),
        (Limits(0.2), Limits(0.2)),
        (Kind.FAST, Kind.FAST),
        (None, None),
    ],
)
def test_options_are_kept_as_data_that_nobody_changes(given: Any, kept: Any) -> None:
    assert frozen("busy", "top", given) == kept


@pytest.mark.parametrize("value", [pl.DataFrame(), {"a": 1}, Changeable(), object(), print, [object()]])
def test_what_is_no_data_is_refused_as_an_option(value: Any) -> None:
    with pytest.raises(StepscopeError, match=r"busy: option `top` is a \w+. An option must be text, a number"):
        frozen("busy", "top", value)


def test_options_are_the_same_only_if_kind_and_content_are() -> None:
    values = [
        1,
        1.0,
        True,
        "1",
        None,
        (1,),
        (1.0,),
        0.0,
        -0.0,
        Limits(1),
        Limits(1.0),
        frozenset({1}),
        "fast",
        Kind.FAST,
    ]

    assert len({identity(value) for value in values}) == len(values)
    assert identity(float("nan")) == identity(float("nan"))


def test_annotations_of_data_are_options() -> None:
    def wanted(
        kernels: pl.LazyFrame,
        chosen: str | list[int] | None = None,
        unit: Literal["ms", "us"] = "ms",
        limits: Limits = Limits(),
        where: tuple[Path, ...] = (),
    ) -> pl.LazyFrame:
        return kernels

    assert list(parameters_of("wanted", wanted, ANALYSES).options) == ["chosen", "unit", "limits", "where"]
