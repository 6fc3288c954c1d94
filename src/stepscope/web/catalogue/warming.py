"""Asking a run what its pages will ask, so that the answers are kept when somebody opens them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from stepscope.errors import StepscopeError
from stepscope.figures import FIGURES
from stepscope.pages import PAGES
from stepscope.pages.answering import answer
from stepscope.report.answers import answers
from stepscope.report.contents import contents
from stepscope.run import Run

_LOG = logging.getLogger(__name__)


def warm(run: Run, progress: Callable[[float], None]) -> None:
    """Ask everything; a question that fails costs only itself, as the page that asks it will say why.

    Args:
        progress: Called with how much is done, 0 to 1.
    """
    questions = list(_questions(run))
    for number, ask in enumerate(questions):
        try:
            ask()
        except StepscopeError:
            pass
        except Exception as error:
            _LOG.info("a question beforehand failed: %s", error)
        progress((number + 1) / len(questions))


def _questions(run: Run) -> Iterator[Callable[[], object]]:
    yield lambda: contents(run, answers(run), modules=False)
    for figure in FIGURES:
        yield lambda figure=figure: figure.drawn(run)  # type: ignore[misc]
    for page in PAGES:
        if page.scope != "pair":
            yield lambda page=page: answer(run, page)  # type: ignore[misc]
