"""What a page is built with: the runs, the questions, the state that its URL says, the language of the reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.present import Language
from stepscope.web.addresses import run_path
from stepscope.web.refusals import language_of
from stepscope.web.ui.panels import Panels
from stepscope.web.ui.state import State
from stepscope.web.ui.words import WORDS

if TYPE_CHECKING:
    from starlette.requests import Request

    from stepscope.figures.style import Theme
    from stepscope.web.asking import Asking
    from stepscope.web.catalogue import Catalogue, Entry
    from stepscope.web.kept_files import KeptFiles
    from stepscope.web.settings import Settings

SCHEME_COOKIE = "stepscope_scheme"
"""A cookie that the page's script sets, as that of the language: whether the page is light or dark."""


@dataclass(frozen=True)
class Web:
    """What all pages share."""

    catalogue: Catalogue
    asking: Asking
    settings: Settings
    files: KeptFiles | None = None


@dataclass
class Context:
    """One page that one client looks at.

    Args:
        web: What all pages share.
        state: What its URL says; it changes while the page is open.
        language: Language of its words.
        dark: Whether figures are drawn for a dark page.
        entry: The run that the page is about, as the list of runs has it.
    """

    web: Web
    state: State
    language: Language = "en"
    dark: bool = False
    entry: Entry | None = None
    panels: Panels = field(init=False)

    def __post_init__(self) -> None:
        self.panels = Panels(self)

    @classmethod
    def of(cls, web: Web, request: Request) -> Context:
        """The context of a request for a page."""
        state = State.of(str(request.url))
        language = language_of(request.url.query.encode(), request.headers)
        theme = state.get("theme") or request.cookies.get(SCHEME_COOKIE, "")
        return cls(web, state, language, theme == "dark")

    @property
    def asking(self) -> Asking:
        """Answers questions about runs."""
        return self.web.asking

    @property
    def run(self) -> str:
        """The id of the run that the page is about."""
        assert self.entry is not None
        return self.entry.id

    @property
    def theme(self) -> Theme:
        """Name of the figures' theme."""
        return "dark" if self.dark else "light"

    def word(self, key: str, /, **values: Any) -> str:
        """A word or sentence of the application in the reader's language, with its values filled in."""
        text = WORDS[key].of(self.language)
        return text.format(**values) if values else text

    def link(self, page: str = "", **values: object) -> str:
        """The URL of another page of the same run."""
        return self.state.at(run_path(self.run, page), **values).url
