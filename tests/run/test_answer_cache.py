"""The cache of answers: each computed once, whoever asks; errors, cancelling, and what is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest

from stepscope.errors import Cancelled, StepscopeError, Unavailable
from stepscope.run.answer_cache import COLUMN_BYTES, AnswerCache, size_of
from stepscope.run.watching import Cancellation, watched

MB = 1_000_000


class Slow:
    """Computes only after `go` is set, and counts how often."""

    def __init__(self, result: Callable[[], Any]) -> None:
        self.calls = 0
        self.started, self.go = threading.Event(), threading.Event()
        self._result = result

    def __call__(self) -> Any:
        self.calls += 1
        self.started.set()
        assert self.go.wait(10)
        return self._result()


def fail(error: BaseException) -> Any:
    raise error


def frame(megabytes: float) -> pl.DataFrame:
    return pl.DataFrame({"a": pl.zeros(round(megabytes * MB / 8), dtype=pl.Int64, eager=True)})


def test_threads_that_ask_at_once_share_one_computation() -> None:
    cache, slow = AnswerCache(MB), Slow(lambda: 7)
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(cache.get, "key", slow) for _ in range(8)]
        assert slow.started.wait(10)
        slow.go.set()

        assert [answer.result(10) for answer in answers] == [7] * 8
    assert slow.calls == 1


def test_an_error_reaches_all_who_wait_and_is_not_kept() -> None:
    cache, slow = AnswerCache(MB), Slow(lambda: fail(ValueError("a fault")))
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(cache.get, "key", slow) for _ in range(4)]
        assert slow.started.wait(10)
        slow.go.set()

        for answer in answers:
            with pytest.raises(ValueError, match="a fault"):
                answer.result(10)
    assert cache.get("key", lambda: 7) == 7


def test_why_there_is_no_answer_is_kept_without_the_frames_of_its_traceback() -> None:
    cache, calls = AnswerCache(MB), []

    def compute() -> Any:
        calls.append(1)
        raise Unavailable("no kernels", table="kernels", ranks=[3])

    for _ in range(2):
        with pytest.raises(Unavailable, match="no kernels") as caught:
            cache.get("key", compute)
        assert (caught.value.table, caught.value.ranks) == ("kernels", (3,))
        assert all(entry.name != "compute" for entry in caught.traceback)
    assert calls == [1]


def test_an_answer_that_depends_on_itself_is_refused() -> None:
    cache = AnswerCache(MB)

    def even() -> Any:
        return cache.get("odd", lambda: cache.get("even", even))

    with pytest.raises(StepscopeError, match="asks for its own answer"):
        cache.get("even", even)


def test_two_threads_that_would_wait_for_each_other_are_told_so() -> None:
    cache, both = AnswerCache(MB), threading.Barrier(2)

    def half(other: str) -> Any:
        both.wait(10)
        return cache.get(other, lambda: 1)

    with ThreadPoolExecutor(2) as threads:
        asked = [
            threads.submit(cache.get, one, lambda other=other: half(other)) for one, other in (("a", "b"), ("b", "a"))
        ]
        for question in asked:
            with pytest.raises(StepscopeError, match="asks for its own answer"):
                question.result(10)


def test_whoever_waits_for_a_cancelled_question_computes_it() -> None:
    cache, cancellation = AnswerCache(MB), Cancellation()
    slow = Slow(lambda: cache.get("part", lambda: 7))

    def ask_and_be_cancelled() -> Any:
        with watched(cancellation=cancellation):
            return cache.get("key", slow)

    with ThreadPoolExecutor(2) as threads:
        cancelled = threads.submit(ask_and_be_cancelled)
        assert slow.started.wait(10)
        waiting = threads.submit(cache.get, "key", lambda: 8)
        cancellation.cancel()
        slow.go.set()

        with pytest.raises(Cancelled, match="cancelled before it was answered"):
            cancelled.result(10)
        assert waiting.result(10) == 8


def test_a_thread_that_waits_can_be_cancelled_while_the_work_goes_on() -> None:
    cache, cancellation, slow = AnswerCache(MB), Cancellation(), Slow(lambda: 7)

    def wait_and_be_cancelled() -> Any:
        with watched(cancellation=cancellation):
            return cache.get("key", slow)

    with ThreadPoolExecutor(2) as threads:
        working = threads.submit(cache.get, "key", slow)
        assert slow.started.wait(10)
        waiting = threads.submit(wait_and_be_cancelled)
        cancellation.cancel()

        with pytest.raises(Cancelled):
            waiting.result(10)
        slow.go.set()
        assert working.result(10) == 7


def test_the_least_recently_used_answers_are_forgotten_first() -> None:
    cache = AnswerCache(round(2.5 * MB))
    for key in ("a", "b"):
        cache.get(key, lambda: frame(1))
    cache.get("a", lambda: fail(AssertionError("forgotten")))

    cache.get("c", lambda: frame(1))

    assert (cache.known("a") is None, cache.known("b") is None, cache.known("c") is None) == (False, True, False)
    assert 2 * MB <= cache.used_bytes <= cache.most_bytes


def test_what_a_question_in_progress_has_used_is_not_forgotten() -> None:
    cache, calls = AnswerCache(round(1.5 * MB)), []

    def shared() -> pl.DataFrame:
        calls.append("shared")
        return frame(1)

    def question() -> pl.DataFrame:
        for key in ("b", "c"):  # each more than there is room for, and both need the same
            cache.get(key, lambda: frame(1).with_columns(cache.get("shared", shared)))
        return frame(0.1)

    cache.get("a", question)

    assert calls == ["shared"]
    assert cache.used_bytes <= cache.most_bytes


def test_parts_give_up_what_they_used_before_the_whole_is_answered() -> None:
    cache = AnswerCache(2 * MB)
    most = 0

    def whole() -> int:
        nonlocal most
        for part in range(20):
            cache.get(("part", part), lambda part=part: cache.get(("rows", part), lambda: frame(1)).height)
            most = max(most, cache.used_bytes)
        return most

    cache.get("whole", whole, keeps=False)

    assert most <= cache.most_bytes + MB


def test_an_answer_larger_than_the_bound_is_given_and_not_kept() -> None:
    cache = AnswerCache(MB)

    assert cache.get("key", lambda: frame(3)).height
    assert (cache.known("key"), cache.used_bytes) == (None, 0)


def test_the_size_of_an_answer_is_that_of_its_frames() -> None:
    assert size_of(frame(1)) == MB + COLUMN_BYTES
    assert size_of({"a": [frame(1), frame(1)]}) > 2 * MB
