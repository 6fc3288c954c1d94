"""Events: what becomes one, files and their rotation, the webhook."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from shown_jobs import MS, MadeManager, made_job, slow_rank

from stepscope.errors import StepscopeError
from stepscope.live.control.board import Acknowledgement, Requested
from stepscope.live.control.status import RankChange
from stepscope.live.messages import Captured, Pulse
from stepscope.live.show import event_source, events, webhook
from stepscope.live.show.event_source import source_of
from stepscope.live.show.event_types import AnyEvent, from_json, to_json
from stepscope.live.show.outbox import CannotDeliver, Outbox
from stepscope.live.switches import ALL


@pytest.fixture
def manager() -> MadeManager:
    return made_job()


@pytest.fixture
def seen(manager: MadeManager) -> list[Any]:
    got: list[Any] = []
    source_of(manager).add(got.append)
    return got


def names(seen: list[AnyEvent]) -> list[str]:
    return [json.loads(to_json(event))["event"] for event in seen]


def test_a_verdict_opens_changes_and_is_over(manager: MadeManager, seen: list[Any]) -> None:
    manager.happen(
        slow_rank(),
        slow_rank(cost_ns=63 * MS),  # only a figure, at once: not worth an event
        slow_rank(ranks=[2, 3]),
        slow_rank(ranks=[2, 3], until_step=50, until_at_ns=9),
        slow_rank(ranks=[2, 3], until_step=50, until_at_ns=9),
        slow_rank(),
    )

    assert names(seen) == ["verdict_opened", "verdict_changed", "verdict_over", "verdict_opened"]
    assert [event.number for event in seen] == [1, 2, 3, 4]
    assert seen[0].headline.startswith("Rank 2 computes slowly")


def test_an_explanation_is_reported_at_once(manager: MadeManager, seen: list[Any]) -> None:
    manager.happen(slow_rank(), slow_rank(explanation="aten::mm takes 1.5x as long"))

    assert names(seen) == ["verdict_opened", "verdict_changed"]


def test_figures_that_change_are_reported_again_after_a_while(
    manager: MadeManager, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_source, "FIGURES_EVERY_NS", 0)

    manager.happen(slow_rank(), slow_rank(cost_ns=90 * MS))

    assert names(seen) == ["verdict_opened", "verdict_changed"]


def test_a_switch_is_requested_then_applied_by_all(
    manager: MadeManager, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_source, "LOOK_EVERY_NS", 0)
    asked = Requested(1, ALL, "cli", 1000)

    manager.happen(asked)
    manager.board.acknowledged = {rank: Acknowledgement(1, ALL, 5000 + rank) for rank in range(3)}
    manager.board.acknowledged[3] = Acknowledgement(0, ALL, 1)
    manager.happen(Pulse(rank=0, step=13, idle_ns=0))
    assert names(seen) == ["switch_requested"]
    manager.board.acknowledged[3] = Acknowledgement(1, ALL, 9000)
    manager.happen(Pulse(rank=3, step=13, idle_ns=0), Pulse(rank=3, step=14, idle_ns=0))

    assert names(seen) == ["switch_requested", "switch_applied"]
    assert (seen[1].ranks, seen[1].took_ns) == (4, 8000)
    assert seen[0].on == ["step", "fp", "dataloader", "checkpoint", "communication"]


def test_a_rank_that_cannot_switch_is_reported_once(
    manager: MadeManager, seen: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_source, "LOOK_EVERY_NS", 0)
    manager.board.acknowledged = {1: Acknowledgement(0, ALL, 5, "no hooks")}

    manager.happen(Requested(1, ALL, "cli", 1000), Pulse(rank=0, step=13, idle_ns=0), Pulse(rank=0, step=14, idle_ns=0))

    assert names(seen) == ["switch_requested", "switch_failed"]
    assert (seen[1].rank, seen[1].error) == (1, "no hooks")


def test_ranks_come_and_go(manager: MadeManager, seen: list[Any]) -> None:
    changes = ("joined", "lost", "returned", "restarted", "left")

    manager.happen(*(RankChange(1, change, "node0", "node0:9602", 5) for change in changes))

    assert names(seen) == ["rank_joined", "rank_lost", "rank_returned", "rank_returned", "rank_left"]
    assert [event.restarted for event in seen[2:4]] == [False, True]


def test_captures_begin_and_end(manager: MadeManager, seen: list[Any]) -> None:
    for begun in manager.capture_begun:
        begun("c1", [2, 0])
    manager.happen(Captured(rank=2, capture="c1", files=["/tmp/a.json"]))

    assert names(seen) == ["capture_begun", "capture_ended"]
    assert (seen[0].ranks, seen[1].files) == ([0, 2], ["/tmp/a.json"])


def test_a_storage_problem_is_reported_once_and_when_it_is_over(manager: MadeManager, seen: list[Any]) -> None:
    full = Pulse(rank=1, step=9, idle_ns=0, problem="disk full", dropped=3)

    manager.happen(full, full, Pulse(rank=1, step=10, idle_ns=0, dropped=9))

    assert names(seen) == ["storage_problem", "storage_problem"]
    assert [event.problem for event in seen] == ["disk full", ""]


def test_a_sink_that_fails_costs_the_others_nothing(manager: MadeManager, seen: list[Any]) -> None:
    def fails(event: AnyEvent) -> None:
        raise RuntimeError

    source = source_of(manager)
    later: list[AnyEvent] = []
    source.add(fails)
    source.add(later.append)

    manager.happen(slow_rank())

    assert len(seen) == len(later) == 1


def test_events_survive_json(manager: MadeManager, seen: list[Any]) -> None:
    manager.happen(slow_rank(), RankChange(1, "lost", "node0", "n", 5))

    lines = [to_json(event) for event in seen]

    assert [from_json(line) for line in lines] == seen
    assert json.loads(lines[0])["schema"] == "stepscope.live/1"
    assert json.loads(lines[0])["verdict"]["cause"] == "slow_compute"
    assert from_json(b"{}") is from_json(b"\xff") is from_json(b'{"event":"of_tomorrow"}') is None


def test_events_are_appended_to_a_private_file(manager: MadeManager, tmp_path: Path) -> None:
    file = tmp_path / "room" / "events.jsonl"

    end = events.follow(manager, file)
    manager.happen(slow_rank())
    end()
    manager.happen(slow_rank(3))
    end = events.follow(manager, file)
    manager.happen(slow_rank(4))
    end()

    assert [event.verdict.ranks for event in events.read(file)] == [[2], [4]]  # type: ignore[union-attr]
    assert file.stat().st_mode & 0o777 == 0o600


def test_files_of_events_are_rotated_and_bounded(manager: MadeManager, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"

    end = events.follow(manager, file, most_bytes=2000, kept=2)
    for rank in range(40):
        manager.happen(slow_rank(rank))
    end()
    files = sorted(tmp_path.iterdir())
    kept = [event.number for event in events.read(file)]

    assert [each.name for each in files] == ["events.jsonl", "events.jsonl.1", "events.jsonl.2"]
    assert all(each.stat().st_size <= 2000 for each in files)
    assert kept == list(range(kept[0], 41))


def test_a_file_that_cannot_be_written_is_an_error_with_a_remedy(manager: MadeManager, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")

    for file in (tmp_path, tmp_path / "link"):
        with pytest.raises(StepscopeError, match="--events"):
            events.follow(manager, file)


def test_a_file_that_fails_later_only_loses_events(
    manager: MadeManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    file = tmp_path / "room" / "events.jsonl"
    end = events.follow(manager, file)
    file.unlink()
    file.parent.rmdir()

    manager.happen(slow_rank())
    end()

    assert "The job goes on" in caplog.text


class Hook:
    """A server that keeps what it gets and answers what it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.got.append((dict(self.headers), body))
                self.send_response(hook.answers.pop(0) if hook.answers else 200)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?key=hidden"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setitem(Outbox.__init__.__kwdefaults__, "first_wait_s", 0.01)
    made = Hook()
    yield made
    made.close()


