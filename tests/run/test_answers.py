"""What makes two questions the same one, and what a caller gets and keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Optional

import polars as pl
import pytest

from builders import make_run, toy_slices
from stepscope import Run, StepscopeError, Unavailable
from stepscope.analysis import ANALYSES, registry
from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.run import Cancellation, Threads, watched


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Analyses registered by a test are forgotten after it."""
    monkeypatch.setattr(registry, "ANALYSES", dict(ANALYSES))


def test_each_lambda_has_its_own_answer() -> None:
    run = make_run(ranks=2)

    def kernels(column: str):  # type: ignore[no-untyped-def]
        return lambda kernels: kernels.select(pl.col(column).n_unique()).collect().item()

    assert [run.analyse(lambda kernels: 1), run.analyse(lambda kernels: 2)] == [1, 2]
    assert [run.analyse(kernels("rank")), run.analyse(kernels("name"))] == [2, 2]


def test_a_function_that_is_defined_anew_is_asked_anew() -> None:
    run = make_run(ranks=1)

    def count(kernels: pl.LazyFrame) -> int:
        return 1

    first = run.analyse(count)

    def count(kernels: pl.LazyFrame) -> int:  # type: ignore[no-redef]
        return 2

    assert (first, run.analyse(count)) == (1, 2)


def test_what_depends_on_an_analysis_that_is_defined_anew_is_asked_anew() -> None:
    run = make_run(ranks=1)

    @analysis("rank", columns("rank count"))
    def base(ranks: pl.LazyFrame) -> pl.LazyFrame:
        return ranks.select("rank", count=pl.lit(1))

    @analysis("rank", columns("rank count"))
    def twice(base: pl.DataFrame) -> pl.DataFrame:
        return base.with_columns(pl.col("count") * 2)

    before = run.analyse(twice)["count"].item()

    @analysis("rank", columns("rank count"))
    def base(ranks: pl.LazyFrame) -> pl.LazyFrame:  # type: ignore[no-redef]  # noqa: F811
        return ranks.select("rank", count=pl.lit(5))

    assert (before, run.analyse("twice")["count"].item()) == (2, 10)


@dataclass(frozen=True)
class Pair:
    first: int
    second: tuple[str, ...] = ()


class Named(NamedTuple):
    first: int
    second: tuple[str, ...] = ()


def test_options_are_compared_by_kind_and_content() -> None:
    run, calls = make_run(ranks=1), []

    def echo(ranks: pl.LazyFrame, value: object = None) -> str:
        calls.append(value)
        return repr(value)

    distinct = [None, 1, 1.0, True, "1", (1,), Pair(1), Pair(1, ("a",)), Named(1)]
    again = [None, 1, 1.0, True, "1", [1], Pair(1), Pair(1, ("a",)), Named(1, [])]  # type: ignore[arg-type]

    assert [run.analyse(echo, value=value) for value in distinct] == [repr(value) for value in distinct]
    assert [run.analyse(echo, value=value) for value in again] == [repr(value) for value in distinct]
    assert run.analyse(echo) == "None"
    assert calls == distinct


def test_defaults_are_frozen_as_values_are() -> None:
    def echo(ranks: pl.LazyFrame, listed=[1, [2]], unordered={3}) -> object:  # type: ignore[no-untyped-def]  # noqa: B006
        return listed, unordered

    assert make_run().analyse(echo) == ((1, (2,)), frozenset({3}))
    assert make_run().analyse(partial(echo, listed=[7])) == ((7,), frozenset({3}))


def test_an_option_may_have_any_name() -> None:
    def echo(ranks: pl.LazyFrame, question: int = 1, self: int = 2) -> object:
        return question, self

    assert make_run().analyse(echo, question=3, self=4) == (3, 4)


