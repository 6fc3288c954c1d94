"""Parts of a page that are filled, and filled anew when the state changes, each by itself.

A page is sent with all that is known within a moment; what takes longer shows that it is being computed, and comes
over the websocket. A link or form that is marked `data-go` changes the state: the page's script tells the server the
new URL, and the panels that read one of the changed parameters are filled again. Where that does not work (no
websocket, another path), the browser just goes to the URL.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nicegui import background_tasks, ui

from stepscope.errors import StepscopeError
from stepscope.web.errors import NotReady
from stepscope.web.ui.html import paragraph
from stepscope.web.ui.reader import Reader
from stepscope.web.ui.state import State
from stepscope.web.ui.wording import worded

if TYPE_CHECKING:
    from nicegui.element import Element

T = TypeVar("T")

AT_ONCE_S = 0.5
"""What is known within this time is part of the page as it is sent, in seconds."""

AGAIN_S = 1.0
"""Seconds until a run that is still being read is asked again."""

EVENT = "stepscope_go"

ANY = ("*",)
"""What a panel reads that depends on everything in the state."""

log = logging.getLogger("stepscope.web")


class Panel(Generic[T]):
    """A part of a page.

    Args:
        context: The page.
        key: Its name, unique on the page: it becomes the element's id.
        load: Asks what it shows, for a state; raises `StepscopeError` if there is nothing, with the reason.
        show: Makes the elements of what was loaded; called inside the panel.
        reads: Names of parameters that it depends on. A name that ends with a dot stands for all that begin with it.
    """

    def __init__(
        self,
        context: Reader,
        key: str,
        load: Callable[[State], Awaitable[T]],
        show: Callable[[T, State], Any],
        reads: Collection[str] = (),
    ) -> None:
        self._context, self._load, self._show = context, load, show
        self._reads = (*reads, f"{key}.")
        self._turn = 0
        self._element: Element = ui.element("div").classes("panel")
        self._element.props["id"] = key

    def depends_on(self, names: Collection[str]) -> bool:
        """Whether it shows something else if these parameters change."""
        return any(
            read in (name, "*") or (read.endswith(".") and name.startswith(read))
            for name in names
            for read in self._reads
        )

    async def fill(self) -> None:
        """Show what the present state asks for: at once if it is known soon, later otherwise."""
        self._turn += 1
        turn, state = self._turn, self._context.state
        self._element.props["data-state"] = "loading"
        task = asyncio.ensure_future(self._load(state))
        done, _ = await asyncio.wait({task}, timeout=AT_ONCE_S)
        if turn != self._turn or self._element.is_deleted:  # asked for something else meanwhile, or left
            return
        if done:
            self._put(task, state)
            return
        self._element.classes(add="waiting")
        if not self._element.default_slot.children:
            with self._element:
                paragraph(self._context.word("computing"), "computing")
        background_tasks.create(self._later(task, state, turn), name="panel")

    async def _later(self, task: asyncio.Future[T], state: State, turn: int) -> None:
        await asyncio.wait({task})
        if turn == self._turn and not self._element.is_deleted:
            self._put(task, state)

    def _put(self, task: asyncio.Future[T], state: State) -> None:
        self._element.classes(remove="waiting").props["data-state"] = "filled"
        self._element.clear()
        error = task.exception()
        with self._element:
            if error is None:
                try:
                    self._show(task.result(), state)
                    return
                except Exception as caught:
                    error = caught
                    self._element.clear()
            if isinstance(error, NotReady):
                paragraph(str(error), "computing")
                background_tasks.create(self._again(self._turn), name="panel again")
            elif isinstance(error, StepscopeError):
                paragraph(worded(error.marked, self._context.language), "empty")
            else:
                log.error("%s: %s: %s", self._context.state.path, type(error).__name__, error, exc_info=error)
                paragraph(self._context.word("failed", error=type(error).__name__), "empty")

    async def _again(self, turn: int) -> None:
        await asyncio.sleep(AGAIN_S)
        if turn == self._turn and not self._element.is_deleted:
            await self.fill()


def look_every(seconds: float, look: Callable[[], Any]) -> None:
    """Call a function again and again while the page is open, for the first time after it is sent.

    NiceGUI sends a page as soon as a timer waits for the browser: one that began at once would send empty panels, which
    all had to follow over the websocket.
    """
    ui.timer(seconds, look, immediate=False)


class Panels:
    """The panels of a page."""

    def __init__(self, context: Reader) -> None:
        self._context = context
        self._all: list[Panel[Any]] = []
        self._followers: list[Callable[[State], Any]] = []

    def add(
        self,
        key: str,
        load: Callable[[State], Awaitable[T]],
        show: Callable[[T, State], Any],
        reads: Collection[str] = (),
    ) -> Panel[T]:
        """Add a panel where the page is being built; see `Panel`."""
        panel = Panel(self._context, key, load, show, reads)
        self._all.append(panel)
        return panel

    def follow(self, changed: Callable[[State], Any]) -> None:
        """Call a function with each new state, before panels are filled."""
        self._followers.append(changed)

    async def fill(self) -> None:
        """Fill all panels, as far as they are known soon."""
        await asyncio.gather(*(panel.fill() for panel in self._all))

    def listen(self) -> None:
        """Follow the links and forms of the page."""
        ui.on(EVENT, lambda event: self.go(str(event.args)))

    async def go(self, url: str) -> None:
        """Change the state: fill the panels that it concerns again."""
        state = State.of(url)
        before = self._context.state
        if state.path != before.path:
            ui.navigate.to(state.url)
            return
        self._context.state = state
        names = before.differs(state)
        for changed in self._followers:
            changed(state)
        await asyncio.gather(*(panel.fill() for panel in self._all if panel.depends_on(names)))
