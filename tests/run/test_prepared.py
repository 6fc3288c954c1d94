"""What several answers are computed with is made once for all of them, changed by none, and kept within a bound."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from stepscope.analysis import ANALYSES, registry
from stepscope.analysis.columns import columns
from stepscope.analysis.methods.job_graph import JobGraph, job_graph
from stepscope.analysis.registry import PREPARED, Prepared, analysis, prepared
from stepscope.analysis.replay import work_graph
from stepscope.errors import StepscopeError, Unavailable
from stepscope.run import Run
from stepscope.run.answer_cache import AnswerCache, size_of
from stepscope.tables import KERNELS
from tests.analysis.jobs import job

CHANGES: tuple[dict[str, Any], ...] = (
    {"without": "rank=1"},
    {"scale": "kind=computing,0.5"},
    {"ideal": True},
    {"without": "rank=1,kind=dispatch", "bandwidth": "2x"},
)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[JobGraph]]:
    """The graphs that are made."""
    graphs: list[JobGraph] = []

    def counted(*given: Any) -> JobGraph:
        graphs.append(job_graph(*given))
        return graphs[-1]

    monkeypatch.setattr(work_graph, "job_graph", counted)
    yield graphs


def with_cache(run: Run, cache: AnswerCache, answers_mb: float = 100.0) -> Run:
    return Run(run.name, run.path, run.ranks, prepared=cache, answers_mb=answers_mb)


def choices(run: Run) -> list[pl.DataFrame]:
    return [run.analyse("what_if", **change) for change in CHANGES]


def assert_same(found: list[pl.DataFrame], expected: list[pl.DataFrame]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert_frame_equal(one, other, check_exact=True)


def test_the_graph_of_a_job_is_made_once_for_all_answers(made: list[JobGraph]) -> None:
    run = job(compute={1: 1.3})
    choices(run)
    for question in ("slow_ranks", "replay", "critical_path", "slack", "savings", "work_names"):
        run.analyse(question)

    assert len(made) == 1


def test_no_answer_changes_what_is_prepared(made: list[JobGraph]) -> None:
    run = job(compute={1: 1.3}, gap_ns={2: 3_000_000}, calls=6)
    before = choices(run)
    simulation = made[0].simulation
    held = [each.clone() for each in (simulation.duration_ns, simulation.lag_ns, simulation.start_ns)]
    for question in ANALYSES:
        try:
            run.analyse(question)
        except Unavailable:
            continue
    after = (simulation.duration_ns, simulation.lag_ns, simulation.start_ns)

    assert len(made) == 1
    assert all(one.equals(other) for one, other in zip(held, after, strict=True))
    again = [run.analyse("what_if", **change, scale="rank=3,kind=computing,1.0") for change in CHANGES[::2]]
    assert_same(again, before[::2])


def test_answers_are_those_of_a_run_that_keeps_nothing_whatever_was_asked_before() -> None:
    expected = choices(with_cache(job(compute={1: 1.3}), AnswerCache(0), answers_mb=0.0))
    run = job(compute={1: 1.3})
    run.select(steps="2").analyse("replay")
    run.select(ranks="0-3").analyse("slack")

    assert_same(choices(run)[::-1], expected[::-1])
    of_step = with_cache(job(compute={1: 1.3}), AnswerCache(0)).select(steps="2").analyse("replay")
    assert_frame_equal(run.select(steps="2").analyse("replay"), of_step, check_exact=True)


def test_runs_that_share_a_cache_do_not_share_what_is_prepared(made: list[JobGraph]) -> None:
    cache = AnswerCache(10**9)
    one, other = (with_cache(job(compute={rank: 1.5}), cache) for rank in (1, 2))

    assert one.analyse("what_if", without="rank=1")["saving_ns"].sum() > 0
    assert other.analyse("what_if", without="rank=1")["saving_ns"].sum() == 0
    assert len(made) == 2


def test_what_is_prepared_counts_with_all_its_memory_and_is_dropped_when_it_is_not_used(made: list[JobGraph]) -> None:
    cache = AnswerCache(10**9)
    run = with_cache(job(), cache)
    run.analyse("replay")

    graph = made[0]
    nodes, edges = graph.nodes.height, graph.simulation.edges.height
    assert cache.used_bytes > size_of(graph) > nodes * (4 * 8 + 8) + edges * 9
    cache.drop_unused(60.0)
    assert cache.used_bytes
    time.sleep(0.01)
    cache.drop_unused(0.005)
    assert not cache.used_bytes


def test_nothing_is_kept_beyond_the_bound(made: list[JobGraph]) -> None:
    cache = AnswerCache(1000)
    run = with_cache(job(), cache)
    run.analyse("replay")
    run.analyse("what_if", ideal=True)

    assert len(made) == 2
    assert cache.used_bytes <= 1000


def test_without_work_the_reason_is_that_of_the_work() -> None:
    kernel = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[1], kind=["compute"], name=["k"])
    run = Run.from_frames({0: {"kernels": kernel}})
    with pytest.raises(Unavailable) as work:
        run.analyse("work")
    for question in ("what_if", "replay", "critical_path"):
        with pytest.raises(Unavailable) as found:
            run.analyse(question)
        assert str(found.value) == str(work.value)


def test_what_is_prepared_is_needed_though_it_is_not_called_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "ANALYSES", dict(ANALYSES))

    @analysis("job", columns("rank"))
    def asks_nothing(work_graph: Prepared[JobGraph]) -> pl.DataFrame:
        return pl.DataFrame({"rank": [0]}, schema={"rank": pl.Int32})

    kernel = KERNELS.frame(kernel=[0], start_ns=[0], duration_ns=[1], kind=["compute"], name=["k"])
    with pytest.raises(Unavailable):
        Run.from_frames({0: {"kernels": kernel}}).analyse("asks_nothing")
    assert job(ranks=2, steps=2).analyse("asks_nothing").height == 1


def test_a_name_means_one_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PREPARED", dict(PREPARED))

    def replay(ranks: pl.LazyFrame) -> None:
        """Of the name of an analysis."""

    def kernels(ranks: pl.LazyFrame) -> None:
        """Of the name of a table."""

    for function in (replay, kernels):
        with pytest.raises(StepscopeError, match="of this name already"):
            prepared(function)
    with pytest.raises(StepscopeError, match="of this name already"):

        @analysis("job", columns("rank"))
        def work_graph(ranks: pl.LazyFrame) -> pl.LazyFrame:
            return ranks.select("rank")


def test_what_never_fits_leaves_first() -> None:
    cache = AnswerCache(1_000_000)

    def ask() -> int:
        cache.get("kept", lambda: bytes(500_000))
        cache.get("too large", lambda: bytes(2_000_000))
        return 1

    cache.get("question", ask)
    assert cache.known("kept") is not None
    assert cache.known("too large") is None
