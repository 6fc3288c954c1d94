"""What the sections and figures of a page are about: the run of the page, or two runs that are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlencode

from stepscope.errors import StepscopeError
from stepscope.pages.base import CHOOSING, RANKS, STEP, STEPS, Option, Page
from stepscope.web.addresses import PREFIX, run_path
from stepscope.web.asking import Made, hashable
from stepscope.web.ui.choosing import OF_JOB, OF_RANK, rank_of, ranks_of
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.pages.answering import Answered, Request
    from stepscope.pages.base import Section
    from stepscope.web.ui.context import Context

T = TypeVar("T")


class SaidAbove(StepscopeError):
    """Why there is no comparison at all, which the page says once."""


SIDES = ("base", "new")
"""Parameters that choose the two runs of a comparison."""


class Subject(Protocol):
    """Whom a page asks."""

    @property
    def reads(self) -> Sequence[str]:
        """Parameters that choose it."""
        ...

    def runs(self, state: State) -> Sequence[str]:
        """Ids of the runs on which its answers depend."""
        ...

    async def answered(self, page: Page, request: Request, state: State) -> Answered:
        """The answers of a page about it."""
        ...

    async def of_figure(
        self,
        made: Made[T],
        name: str,
        options: Mapping[str, Any],
        state: State,
        *,
        by_rank: bool = False,
        by_step: bool = False,
    ) -> T:
        """What is made of a figure of it.

        Args:
            by_rank: Of the one rank that the state chooses, not of the job.
            by_step: Of the steps that the state chooses.
        """
        ...

    def address(self, page: Page, section: Section, values: Mapping[str, str], state: State) -> str:
        """Where programs get all rows of a section."""
        ...


@dataclass(frozen=True)
class OfRun:
    """The run that a page is about."""

    context: Context

    reads = ()

    def runs(self, state: State) -> Sequence[str]:  # noqa: ARG002 - one signature for all
        """See `Subject`."""
        return (self.context.run,)

    async def answered(self, page: Page, request: Request, state: State) -> Answered:  # noqa: ARG002
        """See `Subject`."""
        return await self.context.asking.answered(self.context.run, page, request)

    async def of_figure(
        self,
        made: Made[T],
        name: str,
        options: Mapping[str, Any],
        state: State,
        *,
        by_rank: bool = False,
        by_step: bool = False,
    ) -> T:
        """See `Subject`."""
        context = self.context
        ranks: Any = await (rank_of if by_rank else ranks_of)(context, state)
        steps = steps_of(STEP if by_rank else STEPS, state) if by_step else None
        layout = None if by_rank else state.get("layout") or None
        return await context.asking.of_figure(made, context.run, name, context.language, options, ranks, steps, layout)

    def address(self, page: Page, section: Section, values: Mapping[str, str], state: State) -> str:  # noqa: ARG002
        """See `Subject`."""
        return f"{PREFIX}{run_path(self.context.run)}/pages/{page.name}/{section.key}?{urlencode(values)}"


@dataclass(frozen=True)
class OfWholeRun(OfRun):
    """The run that a page is about, whatever ranks and steps were chosen on the pages before."""

    async def answered(self, page: Page, request: Request, state: State) -> Answered:
        """See `Subject`."""
        return await super().answered(page, replace(request, ranks=None, steps=None), state)

    async def of_figure(
        self,
        made: Made[T],
        name: str,
        options: Mapping[str, Any],
        state: State,
        *,
        by_rank: bool = False,
        by_step: bool = False,
    ) -> T:
        """See `Subject`."""
        whole = state.elsewhere(state.path)
        return await super().of_figure(made, name, options, whole, by_rank=by_rank, by_step=by_step)

    def address(self, page: Page, section: Section, values: Mapping[str, str], state: State) -> str:
        """See `Subject`."""
        own = {name: value for name, value in values.items() if name not in (RANKS.name, STEPS.name)}
        return super().address(page, section, own, state)


@dataclass(frozen=True)
class OfPair:
    """Two runs that the state names, which may be the same."""

    context: Context

    reads = SIDES

    def runs(self, state: State) -> tuple[str, str]:
        """The ids of base and new run; one that is not given is the other one.

        Raises:
            StepscopeError: If none is given.
        """
        base, new = (state.get(side) for side in SIDES)
        if not (base or new):
            raise StepscopeError("no run is chosen. Choose a base and a new run above")
        return base or new, new or base

    async def answered(self, page: Page, request: Request, state: State) -> Answered:
        """See `Subject`."""
        try:
            await self.whole(state)
        except StepscopeError as error:
            raise SaidAbove from error
        return await self.context.asking.pair(*self.runs(state), page, request)

    async def whole(self, state: State) -> Answered:
        """The two sides, with how their steps differ.

        Raises:
            StepscopeError: If they cannot be compared.
        """
        from stepscope.pages.answering import Request
        from stepscope.pages.compare import PAGE

        ranks, steps = state.get("ranks") or None, state.get("steps") or None
        request = Request(ranks, steps, PAGE.sections[0].key, options=options_of(PAGE, state))
        return await self.context.asking.pair(*self.runs(state), PAGE, request)

    async def of_figure(  # ranks and steps are those of the sides
        self,
        made: Made[T],
        name: str,
        options: Mapping[str, Any],
        state: State,
        *,
        by_rank: bool = False,  # noqa: ARG002 - one signature for all
        by_step: bool = False,  # noqa: ARG002
    ) -> T:
        """See `Subject`."""
        from stepscope.figures import figure_named

        language, figure, asking = self.context.language, figure_named(name), self.context.asking
        runs = self.runs(state)
        stamps = asking.stamps(runs)
        try:
            answered = await self.whole(state)
        except StepscopeError as error:
            raise SaidAbove from error
        key = ("figure", made.key, stamps, name, language, hashable((options, answered.request)))
        return await asking.ask(key, lambda: made.of(figure.drawn(answered.run, language=language, **options)), runs)

    def address(self, page: Page, section: Section, values: Mapping[str, str], state: State) -> str:  # noqa: ARG002
        """See `Subject`."""
        base, new = self.runs(state)
        return f"{PREFIX}/compare/{quote(section.key)}?{urlencode({'base': base, 'new': new, **values})}"


def steps_of(option: Option, state: State) -> Any:
    """The steps that the state chooses; None for all.

    Args:
        option: That of a page about one rank, which is one step, or about a job.

    Raises:
        StepscopeError: If the one step is no number.
    """
    text = state.get(option.name)
    if option.name == STEP.name and text and state.number(option.name) is None:
        raise StepscopeError(f"{option.name} {text}: give a whole number")
    return (state.number(option.name) if option.name == STEP.name else text) if text else None


def options_of(page: Page, state: State) -> dict[str, Any]:
    """The options of a declared page that the state gives.

    Raises:
        StepscopeError: If a value is not of its kind, or below the minimum.
    """
    given = {option.name: state.get(option.name) for option in page.options if state.get(option.name)}
    kinds = {option.name: option for option in page.options}
    return {name: True if kinds[name].kind == "flag" else kinds[name].parsed(value) for name, value in given.items()}


def read_by(page: Page) -> list[str]:
    """Parameters that choose the ranks and steps of a declared page, and its options."""
    own = [option.name for option in (*page.options, *CHOOSING[page.scope])]
    return [*own, *{"rank": OF_RANK, "job": OF_JOB, "pair": ()}[page.scope]]
