"""`stepscope live watch`: a live screen of a running job."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.connecting import ChosenManager, JobArgument, asks_manager, status_of
from stepscope.cli.options import LanguageOption
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.client import Client
    from stepscope.live.show.status import Status
    from stepscope.present import Language

EVERY_S = 0.5
LINE_EVERY_S = 10.0
"""Not on a terminal: a line about the job this often; verdicts at once."""


@asks_manager
def watch(
    job: JobArgument = "",
    seconds: Annotated[
        float | None,
        typer.Option(help="End after this many seconds. Default: until q or Ctrl-C.", metavar="S", show_default=False),
    ] = None,
    language: LanguageOption = "en",
    *,
    manager: ChosenManager,
) -> None:
    """Watch a running job: step times of its ranks as a map, verdicts, switches; twice a second.

    Keys: q quits, m changes what the map shows (step, data wait, forward). If the output is not a terminal, lines are
    printed instead: a verdict when it opens, changes or is over, and the state of the job every 10 s.
    """

    async def run() -> None:
        async with manager.connected(job) as client:
            watching = Watching(client, time.monotonic() + seconds if seconds is not None else None)
            if sys.stdout.isatty():
                await _on_screen(watching, language)
            else:
                await _as_lines(watching, language)

    with suppress(KeyboardInterrupt):
        asyncio.run(run())


@dataclass
class Watching:
    """Asks for the status, again and again."""

    client: Client
    end_s: float | None
    status: Status | None = None
    problem: str = ""
    asked: int = field(default=0, init=False)

    async def ask(self) -> None:
        """Get the status; a manager that is away is a problem that may pass, unless it is so from the beginning.

        Raises:
            StepscopeError: If it cannot be asked at all.
        """
        self.asked += 1
        try:
            self.status, self.problem = await status_of(self.client), ""
        except StepscopeError as error:
            if self.status is None:
                raise
            self.problem = str(error)

    @property
    def is_over(self) -> bool:
        """Whether the time to watch is over."""
        return self.end_s is not None and time.monotonic() >= self.end_s


async def _on_screen(watching: Watching, language: Language) -> None:
    from rich.live import Live

    from stepscope.cli.output import Output
    from stepscope.live.show.screen import MEASURES, Screen

    await watching.ask()
    measure = 0
    async with _keys() as keys:
        with Live(console=Output(), screen=True, auto_refresh=False) as live:
            while not watching.is_over:
                live.update(Screen(watching.status, watching.problem, measure, language), refresh=True)
                asked = asyncio.create_task(_ask_later(watching))
                key = await _next_key(keys, asked)
                if key in ("q", "Q", "\x03", "\x04", ""):
                    asked.cancel()
                    with suppress(asyncio.CancelledError):
                        await asked
                    return
                if key in ("m", "M"):
                    measure = (measure + 1) % len(MEASURES)
                if key is not None:
                    asked.cancel()
                    with suppress(asyncio.CancelledError):
                        await asked


async def _ask_later(watching: Watching) -> None:
    await asyncio.sleep(EVERY_S)
    await watching.ask()


async def _next_key(keys: asyncio.Queue[str], asked: asyncio.Task[None]) -> str | None:
    """The next key, or None when the status has come before one; raises what asking for it has raised."""
    pressed = asyncio.create_task(keys.get())
    try:
        await asyncio.wait({pressed, asked}, return_when=asyncio.FIRST_COMPLETED)
        if pressed.done():
            return pressed.result()
        asked.result()
        return None
    finally:
        pressed.cancel()


@asynccontextmanager
async def _keys() -> AsyncIterator[asyncio.Queue[str]]:
    """Keys as they are pressed, without waiting for the end of a line; an empty text is the end of the input."""
    keys: asyncio.Queue[str] = asyncio.Queue()
    if not sys.stdin.isatty():
        yield keys
        return
    descriptor, loop = sys.stdin.fileno(), asyncio.get_running_loop()
    with _single_keys(descriptor):
        loop.add_reader(descriptor, lambda: keys.put_nowait(os.read(descriptor, 1).decode("latin-1")))
        try:
            yield keys
        finally:
            loop.remove_reader(descriptor)


@contextmanager
def _single_keys(descriptor: int) -> Iterator[None]:
    """The terminal passes on keys at once and does not print them; as before when this ends."""
    import termios
    import tty

    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def _as_lines(watching: Watching, language: Language) -> None:
    from stepscope.cli.output import Output
    from stepscope.live.show.status_lines import summary_of

    out, told, line_s = Output(), dict[str, str](), float("-inf")
    while True:
        await watching.ask()
        if watching.status is not None:
            for line in _news(watching.status, told, language, is_first=watching.asked == 1):
                out.say(line)
            if time.monotonic() - line_s >= LINE_EVERY_S:
                line_s = time.monotonic()
                out.say(f"{_clock()} {watching.problem or summary_of(watching.status)}")
            sys.stdout.flush()
        if watching.is_over:
            return
        await asyncio.sleep(EVERY_S)


def _news(status: Status, told: dict[str, str], language: Language, *, is_first: bool) -> Iterator[str]:
    """Lines about verdicts that are new, have changed or are over; at first only about those that last."""
    from stepscope.live.show.sentences import circumstances, headline

    for one in (*status.open, *status.over):
        verdict = one.verdict
        state = f"{verdict.cause.value} {verdict.ranks} {verdict.hosts} {verdict.is_over} {verdict.explanation}"
        known = told.get(verdict.key)
        told[verdict.key] = state
        if known == state or (is_first and verdict.is_over):
            continue
        mark = "over: " if verdict.is_over else ""
        yield f"{_clock()} {mark}{headline(verdict, language)} ({circumstances(verdict, language)})"


def _clock() -> str:
    return time.strftime("%H:%M:%S")
