"""Status lines and the live screen: width, size, hostile names."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from shown_jobs import MadeManager, made_job, slow_rank, status_of

from stepscope.live.control.board import Acknowledgement, Requested
from stepscope.live.messages import Captured, Inside, Pulse
from stepscope.live.show.screen import MEASURES, Screen
from stepscope.live.show.status import Status
from stepscope.live.show.status_lines import lines_of, summary_of
from stepscope.live.switches import ALL
from stepscope.live.verdicts import Cause

EVIL = "evil\x1b[2J[bold red]x[/]{y}\u202e\n" + "a" * 5000


def slowed(**more: object) -> Status:
    manager = made_job(**more)  # type: ignore[arg-type]
    manager.happen(slow_rank())
    return status_of(manager)


def drawn(screen: Screen, width: int = 80, height: int = 24, *, terminal: bool = True) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=terminal,
        color_system="truecolor" if terminal else None,
    )
    console.print(screen, height=height)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    return str(text)


def test_the_verdict_comes_first() -> None:
    lines = lines_of(slowed(slow={2: 1.5}))

    assert lines[0].startswith("Rank 2 computes slowly: 1.50x")
    assert "since step 40; 98 % sure" in lines[1]
    assert any("Job job-7, 4 ranks on 1 host, step 12, 100.00 ms a step" in line for line in lines)


def test_without_a_verdict_the_status_says_so() -> None:
    assert lines_of(status_of(made_job()))[0].startswith("OK: no rank is slow")
    assert lines_of(status_of(made_job(steps=0)))[0].startswith("No steps have been reported yet")
    assert lines_of(status_of(MadeManager()))[0].startswith("No steps have been reported yet")
    assert lines_of(status_of(MadeManager(lag_ns=None)))[0].startswith("Nobody looks for slow ranks")
    assert lines_of(status_of(made_job()), language="zh")[0].startswith("正常")


def test_a_job_that_stands_still_is_not_called_healthy() -> None:
    manager = made_job(ranks=2)
    manager.happen(*(Pulse(rank=rank, step=12, idle_ns=28_000_000_000) for rank in range(2)))

    first = lines_of(status_of(manager))[0]

    assert first.startswith("Nothing happens in training") and "stepscope live stacks" in first


def test_a_job_that_has_ended_is_not_called_healthy() -> None:
    manager = made_job(ranks=2)
    for rank in manager.ranks.values():
        rank.alive = False

    first = lines_of(status_of(manager))[0]

    assert first == "No rank takes part any more: the job has ended, or none of its hosts can be reached"


def test_a_long_name_of_a_job_leaves_room_for_its_ranks_and_steps() -> None:
    status = status_of(made_job(job="default_task_id_b7ec0aac-cb64-4b91-8921-e73a483bbdae_localhost_44027"))

    assert summary_of(status) == "job default_task_id_...host_44027, 4 ranks on 1 host, step 12, 100.00 ms a step"


def test_captures_are_shown_by_their_directories() -> None:
    manager = made_job(ranks=2)
    for rank in range(2):
        made = f"/rec/job-7/{rank}/captures/c1/recording/r"
        manager.happen(Captured(rank=rank, capture="c1", files=[f"{made}/host.csv", f"{made}/marks.csv"]))

    lines = lines_of(status_of(manager))

    assert lines[-2:] == ["  /rec/job-7/0/captures/c1", "  /rec/job-7/1/captures/c1"]


def test_switches_are_told_with_who_asked() -> None:
    manager = made_job()
    manager.board.requested = Requested(1, ALL, "cli", 10**18)
    manager.board.acknowledged[0] = Acknowledgement(1, ALL, 1)

    text = "\n".join(lines_of(status_of(manager)))

    assert "Recording step, forward, data loading, checkpoints and communication (requested by cli, 2001-09-" in text
    assert "Not applied yet by 3 of 4 ranks: 1-3" in text


def test_ranks_in_which_nothing_happens_are_told_with_where_they_are() -> None:
    manager = made_job()
    for rank in (0, 1, 3):
        inside = [Inside("collective", 35 * 10**9, "all_reduce", "dp")]
        manager.happen(Pulse(rank=rank, step=12, idle_ns=(30 + rank) * 10**9, inside=inside))
    manager.happen(Pulse(rank=2, step=12, idle_ns=33 * 10**9))

    lines = lines_of(status_of(manager))

    assert "Nothing has happened for 33.00 s in ranks 0-1,3: in all_reduce in dp" in lines
    assert "Nothing has happened for 33.00 s in rank 2: outside of all that is traced" in lines
    assert "idle" in drawn(Screen(status_of(manager)), terminal=False)


def test_the_table_of_ranks_fits_80_columns_and_summarises_the_rest() -> None:
    manager = made_job(ranks=1024, steps=2, slow={900: 2.0})
    manager.ranks[3].alive = False

    lines = lines_of(status_of(manager), 80)
    table = lines[next(i for i, line in enumerate(lines) if "forward" in line and "rank" in line) :]

    assert all(len(line) <= 80 for line in table[:12])
    assert [line.split()[0] for line in table[1:3]] == ["3", "900"]
    assert "and 1014 ranks more" in table[11]


@pytest.mark.parametrize("ranks", [0, 1, 4, 30, 1024])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (80, 12)])
def test_the_screen_fits_the_terminal(ranks: int, width: int, height: int) -> None:
    manager = made_job(ranks=ranks, steps=60 if ranks < 100 else 3)
    if ranks > 2:
        manager.happen(slow_rank(), slow_rank(1), slow_rank(0), slow_rank(2, key="x", cause=Cause.HANG))

    lines = Screen(status_of(manager)).lines(width, height - 1)

    assert len(lines) <= height - 1
    assert all(cell_len(line.plain) <= width for line in lines)


def test_the_screen_can_be_read_without_colours() -> None:
    manager = made_job(slow={2: 3.0}, steps=10)
    manager.happen(slow_rank())

    text = drawn(Screen(status_of(manager), measure=MEASURES.index("forward")), terminal=False)
    row = next(line for line in text.splitlines() if line.startswith("!     2"))

    assert "\x1b" not in text
    assert "@@@@@@@@@@" in row
    assert "! Rank 2 computes slowly" in text


def test_the_screen_says_why_where_there_is_room() -> None:
    manager = made_job()
    why = "In its profile, rank 2 works 39.37 ms (37%) longer per step than rank 0. " * 6
    manager.happen(slow_rank(explanation=why))

    text = drawn(Screen(status_of(manager)), terminal=False)

    assert "  In its profile, rank 2 works 39.37 ms (37%) longer per step than rank 0." in text
    assert text.count("39.37 ms") < 6 and " ...\n" in text
    assert "Compare the profiles in detail" in text
    assert all(f"\n{'!' if rank == 2 else ' '}     {rank} " in text for rank in range(4))
    manager.happen(slow_rank(3, explanation="It waits for the disk. " * 9))
    two = drawn(Screen(status_of(manager)), terminal=False)
    assert "  In its profile, rank 2 works" in two and "  It waits for the disk." in two


def test_the_worst_ranks_are_shown_and_the_rest_is_summarised() -> None:
    manager = made_job(ranks=1024, steps=3, slow={700: 2.0})
    manager.happen(slow_rank(5))

    text = drawn(Screen(status_of(manager)), terminal=False)

    assert "\n!     5 " in text
    assert "\n    700 " in text
    assert "ranks more, none worse: " in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_names_do_nothing(language: str) -> None:
    manager = MadeManager(job=EVIL)
    for rank in range(3):
        manager.join(rank, host=EVIL, directory=f"/{EVIL}/{rank}", framework=EVIL, device=EVIL)
    manager.board.requested = Requested(1, ALL, EVIL, 5)
    manager.board.acknowledged[0] = Acknowledgement(1, ALL, 5, EVIL)
    manager.happen(slow_rank(hosts=[EVIL], explanation=EVIL, group=EVIL))
    status = status_of(manager)

    text = drawn(Screen(status, problem=EVIL, language=language), terminal=False)
    lines = lines_of(status, 80, language)

    assert not any(c in text + "".join(lines) for c in "\x1b\u202e")
    assert len(text.splitlines()) <= 24
    assert all("\n" not in line and len(line) < 1500 for line in lines)


def test_nothing_is_known_at_first() -> None:
    text = drawn(Screen(None, problem="127.0.0.1:9601: no answer"), terminal=False)

    assert "waiting for the manager" in text
    assert "no answer" in text
