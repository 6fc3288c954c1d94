"""Thousands of mixed questions to one run by many threads, and by one: for a test and a benchmark."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import polars as pl

from stepscope.analysis import ANALYSES
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.run.supply import Supplier

QUESTIONS = (
    "breakdown",
    "idle",
    "arrival",
    "communication",
    "slow_ranks",
    "kernel_totals",
    "segments",
    "time_by_rank",
    "what_if",
)
OPTIONS: dict[str, Sequence[dict[str, Any]]] = {
    "breakdown": ({}, {"whole_recording": True}, {"whole_recording": False}),
    "what_if": ({}, {"ideal": True}, {"without": "rank=5"}, {"scale": "kind=computing,0.5"}),
}


@dataclass(frozen=True)
class Question:
    """A question to a selection of a run, with options and limits."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()
    ranks: str | None = None
    steps: str | None = None
    cost_ratio: float | None = None

    def ask(self, run: Run) -> pl.DataFrame | str:
        """The answer, or why there is none."""
        if self.ranks is not None or self.steps is not None:
            run = run.select(self.ranks, self.steps)
        if self.cost_ratio is not None:
            limits = ANALYSES["suspect_costs"].options["limits"]
            run = run.with_limits({"suspect_costs": replace(limits, cost_ratio=self.cost_ratio)})
        try:
            return run.analyse(self.name, **dict(self.options))
        except Unavailable as reason:
            return str(reason)


def mixed_questions(count: int, seed: int, steps: Sequence[int]) -> list[Question]:
    """Questions in random order, each of them many times; some are about the second, or the first two, of the steps."""
    some = [None, None, f"{steps[1]}", f"{steps[0]}-{steps[1]}"]
    rng = random.Random(seed)
    questions = []
    for _ in range(count):
        name = rng.choice(QUESTIONS)
        options = rng.choice(OPTIONS.get(name, ({},)))
        ranks, chosen = rng.choice([None, None, "0-15", "16-", "3"]), rng.choice(some)
        cost_ratio = rng.choice([None, None, 0.01, 0.5]) if name == "slow_ranks" else None
        questions.append(Question(name, tuple(options.items()), ranks, chosen, cost_ratio))
    return questions


def asked_by(threads: int, run: Run, questions: Sequence[Question]) -> list[pl.DataFrame | str]:
    """All answers, in the order of the questions."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda question: question.ask(run), questions))


@contextmanager
def counted_calls() -> Iterator[Counter[Hashable]]:
    """How often each analysis is called for the same ranks, steps, options and limits."""
    calls: Counter[Hashable] = Counter()
    lock = threading.Lock()
    call: Callable[..., Any] = Supplier._call

    def counting(self: Supplier, analysis: Any, options: Any, ranks: Any) -> Any:
        with lock:
            calls[self._key(analysis, options, ranks)] += 1
        return call(self, analysis, options, ranks)

    with patch.object(Supplier, "_call", counting):
        yield calls