def test_an_option_that_is_no_data_is_refused() -> None:
    def echo(ranks: pl.LazyFrame, value: object = None) -> object:
        return value

    with pytest.raises(StepscopeError, match=r"echo: option `value` is a DataFrame.*pass a function that holds"):
        make_run().analyse(echo, value=pl.DataFrame())


def test_selections_and_limits_have_their_own_answers_and_share_one_memory() -> None:
    run, calls = make_run(ranks=4), []

    def seen(kernels: pl.LazyFrame) -> tuple[list[int], list[int]]:
        calls.append(1)
        rows = kernels.select("rank", "step").collect()
        return sorted(set(rows["rank"])), sorted(set(rows["step"]))

    for _ in range(2):
        assert run.analyse(seen) == ([0, 1, 2, 3], [1, 2, 3])
        assert run.select(ranks="1-2").analyse(seen) == ([1, 2], [1, 2, 3])
        assert run.select(steps=[2]).analyse(seen) == ([0, 1, 2, 3], [2])
        assert run.with_options({"breakdown": {"whole_recording": True}}).analyse(seen)[0] == [0, 1, 2, 3]
    assert len(calls) == 3
    assert run.answers_bytes == run.select(ranks=[0]).answers_bytes


def test_limits_are_part_of_the_question_where_they_decide() -> None:
    run = make_run(ranks=4, late={2: 30_000_000})
    default = registry.ANALYSES["suspect_costs"].options["limits"]
    strict = type(default)(cost_ratio=0.9)

    assert run.analyse("slow_ranks").height == 1
    assert run.with_limits({"suspect_costs": strict}).analyse("slow_ranks").height == 0
    assert run.analyse("suspect_costs", limits=strict).height == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run.analyse("breakdown").drop_in_place("rank"),
        lambda run: run.analyse("breakdown")["rank"].scatter(0, 9),
        lambda run: run.analyse(lambda breakdown: breakdown.drop_in_place("rank")),
        lambda run: run.analyse(parts)[0].drop_in_place("rank"),
        lambda run: run.analyse(parts)[1]["frames"][0].drop_in_place("rank"),
        lambda run: run.analyse(parts)[1]["frames"].clear(),
        lambda run: run.analyse(parts)[1].clear(),
        lambda run: run.issues.drop_in_place("rank"),
    ],
)
def test_nobody_can_change_an_answer(change: Callable[[Run], object]) -> None:
    run = make_run(ranks=2)
    before = repr((run.analyse("breakdown"), run.analyse(parts), run.issues))

    change(run)

    assert repr((run.analyse("breakdown"), run.analyse(parts), run.issues)) == before


def parts(breakdown: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, list[pl.DataFrame]]]:
    return breakdown, {"frames": [breakdown]}


def test_generators_are_collected_and_what_is_async_is_refused() -> None:
    def tables(ranks: pl.LazyFrame) -> Iterator[pl.LazyFrame]:
        yield ranks.select("rank")

    async def later(ranks: pl.LazyFrame) -> int:
        return 1

    async def each_later(ranks: pl.LazyFrame) -> AsyncIterator[int]:
        yield 1

    assert [table.height for table in make_run(ranks=2).analyse(tables)] == [2]
    for function in (later, each_later, lambda ranks, step=0: later(ranks)):
        with pytest.raises(StepscopeError, match=r"is async, .* Write it as a plain `def`"):
            make_run().analyse(function)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"slow_rnks": {}}, "no analysis or rule 'slow_rnks'. Did you mean slow_ranks"),
        ({"late_ranks": {"limit": 3}}, "late_ranks has no option 'limit'. Did you mean limits"),
        ({"late_ranks": {"limits": 3}}, r"`limits` is 3, not a .*patterns.Limits. Make it with advice.limits_from"),
        ({"slow_rnk": {"limits": 3}}, "'slow_rnk'. Did you mean slow_ranks"),
        ({"idle-tim": {"limits": 3}}, "'idle-tim'. Did you mean idle-time"),
        ({"idle-time": {"limits": 3}}, r"idle-time: `limits` is 3"),
        ({"verdict": {"limit": 3}}, "verdict has no option 'limit'. Did you mean limits"),
    ],
)
def test_options_that_are_none_are_refused(options: dict[str, dict[str, object]], problem: str) -> None:
    import stepscope.advice  # noqa: F401 - registers the rules

    with pytest.raises(StepscopeError, match=problem):
        make_run().with_options(options)


