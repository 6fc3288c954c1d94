"""Ask one stored recording every question and print the milliseconds of each as JSON; see `questions.py`."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from stepscope import Run, open_run
from stepscope.analysis.registry import ANALYSES
from stepscope.errors import Unavailable
from stepscope.pages import PAGES
from stepscope.pages.answering import Request, answer
from stepscope.pages.base import Page
from stepscope.pages.job import PAGE
from stepscope.pages.showing import shown_sections
from stepscope.store import cache_directory
from stepscope.store.answers import FOLDER
from stepscope.tables import TABLES

ROWS = 100
Question = tuple[str, str, Callable[[Run], object]]


def main(path: Path) -> None:
    """Ask every question three times and print the milliseconds as JSON.

    `first_ms`: of a run that was just opened, whose store has nothing but what it had when this process began;
    `kept_ms`: of another one, whose store has the answer; `again_ms`: of the same run once more.
    """
    _warm_up(open_run([path]))
    found = []
    answers = cache_directory() / FOLDER
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as name:
        before = Path(name) / FOLDER
        if answers.is_dir():
            shutil.copytree(answers, before)
        for kind, question, ask in questions(open_run([path])):
            _restore(answers, before)
            first_ms = _timed(ask, open_run([path]))
            run = open_run([path])
            times = {"first_ms": first_ms, "kept_ms": _timed(ask, run), "again_ms": _timed(ask, run)}
            found.append({"kind": kind, "name": question, **times})
        _restore(answers, before)
    json.dump(found, sys.stdout)


def _restore(answers: Path, before: Path) -> None:
    """Make the store's answers those of before."""
    shutil.rmtree(answers, ignore_errors=True)
    if before.is_dir():
        shutil.copytree(before, answers)


def _warm_up(run: Run) -> None:
    """Import what questions need and start Polars' threads, by a question that is not counted."""
    _show(run, PAGE, PAGE.keys[0])
    run.query("SELECT rank FROM ranks")


def _timed(ask: Callable[[Run], object], run: Run) -> float:
    begun = time.perf_counter()
    with suppress(Unavailable):  # that there is no answer is an answer
        ask(run)
    return (time.perf_counter() - begun) * 1000


def questions(run: Run) -> Iterator[Question]:
    for name in ANALYSES:
        yield "analysis", name, lambda run, name=name: run.analyse(name)  # type: ignore[misc]
    for page in (PAGE, *PAGES):
        for key in page.keys:
            yield "section", f"{page.name}/{key}", lambda run, page=page, key=key: _show(run, page, key)  # type: ignore[misc]
    for name, table in TABLES.items():
        if run.has(name):
            numbers = [c.name for c in table.columns if c.dtype in ("int64", "float64")]
            number = "duration_ns" if "duration_ns" in numbers else (*numbers, "")[0]
            yield from _pages(name, sum(rank.rows.get(name, 0) for rank in run.ranks), number)


def _pages(name: str, rows: int, number: str) -> Iterator[Question]:
    """Pages of a table: at its start, middle and end, filtered, and sorted."""
    for place, offset in (("start", 0), ("middle", rows // 2), ("end", max(rows - ROWS, 0))):
        yield (
            "rows",
            f"{name} {place}",
            lambda run, offset=offset: run.table(name).slice(offset, ROWS).collect(),  # type: ignore[misc]
        )
    if number:
        text = f'SELECT * FROM {name} WHERE "{number}" > 0 LIMIT {ROWS}'
        yield "rows", f"{name} filtered", lambda run: run.query(text)
        ordered = f'SELECT * FROM {name} ORDER BY "{number}" DESC LIMIT {ROWS}'
        yield "rows", f"{name} sorted", lambda run: run.query(ordered)


def _show(run: Run, page: Page, key: str) -> None:
    """A section of a page as people see it."""
    list(shown_sections(answer(run, page, Request(table=key))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
