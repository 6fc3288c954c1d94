"""What parts of a page need of the page that they are on."""

from __future__ import annotations

from typing import Any, Protocol

from stepscope.present import Language
from stepscope.web.ui.state import State


class Reader(Protocol):
    """A page with a state, read in a language; see `Context`."""

    state: State
    language: Language

    def word(self, key: str, /, **values: Any) -> str:
        """A word or sentence of the application in the reader's language."""