def until(true: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    end = time.monotonic() + timeout_s
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def test_each_event_is_one_request_with_the_secret(manager: MadeManager, hook: Hook) -> None:
    end = webhook.follow(manager, hook.url, header="X-Key", secret="s3cret")
    manager.happen(slow_rank(), slow_rank(3))
    end()

    assert [json.loads(body)["verdict"]["ranks"] for _, body in hook.got] == [[2], [3]]
    assert {headers["X-Key"] for headers, _ in hook.got} == {"s3cret"}
    assert hook.got[0][0]["Content-Type"] == "application/json"


def test_the_secret_comes_from_a_file(
    manager: MadeManager, hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("Bearer abc\n")
    monkeypatch.setenv(webhook.SECRET_FILE_VARIABLE, str(tmp_path / "secret"))

    end = webhook.follow(manager, hook.url)
    manager.happen(slow_rank())
    end()
    monkeypatch.setenv(webhook.SECRET_FILE_VARIABLE, str(tmp_path / "missing"))

    assert hook.got[0][0]["Authorization"] == "Bearer abc"
    with pytest.raises(StepscopeError, match="STEPSCOPE_WEBHOOK_SECRET_FILE"):
        webhook.follow(manager, hook.url)


def test_a_failed_request_is_repeated_in_order(manager: MadeManager, hook: Hook) -> None:
    hook.answers = [500, 503, 200, 429]

    end = webhook.follow(manager, hook.url)
    manager.happen(slow_rank(), slow_rank(3))

    assert until(lambda: len(hook.got) == 5)
    end()
    assert [json.loads(body)["number"] for _, body in hook.got] == [1, 1, 1, 2, 2]


def test_refusals_and_redirects_are_not_repeated(
    manager: MadeManager, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    hook.answers = [403, 302]

    end = webhook.follow(manager, hook.url, secret="s3cret")
    manager.happen(slow_rank(), slow_rank(3), slow_rank(4))
    end()

    assert [json.loads(body)["number"] for _, body in hook.got] == [1, 2, 3]
    assert "403" in caplog.text
    assert "s3cret" not in caplog.text and "hidden" not in caplog.text


def test_an_endpoint_that_is_away_never_holds_up_the_job(
    manager: MadeManager, caplog: pytest.LogCaptureFixture
) -> None:
    end = webhook.follow(manager, "http://127.0.0.1:1/nobody")

    began = time.monotonic()
    for number in range(5000):
        manager.happen(slow_rank(number % 7, key=str(number)))
    took_s = time.monotonic() - began
    end()

    assert took_s < 20  # waiting for one attempt each would take hours
    assert caplog.text.count("no answer") == 1


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http://10.0.0.1/x", "https://user:pw@host/", "https:///x", "nonsense", "https://h:99999/"]
)
def test_other_urls_are_refused(manager: MadeManager, url: str) -> None:
    with pytest.raises(StepscopeError) as refused:
        webhook.follow(manager, url)

    assert "pw@" not in str(refused.value)


def test_a_secret_with_a_line_end_is_refused_without_showing_it(manager: MadeManager) -> None:
    with pytest.raises(StepscopeError, match="one line") as refused:
        webhook.follow(manager, "https://host/x", secret="abc\r\nHost: evil")

    assert "evil" not in str(refused.value)


def test_a_full_outbox_drops_the_oldest() -> None:
    go, got = threading.Event(), list[int]()

    def deliver(item: int) -> None:
        go.wait(10)
        got.append(item)

    box: Outbox[int] = Outbox("box", deliver, most=3)
    box.put(0)
    assert until(lambda: not box._waiting)
    for item in range(1, 7):
        box.put(item)
    go.set()
    box.close()

    assert got == [0, 4, 5, 6]
    assert box.lost == 3


def test_an_outbox_ends_although_nothing_can_be_delivered() -> None:
    def deliver(item: int) -> None:
        raise CannotDeliver("away", again=True)

    box: Outbox[int] = Outbox("box", deliver, first_wait_s=60)
    box.put(1)
    began = time.monotonic()
    box.close(0.1)

    assert time.monotonic() - began < 30
    assert until(lambda: not box._thread.is_alive())
