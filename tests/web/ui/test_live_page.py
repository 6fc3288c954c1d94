"""The page of a running job: what is asked of its manager, what is remembered, and who may change the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nicegui")

from page_contexts import HOSTILE, context_of, entry

from stepscope.errors import StepscopeError
from stepscope.live.show.status import CaptureStatus, RankStatus, Status, StorageStatus, SwitchStatus, to_json
from stepscope.web import live_jobs
from stepscope.web.live_jobs import KEPT_RANKS, KEPT_STEPS, LiveJob, StepTime
from stepscope.web.settings import Settings
from stepscope.web.ui.html import rendered
from stepscope.web.ui.pages import live, live_figures, live_status, live_words
from stepscope.web.ui.pages.live_figures import chosen_ranks, drawn_ranks, heat_map, lines
from stepscope.web.ui.pages.live_status import capture_places, rank_rows, run_at
from stepscope.web.ui.state import State

MS = 1_000_000


def rank_status(rank: int, *, last: int = 10, pid: int = 1, steps: int = 5, state: str = "alive") -> RankStatus:
    recent: list[tuple[int, int, int | None, int | None]] = [
        (step, (rank + 1) * MS, None, 2 * MS) for step in range(last - steps + 1, last + 1)
    ]
    return RankStatus(
        rank,
        "host1",
        state,
        pid,
        "pytorch",
        "cpu",
        0,
        last,
        step_ns=(rank + 1) * MS,
        own_ratio=1.0 + rank,
        recent=recent,
    )


def status(*ranks: RankStatus, pending: list[int] | None = None) -> Status:
    switches = SwitchStatus(["step"], ["communication"], 3, "someone", 0, len(ranks), pending or [], [])
    storage = StorageStatus([], None, 0, [])
    return Status("job", 1, len(ranks), 10, MS, switches, list(ranks), [], [], [], storage)


@dataclass
class Manager:
    """Stands for a manager: answers with what a test gives it."""

    status: Status | StepscopeError
    asked: int = 0
    done: list[Any] = field(default_factory=list)

    @asynccontextmanager
    async def connected(self, address: str) -> AsyncIterator[Any]:
        async def tell() -> bytes:
            self.asked += 1
            await asyncio.sleep(0.01)
            if isinstance(self.status, StepscopeError):
                raise self.status
            return to_json(self.status)

        async def switch(changes: Any, *, by: str, wait_s: float) -> Any:
            self.done.append((address, dict(changes), by))
            return SimpleNamespace(revision=4, on=[], applied=[0], pending=[], failed={})

        async def capture(ranks: Any, steps: int, *, stacks: bool, wait_s: float) -> Any:
            self.done.append((address, list(ranks), steps))
            return SimpleNamespace(id="c", results=[], pending=[])

        yield SimpleNamespace(status=tell, switch=switch, capture=capture)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[Manager]:
    made = Manager(status(rank_status(0), rank_status(1)))
    monkeypatch.setattr(live_jobs, "_client", lambda: made.connected)
    yield made


def test_many_pages_ask_the_manager_once(manager: Manager) -> None:
    async def look() -> LiveJob:
        job = LiveJob("host:1")
        await asyncio.gather(*(job.look() for _ in range(20)))
        return job

    job = asyncio.run(look())

    assert manager.asked == 1
    assert job.status is not None
    assert [each.step for each in job.steps[1]] == [6, 7, 8, 9, 10]


def looked(manager: Manager, *answers: Status | StepscopeError) -> LiveJob:
    async def look() -> LiveJob:
        job = LiveJob("here")
        for answer in answers:
            manager.status = answer
            job.asked_s = float("-inf")
            await job.look()
        return job

    return asyncio.run(look())


def test_steps_are_remembered_beyond_what_the_manager_tells(manager: Manager) -> None:
    job = looked(manager, status(rank_status(0, last=5)), status(rank_status(0, last=8)))

    assert [each.step for each in job.steps[0]] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_memory_is_bounded(manager: Manager) -> None:
    ranks = [rank_status(rank, last=1000, steps=500) for rank in range(KEPT_RANKS + 50)]

    job = looked(manager, status(*ranks))

    assert len(job.steps) == KEPT_RANKS
    assert {len(steps) for steps in job.steps.values()} == {KEPT_STEPS}


def test_a_restarted_rank_counts_from_the_start(manager: Manager) -> None:
    job = looked(manager, status(rank_status(0, last=100)), status(rank_status(0, last=3, steps=2, pid=2)))

    assert [each.step for each in job.steps[0]] == [2, 3]


def test_a_manager_that_goes_away_is_a_problem_that_may_pass(manager: Manager) -> None:
    known = status(rank_status(0))

    gone = looked(manager, known, StepscopeError("no manager answers"))
    back = looked(manager, known, StepscopeError("no manager answers"), known)

    assert (gone.status is not None, str(gone.problem)) == (True, "no manager answers")
    assert back.problem is None


def test_switching_and_profiling_go_to_the_manager(manager: Manager) -> None:
    async def act() -> None:
        await LiveJob("host:9").switch({"communication": "on"}, by="a test")
        await LiveJob("here").capture([2], 3)

    asyncio.run(act())

    assert manager.done == [("host:9", {"communication": "on"}, "a test"), ("", [2], 3)]


@pytest.mark.parametrize(("ranks", "steps"), [([], 3), (list(range(17)), 3), ([0], 0), ([0], 51)])
def test_too_much_is_not_profiled(manager: Manager, ranks: list[int], steps: int) -> None:
    with pytest.raises(StepscopeError, match="give 1 to"):
        asyncio.run(LiveJob("here").capture(ranks, steps))
    assert manager.done == []


@pytest.mark.parametrize("token", [None, "secret"])
def test_only_clients_that_gave_a_token_may_change_the_job(token: str | None) -> None:
    context = context_of("/live")
    object.__setattr__(context.web, "settings", Settings((), token=token))

    assert live._Page(context, LiveJob("here")).can_act == (token is not None)


def test_figures_show_the_times_of_the_chosen_ranks() -> None:
    known = status(*(rank_status(rank) for rank in range(4)))
    steps = {rank: [StepTime(*each) for each in rank_status(rank).recent] for rank in range(4)}
    context = context_of("/live")

    every, some = (drawn_ranks(known, steps, text) for text in ("", "1,3"))
    drawn = lines({rank: steps[rank] for rank in some}, "step", context)
    cells = heat_map({rank: steps[rank] for rank in sorted(every)}, "forward", context)["data"][0]

    assert sorted(every) == [0, 1, 2, 3]
    assert sorted(some) == [1, 3]
    assert {line["name"]: line["y"] for line in drawn["data"]} == {"rank 1": [2.0] * 5, "rank 3": [4.0] * 5}
    assert cells["y"] == [f"rank {rank}" for rank in range(4)]
    assert cells["x"] == [6, 7, 8, 9, 10]
    assert cells["z"] == [[2.0] * 5] * 4


def test_what_was_not_recorded_is_left_open() -> None:
    steps = {0: [StepTime(1, MS, None, None), StepTime(2, MS, 3 * MS, None)]}

    assert lines(steps, "data", context_of("/live"))["data"][0]["y"] == [None, 3.0]
    assert heat_map(steps, "data", context_of("/live"))["data"][0]["z"] == [[None, 3.0]]


@pytest.mark.parametrize("text", ["x", "3-1", "99", ""])
def test_ranks_that_are_none_are_none(text: str) -> None:
    assert chosen_ranks(text, [0, 1]) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_names_of_a_job_are_escaped(language: Any) -> None:
    bad = RankStatus(0, HOSTILE, "alive", 1, HOSTILE, "cpu", 0, 1, inside=HOSTILE)
    context = context_of("/live", language=language)
    said = live_words.every_word(context)

    table = rendered(context, "live.html.j2", "ranks", said=said, rows=rank_rows(status(bad), context), more=0)
    captures = rendered(
        context,
        "live.html.j2",
        "captures",
        said=said,
        profiles=[
            {
                "ranks": HOSTILE,
                "state": HOSTILE,
                "error": HOSTILE,
                "places": [{"path": HOSTILE, "url": "", "told": HOSTILE}],
                "is_running": True,
            }
        ],
    )

    assert "<script>alert" not in table + captures
    assert "<img" not in table + captures


@pytest.mark.parametrize("language", ["en", "zh"])
def test_switches_say_who_has_applied_them(language: Any) -> None:
    notes = live_status.switch_notes(
        status(rank_status(0), rank_status(1), pending=[1]), context_of("/live", language=language)
    )

    assert "3" in notes[0] and "someone" in notes[0]
    assert len(notes) == 2


def test_a_profile_below_the_served_directories_is_a_run() -> None:
    context = context_of("/live", [entry("demo/2/captures/abc/recording/rank-2", id="made")])
    one = CaptureStatus("abc", [2], "ended", 0, ["/data/runs/demo/2/captures/abc/recording/rank-2/a.json"])
    other = CaptureStatus("abc", [2], "ended", 0, ["/elsewhere/abc/a.json"])

    (place,), (elsewhere,) = capture_places(one), capture_places(other)
    assert place == "/data/runs/demo/2/captures/abc"
    assert run_at(context, place) == "made"
    assert run_at(context, elsewhere) is None
    assert capture_places(CaptureStatus("abc", [2], "running", 0)) == []


def test_each_rank_of_a_profile_has_a_place() -> None:
    one = CaptureStatus(
        "abc", [0, 1], "ended", 0, [f"/data/demo/{rank}/captures/abc/{n}" for rank in (0, 1) for n in "ab"]
    )

    assert capture_places(one) == ["/data/demo/0/captures/abc", "/data/demo/1/captures/abc"]


def test_a_manager_that_is_away_is_said_with_what_a_server_is_told() -> None:
    pytest.importorskip("grpc")
    from stepscope.live.control.client import NoManager

    english, chinese = (
        live_status.not_up_to_date(NoManager("host:1", "Connection refused"), context_of("/live", language=language))
        for language in ("en", "zh")
    )

    assert "Connection refused" in english and "--live HOST:PORT" in english and "--manager" not in english
    assert "Connection refused" in chinese and "--live" in chinese


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_job_without_ranks_says_how_to_start_one(language: Any) -> None:
    context = context_of("/live", language=language)
    gone = status(rank_status(0, state="lost"), rank_status(1))

    assert "STEPSCOPE_LIVE=1" in live_status.summary(status(), context)
    assert live_status.verdicts(status(), context)["calm"] == ""
    (note,) = live_status.absent(gone, context)
    assert "rank 0" in note
    assert [row["inside"] for row in rank_rows(gone, context) if row["rank"] == 0] == ["-"]


def test_ranks_that_were_mistyped_are_said() -> None:
    assert "“9”; this job has 0" in live_status.figure_hint(status(rank_status(0)), [], context_of("/live?ranks=9"))


def test_the_state_of_the_page_is_in_its_url() -> None:
    assert live_figures.measure_of(State.of("/live?measure=data")) == "data"
    assert live_figures.measure_of(State.of("/live?measure=nothing")) == "step"


def test_words_are_there_in_both_languages() -> None:
    for key, text in live_words.WORDS.items():
        assert text.en and text.zh, key
