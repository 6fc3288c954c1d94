"""Jobs of few ranks with short steps, of which only the forward pass is known, and that takes next to nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest
from detect_streams import EPOCH_NS, MS, blamed, watched

from stepscope.live.detect import Detector
from stepscope.live.messages import Digest
from stepscope.live.verdicts import Verdict

STEP_MS = 24.0
MORE_MS = 20.0
SLOW_FROM = 301
SLOW_RANK = 1


def short_steps(
    steps: int,
    *,
    ranks: int = 2,
    forward_ms: float = 0.5,
    more_ms: Callable[[int, int], float] = lambda rank, step: 0.0,
    pace: Callable[[int], float] = lambda step: 1.0,
    calls_from: int = 10**9,
    run_delay_ms: float | None = None,
    seed: int = 1,
) -> Iterator[list[Digest]]:
    """A job in which each rank also works 20 ms outside what is timed.

    Args:
        steps: How many.
        ranks: How many.
        forward_ms: The usual forward pass; it varies by 40 %.
        more_ms: How much longer the forward pass of a rank takes in a step.
        pace: How many times as long all takes in a step.
        calls_from: First step in which communication is known.
        run_delay_ms: How long a thread waits for processors in a step, if that is known.
        seed: Of the noise.
    """
    draw = random.Random(seed)
    now = EPOCH_NS
    for step in range(1, steps + 1):
        factor = pace(step)
        forwards = [(forward_ms * math.exp(draw.gauss(0, 0.4)) + more_ms(rank, step)) * factor for rank in range(ranks)]
        rests = [(STEP_MS - 3 - forward_ms) * factor * math.exp(draw.gauss(0, 0.03)) for _ in range(ranks)]
        longest = max(forward + rest for forward, rest in zip(forwards, rests, strict=True))
        step_ns = round((longest + 3) * MS)
        now += step_ns
        yield [
            Digest(
                rank=rank,
                step=step,
                end_at_ns=now,
                step_ns=step_ns,
                forward_ns=round(forward * MS),
                data_ns=round(0.2 * MS),
                communication_ns=round((longest - forward - rest + 1) * MS) if step >= calls_from else None,
                run_delay_ns=None if run_delay_ms is None else round(run_delay_ms * factor * MS),
            )
            for rank, (forward, rest) in enumerate(zip(forwards, rests, strict=True))
        ]


def slow_rank(rank: int, step: int) -> float:
    return MORE_MS if rank == SLOW_RANK and step >= SLOW_FROM else 0.0


def first_told(rounds: Iterator[list[Digest]]) -> tuple[int, list[Verdict]]:
    """The step in which a verdict is told first, and all verdicts."""
    detector, step, told = Detector(), 0, []
    for digests in rounds:
        _, news = watched([digests], detector, greet=not step or digests[0].step == 1)
        told += news
        if news and not step:
            step = digests[0].step
    return step, told


@pytest.mark.parametrize("seed", range(4))
def test_a_phase_that_was_next_to_nothing_is_found_soon_once_it_is_half_the_step(seed: int) -> None:
    step, told = first_told(short_steps(700, more_ms=slow_rank, seed=seed))

    assert blamed(told) == {("slow_compute", (SLOW_RANK,))}
    assert step - SLOW_FROM < 2.5e3 / STEP_MS  # 2.5 s of steps


@pytest.mark.parametrize("seed", range(4))
def test_a_slowdown_that_one_rank_explains_is_never_one_of_the_job(seed: int) -> None:
    _, told = watched(short_steps(500, more_ms=slow_rank, pace=lambda step: 1 + 0.05 * math.sin(step / 40), seed=seed))

    assert {verdict.cause.value for verdict in told} == {"slow_compute"}


@pytest.mark.parametrize("calls_from", [310, 345, 420])
def test_the_step_of_the_onset_stays_when_communication_is_switched_on(calls_from: int) -> None:
    detector, told = watched(short_steps(700, more_ms=slow_rank, calls_from=calls_from))

    assert [verdict.key for verdict in detector.open] == [f"slow_compute:{SLOW_RANK}"]
    assert not any(verdict.is_over for verdict in told)
    assert all(abs(verdict.since_step - SLOW_FROM) <= 10 for verdict in told), told


@pytest.mark.parametrize("seed", range(4))
def test_the_ratio_is_that_of_the_step_where_the_phase_was_next_to_nothing(seed: int) -> None:
    _, told = watched(short_steps(900, more_ms=slow_rank, seed=seed))

    truth = (STEP_MS + MORE_MS) / STEP_MS
    assert told
    assert all(verdict.ratio == pytest.approx(truth, rel=0.1) for verdict in told)


@pytest.mark.parametrize("seed", range(6))
def test_three_ranks_show_when_one_became_slow(seed: int) -> None:
    more = lambda rank, step: 16.0 if rank == 2 and step >= 180 else 0.0  # noqa: E731

    _, told = watched(short_steps(400, ranks=3, forward_ms=8, more_ms=more, seed=seed))

    assert blamed(told) == {("slow_compute", (2,))}
    assert abs(told[0].since_step - 180) <= 10


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_start_up_accuses_nobody(ranks: int) -> None:
    starts = lambda rank, step: 3.0 if rank == 0 and step < 55 else 0.0  # noqa: E731

    _, told = watched(short_steps(400, ranks=ranks, forward_ms=8, more_ms=starts))

    assert told == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("run_delay_ms", [None, 3.0])
def test_a_shared_machine_whose_load_drifts_is_no_slow_job(seed: int, run_delay_ms: float | None) -> None:
    draw, level, paces = random.Random(seed), 0.0, []
    for step in range(2500):
        if step % 30 == 0:
            level = 0.7 * level + draw.gauss(0, 0.08)
        paces.append(math.exp(level + draw.gauss(0, 0.1)) * (2 if draw.random() < 0.02 else 1))

    _, told = watched(short_steps(2499, pace=paces.__getitem__, run_delay_ms=run_delay_ms, seed=seed))

    assert told == []


def test_a_job_that_is_much_slower_for_long_is_told_on_a_shared_machine_too() -> None:
    draw = random.Random(3)
    paces = [math.exp(draw.gauss(0, 0.1)) * (1.8 if step > 1200 else 1) for step in range(2500)]

    _, told = watched(short_steps(2499, pace=paces.__getitem__, run_delay_ms=2.0))

    assert ("slow_job", ()) in blamed(told)
    assert abs(told[0].since_step - 1201) <= 20
