"""Time questions about choices and selections that nobody asked before, of a run whose whole answers are in the store.

    python benchmarks/selections.py DIRECTORY [--choices 6]

A first process asks about the whole job, as `stepscope serve` does beforehand. Others, fresh ones that keep few answers
in memory as the server does, then ask what nobody has asked: what-if with one choice of changes after the other, gaps,
slow ranks and the breakdown of single steps. For what-if, the bounds are in the same rows: one replay of the job alone,
and the same choice in a run that keeps nothing prepared. Seconds are of processor time, as other work on the machine
disturbs that least.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from rounds import machine
from stepscope.analysis.registry import PREPARED
from stepscope.errors import StepscopeError
from stepscope.run import Run, open_run
from stepscope.run.answer_cache import AnswerCache
from stepscope.web.catalogue.catalogue import _ANSWERS_MB, _PREPARED_MB

SELECTED = ("gaps", "slow_ranks", "breakdown")
WHOLE = ("what_if", "work_names", *SELECTED)


def main(words: Sequence[str] | None = None) -> None:
    """Ask in fresh processes, and print the times of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="a job")
    parser.add_argument("--choices", type=int, default=6, help="choices of what-if, each another one (default 6)")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.part:
        print(json.dumps(PARTS[options.part](options.directory, options.choices)))
        return
    print(f"{machine()}\n")
    for part in PARTS:
        command = [sys.executable, __file__, str(options.directory), "--part", part, "--choices", str(options.choices)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(said.splitlines()[-1])
        for question, seconds in found.items():
            print(f"{part:12}{question:60}{seconds:9.2f}")


def whole(directory: Path, _: int) -> dict[str, float]:
    """The whole job, so that the store has what does not depend on a choice."""
    run = open_run(directory)
    return {question: _timed(run, lambda one, question=question: one.analyse(question)) for question in WHOLE}  # type: ignore[misc]


def what_if(directory: Path, choices: int) -> dict[str, float]:
    """Choices one after the other, then replays alone, and each choice with nothing prepared."""
    opened = open_run(directory)
    kept, anew = _as_served(opened, _PREPARED_MB), _as_served(opened, 0.0)
    changes = _changes(opened, choices)
    found = {}
    for number, change in enumerate(changes):
        name = f"choice {number + 1}: {change}"
        found[name] = _timed(kept, lambda run, change=change: run.analyse("what_if", **change))  # type: ignore[misc]
    found["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    graph = kept._supplier.ask(PREPARED["changing_work"], {})
    durations, lags = graph.simulation.duration_ns.clone(), graph.simulation.lag_ns
    bound = found["one replay"] = _timed(kept, lambda _: graph.step_times(durations, lags))
    later = [*found.values()][1:choices]
    found["later choices, mean, of one replay"] = sum(later) / max(len(later), 1) / max(bound, 1e-3)
    for number, change in enumerate(_changes(opened, choices, start=0.5)):
        name = f"nothing prepared, choice {number + 1}"
        found[name] = _timed(anew, lambda run, change=change: run.analyse("what_if", **change))  # type: ignore[misc]
    without = [value for name, value in found.items() if name.startswith("nothing prepared")]
    found["nothing prepared, mean, of later choices"] = sum(without) / len(without) / max(sum(later) / len(later), 1e-3)
    return found


def selections(directory: Path, _: int) -> dict[str, float]:
    """Questions about steps that nobody asked about."""
    opened = open_run(directory)
    found = {}
    for question in SELECTED:
        for step in opened.steps[1:3]:
            run = _as_served(opened, _PREPARED_MB).select(steps=str(step))
            found[f"{question} of step {step}"] = _timed(run, lambda one, question=question: one.analyse(question))  # type: ignore[misc]
    return found


PARTS: dict[str, Callable[[Path, int], dict[str, float]]] = {
    "whole job": whole,
    "what-if": what_if,
    "selections": selections,
}


def _changes(run: Run, count: int, start: float = 0.6) -> list[dict[str, object]]:
    """Choices that nobody asked for: own work of ranks, kinds of work, faster communication, all together."""
    ranks = [rank.rank for rank in run.ranks]
    factor = [f"{start + 0.01 * number:.2f}" for number in range(count)]
    kinds: list[Callable[[int], dict[str, object]]] = [
        lambda n: {"scale": f"kind=computing,{factor[n]}"},
        lambda n: {"without": f"rank={ranks[n % len(ranks)]}", "scale": f"kind=memory,{factor[n]}"},
        lambda n: {"ideal": True, "scale": f"kind=computing,{factor[n]}"},
        lambda n: {"bandwidth": f"{1 + float(factor[n])}x"},
    ]
    return [kinds[number % len(kinds)](number) for number in range(count)]


def _as_served(run: Run, prepared_mb: float) -> Run:
    """The run as the server opens it, with nothing in memory."""
    return Run(
        run.name,
        run.path,
        run.ranks,
        unread=run.unread,
        own_issues=run.own_issues,
        store=run._store,
        answers_mb=_ANSWERS_MB,
        prepared=AnswerCache(round(prepared_mb * 1e6)),
    )


def _timed(run: Run, ask: Callable[[Run], object]) -> float:
    begun = time.process_time()
    with suppress(StepscopeError):  # that there is no answer is an answer
        ask(run)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
