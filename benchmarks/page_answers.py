"""Time the answers that web pages show: every page, table and figure of a run, from the store and asked again.

    python benchmarks/page_answers.py DIRECTORY --slow 0.3

The first process asks everything, so that the answers are kept in the store; the second one, fresh, is measured. Each
question is asked of a run of its own, with nothing in memory, and again of the same one.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from rounds import machine
from stepscope.advice import advise
from stepscope.errors import StepscopeError
from stepscope.figures import FIGURES
from stepscope.pages import PAGES
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Page
from stepscope.pages.showing import shown_sections
from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.run import Run, open_run

Times = tuple[str, float, float]
"""What was asked; seconds from the store, and of the same run again."""


def main() -> None:
    """Ask twice, and print what the second process says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="a job")
    parser.add_argument("--slow", type=float, default=0.3, help="print what takes longer, seconds (default 0.3)")
    parser.add_argument("--measured", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measured:
        print(json.dumps(_measured(options.directory)))
        return
    print(f"{machine()}\n")
    for name in ("asked for the first time", "from the store"):
        command = [sys.executable, __file__, str(options.directory), "--measured"]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        found = json.loads(said.splitlines()[-1])
        _print(name, found["times"], options.slow)
        print(f"  opened in {found['open_s']:.2f} s; {found['memory_mb']:.0f} MB at most\n")


def _measured(directory: Path) -> dict[str, object]:
    start = time.perf_counter()
    run = open_run(directory)
    opened = time.perf_counter() - start
    times = [_timed(run, name, ask) for name, ask in _questions(run)]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"open_s": opened, "times": times, "memory_mb": memory}


def _timed(run: Run, name: str, ask: Callable[[Run], object]) -> Times:
    fresh = Run(run.name, run.path, run.ranks, unread=run.unread, own_issues=run.own_issues, store=run._store)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        with suppress(StepscopeError):  # that there is no answer is an answer
            ask(fresh)
        seconds.append(time.perf_counter() - start)
    return name, seconds[0], seconds[1]


def _questions(run: Run) -> Iterator[tuple[str, Callable[[Run], object]]]:
    rank = run.ranks[len(run.ranks) // 2].rank
    for page in PAGES:
        if page.scope == "pair":
            continue
        ranks = rank if page.scope == "rank" else None
        yield f"page {page.name}", _shown(page, Request(ranks=ranks))
        for section in page.sections:
            yield f"table {page.name}.{section.key}", _shown(page, Request(ranks=ranks, table=section.key))
    for figure in FIGURES:
        yield f"figure {figure.name}", lambda one, figure=figure: figure.drawn(one)  # type: ignore[misc]
    yield "overview", lambda one: contents(one, answers(one), modules=False)
    yield "findings", advise


def _shown(page: Page, request: Request) -> Callable[[Run], object]:
    return lambda run: list(shown_sections(answer(run, page, request)))


def _print(name: str, times: Sequence[Times], slow_s: float) -> None:
    print(f"{name}, {len(times)} questions:")
    for place, what in ((1, "of a fresh run"), (2, "again")):
        ordered = sorted(float(each[place]) for each in times)
        p95 = ordered[int(0.95 * len(ordered))]
        print(
            f"  {what:14} median {ordered[len(ordered) // 2] * 1e3:8.1f} ms, p95 {p95 * 1e3:8.1f} ms, "
            f"longest {ordered[-1] * 1e3:8.1f} ms"
        )
    for question, first, again in times:
        if first > slow_s:
            print(f"  {question:45} {first * 1e3:9.1f} ms, again {again * 1e3:9.1f} ms")


if __name__ == "__main__":
    main()
