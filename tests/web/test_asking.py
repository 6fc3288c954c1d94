"""Questions of clients: computed once for all, kept within bounds, the same answers as everywhere else."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.compare import Pair
from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import figure_named
from stepscope.pages.answering import Request, answer
from stepscope.pages.compare import PAGE as COMPARE
from stepscope.pages.listing import Listing
from stepscope.pages.ops import PAGE as OPS
from stepscope.pages.steps import PAGE as STEPS
from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.run import Run
from stepscope.selection import parse_selection
from stepscope.web import queries
from stepscope.web.asking import AS_DRAWN, Asking, hashable
from stepscope.web.catalogue import Catalogue
from stepscope.web.errors import AnswerFailed, NotReady, UnknownRun
from stepscope.web.queries import Queries
from web_jobs import catalogue_of, settled, wait_for, write_job, write_rank

ENDLESS = "SELECT SUM(k0.duration_ns + k5.duration_ns) FROM kernels k0 " + " ".join(
    f"CROSS JOIN kernels k{number}" for number in range(1, 6)
)
"""A query over 48 to the power of 6 rows."""


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Catalogue]:
    write_job(tmp_path / "data" / "job", 4)
    write_job(tmp_path / "data" / "other", 4, day=1)
    with catalogue_of(tmp_path / "data") as catalogue:
        settled(catalogue, 2)
        yield catalogue


@pytest.fixture
def asking(catalogue: Catalogue) -> Iterator[Asking]:
    asking = Asking(catalogue, cache_mb=1)
    yield asking
    asking.close()


@pytest.fixture
def job(catalogue: Catalogue) -> str:
    return next(entry.id for entry in catalogue.entries() if entry.name == "job")


@pytest.fixture
def other(catalogue: Catalogue) -> str:
    return next(entry.id for entry in catalogue.entries() if entry.name == "other")


def test_an_answer_that_is_known_is_shown_while_questions_take_long(asking: Asking) -> None:
    go = threading.Event()

    async def ask() -> str:
        slow = [asyncio.create_task(asking.ask(number, lambda: go.wait(10))) for number in range(10)]
        try:
            return await asyncio.wait_for(asking.shown("table", lambda: "rows"), 5)
        finally:
            go.set()
            await asyncio.gather(*slow)

    assert asyncio.run(ask()) == "rows"


def test_clients_that_ask_the_same_share_one_computation(asking: Asking) -> None:
    calls, go = [], threading.Event()

    def compute() -> str:
        calls.append(1)
        assert go.wait(10)
        return "answer"

    async def ask() -> list[str]:
        clients = [asyncio.create_task(asking.ask("key", compute)) for _ in range(20)]
        await asyncio.sleep(0.1)
        assert asking.stats().waiting == 1
        go.set()
        return await asyncio.gather(*clients)

    assert asyncio.run(ask()) == ["answer"] * 20
    assert asyncio.run(asking.ask("key", compute)) == "answer"
    assert len(calls) == 1
    assert (asking.stats().asked, asking.stats().computed, asking.stats().kept) == (21, 1, 1)


def test_a_client_that_goes_away_takes_nothing_from_others(asking: Asking) -> None:
    calls, go = [], threading.Event()

    def compute() -> str:
        calls.append(1)
        assert go.wait(10)
        return "answer"

    async def ask() -> str:
        leaving, staying = (asyncio.create_task(asking.ask("key", compute)) for _ in range(2))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.sleep(0.05)
        assert leaving.cancelled()
        go.set()
        return await staying

    assert asyncio.run(ask()) == "answer"
    assert len(calls) == 1


def test_a_question_in_the_queue_outlives_the_client_that_asked_first(catalogue: Catalogue) -> None:
    asking, go = Asking(catalogue, threads=1), threading.Event()

    async def ask() -> str:
        busy = asyncio.create_task(asking.ask("busy", lambda: go.wait(10)))
        leaving = asyncio.create_task(asking.ask("key", lambda: "answer"))
        staying = asyncio.create_task(asking.ask("key", lambda: "another"))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.sleep(0.05)
        go.set()
        await busy
        return await staying

    assert asyncio.run(ask()) == "answer"
    asking.close()


def test_failures_are_not_kept(asking: Asking) -> None:
    results = iter([StepscopeError("not yet"), "answer"])

    def compute() -> str:
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return str(found)

    with pytest.raises(StepscopeError, match="not yet"):
        asyncio.run(asking.ask("key", compute))
    assert asyncio.run(asking.ask("key", compute)) == "answer"
    assert (asking.stats().failed, asking.stats().kept) == (1, 1)


def test_answers_are_kept_within_bounds_the_last_used_longest(asking: Asking) -> None:
    def ask(number: int) -> Any:
        return asyncio.run(asking.ask(number, lambda: bytes(200_000)))

    for number in range(4):
        ask(number)
    ask(0)  # used again, so that 1 goes first
    ask(4)
    before = asking.stats()
    assert (before.kept, before.evicted) == (4, 1)
    assert before.kept_bytes <= 1_000_000
    ask(0)
    assert asking.stats().computed == before.computed
    ask(1)
    assert asking.stats().computed == before.computed + 1
    frame = pl.DataFrame({"a": range(1_000_000)})
    assert asyncio.run(asking.ask("large", lambda: frame)) is frame
    assert asking.stats().kept == 4, "what is larger than all room drives nothing out"


def test_answers_are_those_of_pages_figures_and_reports(catalogue: Catalogue, asking: Asking, job: str) -> None:
    run = catalogue.open(job)
    request = Request(ranks=1, listing=Listing(sort="-total", top=1))
    found = asyncio.run(asking.answered(job, OPS, request))
    expected = answer(run, OPS, request)
    _same(found.tables, expected.tables)
    assert (found.request, found.unavailable, found.notes) == (request, expected.unavailable, expected.notes)

    drawn = asyncio.run(asking.of_figure(AS_DRAWN, job, "time-by-rank", "zh", ranks="0-1"))
    expected_figure = figure_named("time-by-rank").drawn(run.select(ranks="0-1"), language="zh")
    assert (drawn.spec, drawn.title) == (expected_figure.spec, expected_figure.title)
    assert drawn.table.rows.equals(expected_figure.table.rows)

    overview = asyncio.run(asking.overview(job, "zh"))
    whole = contents(run, answers(run), "zh")
    assert overview.modules == []
    assert (overview.verdict, overview.facts, overview.unread) == (whole.verdict, whole.facts, whole.unread)
    assert [one.words for one in overview.problems] == [one.words for one in whole.problems] != []
    assert [len(one.evidence) for one in overview.problems] == [len(one.evidence) for one in whole.problems]

    rows = asyncio.run(asking.table(job, STEPS, Request(table=STEPS.keys[0])))
    assert rows.equals(answer(run, STEPS).tables[STEPS.sections[0].question])
    html = asyncio.run(asking.report(job, "en"))
    assert html.startswith(b"<!doctype html>") or html.lower().startswith(b"<!doctype html>")
    assert b"job" in html


def test_a_pair_is_compared(catalogue: Catalogue, asking: Asking, job: str, other: str) -> None:
    found = asyncio.run(asking.pair(job, other, COMPARE, Request()))
    expected = answer(Pair(catalogue.open(job), catalogue.open(other)), COMPARE, Request())
    _same(found.tables, expected.tables)
    turned = asyncio.run(asking.pair(other, job, COMPARE, Request()))
    assert turned.run.path == catalogue.open(job).path
    assert asking.stats().computed == 2


def test_changed_data_is_asked_anew(catalogue: Catalogue, asking: Asking, job: str) -> None:
    first = asyncio.run(asking.answered(job, STEPS, Request()))
    stamp = catalogue.entry(job).stamp
    for rank in range(4):
        write_rank(first.run.path, rank, 4, steps=5)
    wait_for(lambda: catalogue.entry(job).stamp != stamp and catalogue.entry(job).state == "ready")
    again = asyncio.run(asking.answered(job, STEPS, Request()))
    assert isinstance(first.run, Run)
    assert isinstance(again.run, Run)
    assert (len(first.run.steps), len(again.run.steps)) == (3, 5)


def test_answers_do_not_keep_closed_runs_in_memory(tmp_path: Path) -> None:
    for day in range(3):
        write_job(tmp_path / f"job{day}", day=day)
    with catalogue_of(tmp_path, open_runs=1) as catalogue:
        settled(catalogue, 3)
        asking = Asking(catalogue)
        for entry in catalogue.entries():
            asyncio.run(asking.answered(entry.id, STEPS, Request()))
        assert (asking.stats().kept, asking.stats().evicted) == (1, 2)
        asking.close()


def test_what_cannot_be_answered_says_why(asking: Asking, job: str) -> None:
    with pytest.raises(UnknownRun):
        asyncio.run(asking.answered("none", STEPS, Request()))
    with pytest.raises(StepscopeError, match="no rank 99"):
        asyncio.run(asking.answered(job, STEPS, Request(ranks=99)))
    with pytest.raises(StepscopeError, match="there is no figure"):
        asyncio.run(asking.of_figure(AS_DRAWN, job, "nothing"))
    with pytest.raises(Unavailable):
        asyncio.run(asking.of_figure(AS_DRAWN, job, "queues"))


def test_a_fault_is_told_without_its_details(
    asking: Asking, job: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("/secret/place")

    monkeypatch.setattr("stepscope.web.asking.answer", broken)
    with pytest.raises(AnswerFailed) as failure:
        asyncio.run(asking.answered(job, STEPS, Request()))
    assert "/secret" not in str(failure.value)
    assert "/secret/place" in caplog.text


@pytest.mark.parametrize("way", ["ask", "about"])
def test_a_run_whose_rows_are_lost_is_read_again_whoever_notices(
    catalogue: Catalogue, asking: Asking, job: str, cache: Path, way: str
) -> None:
    def scan(run: Run) -> int:
        return run.table("steps").collect().height

    catalogue.open(job)
    for rows in [*cache.rglob("*.parquet"), *cache.rglob("small*")]:
        shutil.rmtree(rows.parent, ignore_errors=True)
    with pytest.raises(NotReady, match="read again"):
        if way == "ask":
            asyncio.run(asking.ask("rows", lambda: (_ for _ in ()).throw(OSError("gone")), [job]))
        else:
            asyncio.run(asking.about(job, "rows", lambda run: scan(run) / 0))
    wait_for(lambda: catalogue.entry(job).state == "ready")
    assert asyncio.run(asking.about(job, "rows", scan)) == 12


def test_queries_see_the_tables_of_the_run_and_nothing_else(asking: Asking, job: str, tmp_path: Path) -> None:
    found = asyncio.run(asking.query(job, "SELECT rank, COUNT(*) AS steps FROM steps GROUP BY rank ORDER BY rank"))
    assert found.to_dicts() == [{"rank": rank, "steps": 3} for rank in range(4)]
    (tmp_path / "secret.csv").write_text("a\n1\n")
    for sql in (f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')", "SELECT * FROM nothing", "DROP TABLE steps"):
        with pytest.raises(StepscopeError):
            asyncio.run(asking.query(job, sql))


def test_a_query_that_takes_too_long_is_stopped(catalogue: Catalogue, job: str) -> None:
    asked = Queries(longest_s=1.0)
    started = time.monotonic()
    with pytest.raises(StepscopeError, match="longer than 1 s"):
        asked.query(catalogue.order(job), ENDLESS)
    assert time.monotonic() - started < 20
    assert asked.query(catalogue.order(job), "SELECT COUNT(*) AS n FROM kernels").item() == 48, "others go on"
    asked.close()


def test_a_result_that_is_too_large_is_refused(
    catalogue: Catalogue, job: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start = queries._START
    limited = start.replace("; main()", "; import stepscope.web.query_worker as w; w.MOST_BYTES = 100; main()")
    assert limited != start
    monkeypatch.setattr(queries, "_START", limited)
    asked = Queries()
    with pytest.raises(StepscopeError, match="Ask for fewer rows"):
        asked.query(catalogue.order(job), "SELECT * FROM kernels")
    asked.close()


def test_closing_is_quick_while_questions_are_computed(catalogue: Catalogue, job: str) -> None:
    asking = Asking(catalogue, threads=1)

    async def leave() -> None:
        question = asyncio.create_task(asking.query(job, ENDLESS))
        await asyncio.sleep(1.0)
        started = time.monotonic()
        asking.close()
        with pytest.raises(StepscopeError):
            await question
        assert time.monotonic() - started < 5
        with pytest.raises(StepscopeError, match="being stopped"):
            await asking.ask("key", lambda: 1)

    asyncio.run(leave())


def test_keys_tell_requests_apart() -> None:
    same = [Request(options={"top": [1], "by": "x"}), Request(options={"by": "x", "top": [1]})]
    assert hashable(same[0]) == hashable(same[1])
    apart = [
        Request(),
        Request(ranks=1),
        Request(ranks="1"),
        Request(ranks=parse_selection("1", "ranks")),
        Request(steps=1),
        Request(listing=Listing(page=2)),
        Request(listing=Listing(search="1")),
        Request(options={"limit": 1}),
        Request(options={"limit": True}),
        Request(options={"limit": 1.0}),
        Request(main_only=True),
    ]
    assert len({hashable(one) for one in apart}) == len(apart)


def _same(found: dict[str, pl.DataFrame], expected: dict[str, pl.DataFrame]) -> None:
    assert list(found) == list(expected)
    assert found
    assert all(found[name].equals(expected[name]) for name in expected)
