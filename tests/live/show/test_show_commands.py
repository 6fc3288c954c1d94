"""`stepscope live status` and `watch` against a manager's real gRPC service."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from shown_jobs import MadeManager, made_job, slow_rank

pytest.importorskip("grpc")

from stepscope.cli import main
from stepscope.live.control.client import call
from stepscope.live.control.security import Security
from stepscope.live.control.service import serve_manager
from stepscope.live.show import answers
from stepscope.live.show.event_types import from_json


class Served:
    """A made-up manager behind the real service, in a thread with its own event loop."""

    def __init__(self, manager: MadeManager) -> None:
        self.manager = manager
        self.port = 0
        self.later: tuple[object, ...] = ()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)
        self.thread.start()
        assert self.ready.wait(20)

    async def _serve(self) -> None:
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        security = Security()
        server = security.server()
        answer = answers.status(self.manager)

        def status() -> bytes:
            text = answer()
            later, self.later = self.later, ()
            self.manager.happen(*later)
            return text

        serve_manager(server, self.manager, status=status, subscribe=answers.subscribe(self.manager))
        self.port = security.add_port(server, "127.0.0.1", 0)
        await server.start()
        self.ready.set()
        await self.ended.wait()
        await server.stop(0)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def happen(self, *events: object) -> None:
        self.loop.call_soon_threadsafe(lambda: self.manager.happen(*events))

    def after_the_first_status(self, *events: object) -> None:
        self.later = events

    def close(self) -> None:
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.ended.set)
            self.thread.join(20)


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served(made_job(slow={2: 2.0}, steps=30))
    yield made
    made.close()


def test_the_status_is_printed_and_the_exit_code_says_whether_a_verdict_is_open(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["live", "status", "--manager", served.address]) == 0
    quiet = capsys.readouterr().out
    served.happen(slow_rank())
    assert main(["live", "status", "--manager", served.address]) == 1
    slow = capsys.readouterr().out

    assert quiet.startswith("OK: no rank is slow")
    assert slow.startswith("Rank 2 computes slowly: 1.50x")
    assert "\x1b" not in slow


def test_the_status_can_be_had_in_chinese_and_as_json(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.happen(slow_rank())

    main(["live", "status", "--manager", served.address, "--lang", "zh"])
    chinese = capsys.readouterr().out
    main(["live", "status", "--manager", served.address, "--json"])
    status = json.loads(capsys.readouterr().out)

    assert chinese.startswith("Rank 2 计算慢")
    assert (status["version"], status["job"], len(status["ranks"])) == (1, "job-7", 4)
    assert status["open"][0]["verdict"]["ranks"] == [2]


def test_a_terminal_of_80_columns_is_enough(served: Served) -> None:
    served.manager.ranks[1].hello = type(served.manager.ranks[1].hello)(
        job="job-7", rank=1, pid=1, host="h" * 5000, started_at_ns=1, directory="/" + "d" * 5000 + "/1"
    )
    served.happen(slow_rank(), slow_rank(explanation="kernel " * 100, key="b"))

    code, text = in_terminal(["live", "status", "--manager", served.address], b"", rows=24, until="Records")
    lines = text.replace("\r", "").split("\n")

    assert code == 1
    assert any("rank host" in line for line in lines)
    assert all(cell_len(line) <= 80 for line in lines if "/ddd" not in line)


def test_without_a_manager_the_remedy_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "status", "--manager", "127.0.0.1:1"]) == 2
    assert main(["live", "watch", "--manager", "127.0.0.1:1"]) == 2

    assert capsys.readouterr().err.count("stepscope live manager") == 2


def test_the_manager_of_another_job_refuses(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "status", "other", "--manager", served.address]) == 2

    assert "serves job job-7, not other" in capsys.readouterr().err


def test_watch_prints_lines_where_there_is_no_terminal(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    served.happen(slow_rank())
    served.after_the_first_status(slow_rank(until_step=60, until_at_ns=5), slow_rank(3))

    assert main(["live", "watch", "--manager", served.address, "--seconds", "2.5"]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert "\x1b" not in "".join(lines)
    assert "Rank 2 computes slowly" in lines[0]
    assert "job job-7, 4 ranks on 1 host" in lines[1]
    assert any("over: Rank 2 computes slowly" in line for line in lines[2:])
    assert any("Rank 3 computes slowly" in line for line in lines[2:])
    assert len(lines) == 4


def test_watch_draws_a_screen_and_q_ends_it(served: Served) -> None:
    served.happen(slow_rank())

    code, text = in_terminal(["live", "watch", "--manager", served.address], b"mq", until="q quit")

    assert code == 0
    assert "Rank 2 computes slowly" in text
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1


def test_ctrl_c_ends_watching_and_leaves_the_terminal_as_it_was(served: Served) -> None:
    code, text = in_terminal(["live", "watch", "--manager", served.address], b"\x03", until="q quit")

    assert code in (0, 130)
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1
    assert "Traceback" not in text


def test_watch_goes_on_while_the_manager_is_away(served: Served) -> None:
    code, text = in_terminal(
        ["live", "watch", "--manager", served.address], b"q", until="q quit", then=served.close, until_then="no manager"
    )

    assert code == 0
    assert "no manager answers" in text


def test_events_are_streamed(served: Served) -> None:
    async def first(client: object) -> bytes:
        async for text, _ in client.events(["verdict_opened"]):  # type: ignore[attr-defined]
            return bytes(text)
        return b""

    later = threading.Timer(0.5, lambda: served.happen(slow_rank()))
    later.start()
    event = from_json(call(first, served.address))

    assert event is not None
    assert event.verdict == slow_rank()  # type: ignore[union-attr]


def in_terminal(
    words: list[str],
    keys: bytes,
    *,
    rows: int = 24,
    until: str = "",
    then: object = None,
    until_then: str = "",
) -> tuple[int, str]:
    """Run stepscope in a terminal of 80 columns; when `until` was printed, press keys. Its exit code and output."""
    import fcntl
    import pty
    import struct
    import termios

    terminal, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    before = termios.tcgetattr(inside)
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": str(rows)}
    source = str(Path(__file__).parents[3] / "src")
    process = subprocess.Popen(
        [sys.executable, "-m", "stepscope", *words],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        env={**environment, "PYTHONPATH": source},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - so that Ctrl-C is a signal
    )
    text, waiting, end = "", [(until, then), (until_then, None)] if then else [(until, None)], time.monotonic() + 40
    while time.monotonic() < end:
        if waiting and waiting[0][0] in text:
            _, act = waiting.pop(0)
            if act is not None:
                act()  # type: ignore[operator]
            if not waiting and keys:
                os.write(terminal, keys)
        readable, _, _ = select.select([terminal], [], [], 0.2)
        if readable:
            text += os.read(terminal, 65536).decode("utf-8", "replace")
        elif process.poll() is not None:
            break
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
    after = termios.tcgetattr(inside)
    os.close(terminal)
    os.close(inside)
    assert after == before
    return process.returncode, text
