"""Threads and worker processes give the same answers, and their errors are told apart."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from builders import make_run
from stepscope import StepscopeError, Unavailable, open_run
from stepscope.analysis import ANALYSES, registry
from stepscope.analysis.columns import columns
from stepscope.analysis.registry import analysis
from stepscope.run import Processes, Run, Threads
from stepscope.run.encoding import NotSendable, decoded, encoded

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(2) as engine:
        yield engine


class Point(NamedTuple):
    x: int
    rest: tuple[int, ...]


class Kind(Enum):
    FAST = "fast"


@dataclass(frozen=True)
class Limits:
    ratio: float = 0.5
    where: tuple[Path, ...] = ()


@pytest.fixture(scope="module")
def asked_in() -> Iterator[Callable[..., pl.DataFrame]]:
    """An analysis that answers with its process; forgotten after these tests."""
    from worker_analyses import asked_in

    yield asked_in
    del ANALYSES["asked_in"]


def test_results_come_in_order_and_calls_within_calls_do_not_block() -> None:
    threads = Threads(2)

    def outer(number: int) -> list[int]:
        return threads.each(lambda inner: number * 10 + inner, range(5))

    assert threads.each(outer, range(20)) == [[n * 10 + i for i in range(5)] for n in range(20)]


def test_the_error_of_the_first_item_is_raised_and_later_ones_are_not_begun() -> None:
    begun, both = [], threading.Barrier(2)

    def fail(number: int) -> None:
        begun.append(number)
        if number < 2:
            both.wait(10)
            time.sleep(0.05 * (1 - number))  # the second one fails first
            raise ValueError(number)

    with pytest.raises(ValueError, match="0"):
        Threads(2).each(fail, range(10))
    assert sorted(begun) == [0, 1]


@pytest.mark.parametrize("selected", [{}, {"ranks": "1-"}, {"steps": "5-6"}])
def test_worker_processes_give_the_same_answers(processes: Processes, cache: Path, selected: dict[str, str]) -> None:
    here = open_run(EXAMPLE, engine=Threads(1), **selected)  # type: ignore[arg-type]
    there = open_run(EXAMPLE, engine=processes, **selected)  # type: ignore[arg-type]

    for question in ("breakdown", "activity", "segments", "slow_ranks", "operator_flops", "kernel_totals"):
        try:
            expected = here.analyse(question)
        except Unavailable as reason:
            with pytest.raises(Unavailable) as caught:
                there.analyse(question)
            assert vars(caught.value).keys() == vars(reason).keys()
            assert (str(caught.value), caught.value.table) == (str(reason), reason.table)
            continue
        assert_frame_equal(there.analyse(question), expected, check_exact=True)


def test_ranks_are_asked_in_other_processes_and_what_these_do_not_know_here(
    processes: Processes, cache: Path, asked_in: Callable[..., pl.DataFrame]
) -> None:
    run = open_run(EXAMPLE, engine=processes)

    assert os.getpid() not in run.analyse(asked_in)["process"]
    assert run.analyse(asked_in)["process"].n_unique() == 2
    assert run.analyse(lambda ranks: os.getpid()) == os.getpid()
    in_memory = Run("memory", Path(), make_run(ranks=2).ranks, engine=processes)
    assert in_memory.analyse(asked_in)["process"].unique().to_list() == [os.getpid()]


def test_an_analysis_of_a_notebook_is_asked_here(
    processes: Processes, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "ANALYSES", dict(ANALYSES))

    @analysis("rank", columns("rank process"))
    def inside(ranks: pl.LazyFrame) -> pl.LazyFrame:
        return ranks.select("rank", process=pl.lit(os.getpid(), pl.Int64))

    assert open_run(EXAMPLE, engine=processes).analyse(inside)["process"].unique().to_list() == [os.getpid()]


def test_a_worker_imports_first_what_an_analysis_needs(cache: Path, asked_in: object) -> None:
    import worker_dependants  # noqa: F401 - registers the analysis

    with Processes(1) as engine:
        answer = open_run(EXAMPLE, engine=engine).analyse("asked_before")
    del ANALYSES["asked_before"]

    assert os.getpid() not in answer["process"]


def test_a_worker_that_died_while_it_waited_is_replaced(cache: Path, asked_in: Callable[..., pl.DataFrame]) -> None:
    with Processes(1) as engine:
        (process,) = open_run(EXAMPLE, engine=engine).analyse(asked_in)["process"].unique()
        os.kill(process, signal.SIGKILL)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)

        assert open_run(EXAMPLE, engine=engine).analyse(asked_in)["process"].unique().to_list() != [process]


@pytest.mark.parametrize("engine", [Threads, Processes])
def test_less_than_one_worker_is_refused(engine: type[Threads | Processes]) -> None:
    with pytest.raises(StepscopeError, match="-1 workers"):
        engine(-1)


def test_what_goes_wrong_in_a_worker_is_told_apart(
    processes: Processes, cache: Path, asked_in: Callable[..., pl.DataFrame]
) -> None:
    run = open_run(EXAMPLE, engine=processes)

    with pytest.raises(StepscopeError, match=r"asked_in: the process .* died \(SIGKILL\), twice, for rank.* memory"):
        run.analyse(asked_in, fault="death")
    with pytest.raises(Exception, match="ZeroDivisionError: a bug") as caught:
        run.analyse(asked_in, fault="bug")
    assert not isinstance(caught.value, StepscopeError)
    with pytest.raises(Unavailable, match="not of this rank") as why:
        run.analyse(asked_in, fault="reason")
    assert [(cause.table, cause.ranks) for cause in why.value.causes] == [("kernels", (2,))]
    assert run.analyse(asked_in).height == 4  # a new process goes on


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        2.5,
        float("inf"),
        "a",
        Path("a"),
        (1, ("b",)),
        frozenset({1}),
        Kind.FAST,
        Point(1, ()),
        Limits(0.1, (Path("x"),)),
    ],
)
def test_options_travel_as_data(value: object) -> None:
    (found,) = decoded(encoded({"option": value})).values()
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("value", [2**70, "\udcff"])
def test_values_that_cannot_be_encoded_do_not_travel(
    processes: Processes, cache: Path, asked_in: Callable[..., pl.DataFrame], value: object
) -> None:
    asked = open_run(EXAMPLE, engine=processes).analyse(asked_in, fault=value)

    assert asked["process"].unique().to_list() == [os.getpid()]


def test_types_that_another_process_cannot_find_do_not_travel() -> None:
    @dataclass(frozen=True)
    class Inside:
        ratio: float = 0.5

    with pytest.raises(NotSendable, match="Inside"):
        encoded({"option": Inside()})
