"""Ask a run of many ranks thousands of mixed questions, by one thread and by many, and compare the answers.

    python benchmarks/questions_at_once.py --questions 2000 --threads 16 --ranks 32 --answers-mb 200

The ranks are those of a recording, as often as needed. Fails if an answer differs, if an answer that was kept was
computed twice, or if answers take more memory than allowed.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polars.testing import assert_frame_equal

from stepscope import open_run
from stepscope.run import Rank, Run, Threads

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "ddp_gloo_4rank_slow_loader"
sys.path.append(str(ROOT / "tests" / "run"))

from many_questions import asked_by, counted_calls, mixed_questions  # noqa: E402 - in the tests, which ask fewer


def main() -> None:
    """Print the figures of one thread and of many."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument(
        "path", nargs="?", type=Path, default=EXAMPLE, help="recording of a job (default: the example)"
    )
    options.add_argument("--questions", type=int, default=2000)
    options.add_argument("--threads", type=int, default=16)
    options.add_argument("--ranks", type=int, default=32)
    options.add_argument("--answers-mb", type=float, default=2048)
    chosen = options.parse_args()

    questions = mixed_questions(chosen.questions, seed=1, steps=open_run(chosen.path).steps)
    print(f"{len(questions)} questions, {len(set(questions))} different ones, {chosen.ranks} ranks")
    expected, _ = measured(of_ranks(chosen.path, chosen.ranks, 2048, Threads(1)), 1, questions)
    run = of_ranks(chosen.path, chosen.ranks, chosen.answers_mb, Threads())
    found, calls = measured(run, chosen.threads, questions)

    for one, other in zip(found, expected, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            assert one == other, f"{one} instead of {other}"
        else:
            assert_frame_equal(one, other, check_exact=True)
    print("all answers are those of one thread")
    assert run.answers_bytes <= chosen.answers_mb * 1e6, "answers take more memory than allowed"
    if chosen.answers_mb >= 2048:
        assert set(calls) == {1}, f"computed more than once: {sum(count > 1 for count in calls)} answers"


def of_ranks(path: Path, count: int, answers_mb: float, engine: Threads) -> Run:
    """A run of so many ranks, those of a recording again and again."""
    recorded = open_run(path).ranks
    ranks = [Rank(number, "numbered", recorded[number % len(recorded)].recording) for number in range(count)]
    return Run("many", path, ranks, engine=engine, answers_mb=answers_mb)


def measured(run: Run, threads: int, questions: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The answers, and how often each was computed; prints time and memory."""
    started, worked = time.perf_counter(), time.process_time()
    with counted_calls() as calls, most_bytes(run) as most:
        answers = asked_by(threads, run, questions)
    took, work = time.perf_counter() - started, time.process_time() - worked
    print(
        f"{threads:2} threads: {took:6.1f} s, {work:6.1f} s of processor time, {sum(calls.values())} computations of "
        f"{len(calls)} answers, {run.answers_bytes / 1e6:.1f} MB kept, {most[0] / 1e6:.1f} MB at most"
    )
    return answers, list(calls.values())


@contextmanager
def most_bytes(run: Run) -> Iterator[list[int]]:
    """The most bytes of answers that were held at once, looked at every few milliseconds."""
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.005):
            most[0] = max(most[0], run.answers_bytes)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield most
    finally:
        over.set()
        watcher.join()


if __name__ == "__main__":
    main()