def test_the_parts_of_a_stacked_answer_are_not_kept_beside_it() -> None:
    slices = pl.concat([toy_slices(step) for step in range(1, 2000)])
    run = Run.from_frames({rank: {"slices": slices} for rank in range(4)})
    calls = []

    @analysis("rank", columns("rank step duration_ns"))
    def durations(slices: pl.LazyFrame) -> pl.DataFrame:
        calls.append(1)
        return slices.select("rank", "step", "duration_ns").collect()

    @analysis("rank", columns("rank duration_ns"))
    def longest(durations: pl.DataFrame) -> pl.DataFrame:
        return durations.group_by("rank").agg(pl.max("duration_ns"))

    stacked = run.analyse(durations)

    assert stacked.estimated_size() <= run.answers_bytes < 1.3 * stacked.estimated_size()
    assert run.analyse(longest).height == 4
    assert len(calls) == 4  # the parts of the stacked answer serve it
    assert run.answers_bytes < 1.3 * stacked.estimated_size()


def test_progress_is_reported_by_ranks_and_stops_when_cancelled() -> None:
    run = Run.from_frames({rank: {"slices": toy_slices(1)} for rank in range(4)})
    reported: list[tuple[str, int, int]] = []
    cancellation = Cancellation()

    @analysis("rank", columns("rank"))
    def slow(slices: pl.LazyFrame) -> pl.DataFrame:
        return slices.select(pl.col("rank").unique()).collect()

    with watched(progress=lambda *how_far: reported.append(how_far)):
        run.analyse(slow)
    assert reported == [("slow", done, 4) for done in (1, 2, 3, 4)]

    def show(question: str, done: int, total: int) -> None:
        reported.append((question, done, total))
        cancellation.cancel()

    run = Run("job", run.path, run.ranks, engine=Threads(1))
    reported.clear()
    with watched(show, cancellation), pytest.raises(StepscopeError, match="was cancelled"):
        run.analyse(slow)
    assert reported == [("slow", 1, 4)]
    assert run.analyse(slow).height == 4


def test_what_is_missing_is_stated_as_fields() -> None:
    run = Run.from_frames({0: {"slices": toy_slices(1)}, 1: {}})

    with pytest.raises(Unavailable) as caught:
        run.analyse(lambda kernels: 1)

    @analysis("rank", columns("rank"))
    def seen(slices: pl.LazyFrame) -> pl.DataFrame:
        return slices.select(pl.col("rank").unique()).collect()

    silent = run.silent_ranks(seen)

    assert (caught.value.table, caught.value.ranks) == ("kernels", ())
    assert "lambda" in caught.value.question
    assert list(silent) == [1]
    assert (silent[1].table, silent[1].ranks, silent[1].question) == ("slices", (1,), "seen")


Possible = pl.LazyFrame | None


def test_what_may_be_missing_is_seen_however_it_is_annotated() -> None:
    def old(graphs: Optional[pl.LazyFrame]) -> bool:  # noqa: UP045
        return graphs is None

    def named(graphs: Possible) -> bool:
        return graphs is None

    def unresolved(graphs: Optional[Unknown]) -> bool:  # type: ignore[name-defined]  # noqa: F821, UP045
        return graphs is None

    def needed(graphs: pl.LazyFrame) -> bool:
        return graphs is None

    assert all(make_run().analyse(function) for function in (old, named, unresolved))
    with pytest.raises(Unavailable, match="graphs"):
        make_run().analyse(needed)
