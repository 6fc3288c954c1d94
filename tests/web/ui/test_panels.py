"""Panels show what the last state asks for, whatever is answered first."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("nicegui")

from stepscope.web.ui import panels
from stepscope.web.ui.panels import Panel
from stepscope.web.ui.state import State


class Element:
    """As much of an element of a page as a panel needs."""

    def __init__(self, *_: object) -> None:
        self.is_deleted = False
        self.props: dict[str, str] = {}
        self.default_slot = SimpleNamespace(children=[])

    def classes(self, *_: object, **__: object) -> Element:
        return self

    clear = classes

    def __enter__(self) -> Element:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(panels, "ui", SimpleNamespace(element=Element))
    return []


async def _answered_late(shown: list[str], *, is_left: bool) -> None:
    """A first question is answered after the second, or after the reader has left the page."""
    context: Any = SimpleNamespace(state=State.of("/?rank=1"), language="en", word=str)
    answers = {rank: asyncio.Event() for rank in ("1", "2")}

    async def load(state: State) -> str:
        await answers[state.get("rank")].wait()
        return state.get("rank")

    panel = Panel(context, "a", load, lambda found, _: shown.append(found))
    first = asyncio.ensure_future(panel.fill())
    await asyncio.sleep(0)
    if is_left:
        cast(Any, panel)._element.is_deleted = True
    else:
        context.state = State.of("/?rank=2")
        answers["2"].set()
        await panel.fill()
    answers["1"].set()
    await first


def test_an_answer_to_an_earlier_state_does_not_take_the_place_of_a_later_one(shown: list[str]) -> None:
    asyncio.run(_answered_late(shown, is_left=False))

    assert shown == ["2"]


def test_nothing_is_shown_on_a_page_that_was_left(shown: list[str]) -> None:
    asyncio.run(_answered_late(shown, is_left=True))

    assert shown == []
