"""A running job: steps as they come, who is slow, what is recorded, and profiles of ranks at a click.

What is shown is asked of the manager of the job, as `stepscope live status` asks it. What changes the job (switches,
profiles) happens by a button and a confirmation, never by an address, and only on a server whose clients give a token.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from nicegui import background_tasks, ui

from stepscope.errors import StepscopeError
from stepscope.web.live_jobs import EVERY_S, MEASURES, MOST_STEPS, LiveJob
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, form, select
from stepscope.web.ui.frame import frame, overview_link
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.pages.live_figures import LINES, chosen_ranks, drawn_ranks, heat_map, lines, measure_of
from stepscope.web.ui.pages.live_status import (
    SHOWN_RANKS,
    absent,
    capture_places,
    captured,
    figure_hint,
    is_served,
    named,
    not_up_to_date,
    rank_rows,
    records,
    run_at,
    summary,
    switch_notes,
    verdicts,
)
from stepscope.web.ui.pages.live_words import WORDS, every_word, said
from stepscope.web.ui.panels import AT_ONCE_S, look_every
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from nicegui.element import Element

    from stepscope.live.control.client import Answers, Switched
    from stepscope.live.show.status import CaptureStatus, Status

USUAL_STEPS = 8


async def build(context: Context, job: LiveJob | None) -> None:
    """Build the page.

    Args:
        job: The job to show; None if the server was told of none.
    """
    title = context.word("live")
    with frame(context, title):
        if job is None:
            paragraph(said(context, "how"), "empty")
            raw(rendered(context, "live.html.j2", "records", said=every_word(context), runs=records(context)))
        else:
            paragraph(said(context, "about"), "intro")
            await _Page(context, job).build()
    context.panels.listen()


class _Page:
    """What one client sees of a job."""

    def __init__(self, context: Context, job: LiveJob) -> None:
        self.context, self.job = context, job
        self.drawn_s = float("-inf")
        self.can_act = context.web.settings.token is not None
        self.plots: dict[str, Any] = {}

    async def build(self) -> None:
        """Make the parts, which are filled whenever the manager has answered."""
        self.top = ui.element("div").props('role="status"')
        self.fields = ui.element("div").classes("page-fields")
        self.figures = ui.element("div")
        with self.figures:
            self.hint = ui.element("div")
            self.plots_place = ui.element("div").classes("live-figures")
        self.ranks = ui.element("div")
        with ui.element("div").classes("live-actions"):
            self.switches = ui.element("section")
            self.profile = ui.element("section")
        self.asked = ui.element("div").props('role="status"')
        self.captures = ui.element("div")
        self.records = ui.element("div")
        self._fields()
        self.context.panels.follow(self._changed)
        looking = asyncio.ensure_future(self.job.look())
        await asyncio.wait({looking}, timeout=AT_ONCE_S)  # a manager that hangs would hold up the page
        self._show()
        look_every(EVERY_S, self._tick)

    async def _tick(self) -> None:
        await self.job.look()
        if self.job.asked_s != self.drawn_s:
            self._show()

    def _changed(self, _: State) -> None:
        self._fields()
        self.drawn_s = float("-inf")
        self._show()

    def _fields(self) -> None:
        context = self.context
        choices = [(measure, WORDS[measure]) for measure in MEASURES]
        controls = [
            select("measure", WORDS["measure"], context, *choices),
            Control("ranks", said(context, "ranks"), placeholder=said(context, "all")),
        ]
        self.fields.clear()
        with self.fields:
            raw(form(context, context.state, controls))

    def _show(self) -> None:
        context, status = self.context, self.job.status
        self.drawn_s = self.job.asked_s
        self._put(
            self.top,
            "top",
            status=status and summary(status, context),
            notes=[] if status is None else absent(status, context),
            problem=not_up_to_date(self.job.problem, context),
            **verdicts(status, context),
        )
        self._put(self.records, "records", runs=records(context))
        has_steps = status is not None and any(self.job.steps.get(one.rank) for one in status.ranks)
        for part in (self.fields, self.figures):
            part.set_visibility(has_steps)
        if status is None:
            return
        if has_steps:
            self._figures(status)
        self._put(self.ranks, "ranks", rows=rank_rows(status, context), more=max(len(status.ranks) - SHOWN_RANKS, 0))
        self._switches(status)
        self._profile(status)
        self._put(self.captures, "captures", profiles=[self._capture(one) for one in status.captures])

    def _put(self, place: Element, macro: str, **values: Any) -> None:
        markup = rendered(self.context, "live.html.j2", macro, said=every_word(self.context), **values)
        children = place.default_slot.children
        if not children:
            with place:
                raw(markup)
        elif children[0].content != str(markup):  # type: ignore[attr-defined] # what `raw` makes
            children[0].set_content(str(markup))  # type: ignore[attr-defined]

    def _figures(self, status: Status) -> None:
        context, measure = self.context, measure_of(self.context.state)
        chosen = drawn_ranks(status, self.job.steps, context.state.get("ranks"))
        title = said(context, measure)
        self._put(self.hint, "hint", text=figure_hint(status, chosen, context))
        self.plots_place.set_visibility(bool(chosen))
        if not chosen:
            return
        drawn = {
            "lines": lines({rank: self.job.steps[rank] for rank in chosen[:LINES]}, measure, context),
            "map": heat_map({rank: self.job.steps[rank] for rank in sorted(chosen)}, measure, context),
        }
        for name, spec in drawn.items():
            plot = self.plots.get(name)
            height = f"height: {spec['layout']['height']}px"
            if plot is not None:
                plot.update_figure(spec)
                plot.style(height)
                continue
            with self.plots_place, ui.element("figure").classes("drawn").props(f'id="drawn-live-{name}"'):
                heading = ui.element("div")
                plot = self.plots[name] = ui.plotly(spec).classes("plot")
                plot.props(f'role="img" aria-label="{said(context, name).format(measure=title)}"').style(height)
                self.plots[f"{name}-heading"] = heading
        for name in drawn:
            self._put(self.plots[f"{name}-heading"], "heading", text=said(context, name).format(measure=title))

    def _switches(self, status: Status) -> None:
        from stepscope.live.show.words import KINDS

        context, switches = self.context, status.switches
        key = repr((switches, self.can_act))
        if getattr(self, "_switch_key", None) == key:
            return
        self._switch_key = key
        self.switches.clear()
        with self.switches:
            kinds = [(kind, True) for kind in switches.on] + [(kind, False) for kind in switches.off]
            raw(
                rendered(
                    context, "live.html.j2", "switches", said=every_word(context), notes=switch_notes(status, context)
                )
            )
            with ui.element("ul").classes("switch-list"):
                for kind, is_on in sorted(kinds):
                    with ui.element("li"):
                        name = KINDS[kind].of(context.language)
                        raw(
                            rendered(
                                context, "live.html.j2", "switch", said=every_word(context), kind=name, is_on=is_on
                            )
                        )
                        if self.can_act:
                            self._button(
                                said(context, "turn_off" if is_on else "turn_on"),
                                said(context, "ask_switch").format(
                                    kind=name, state=said(context, "off" if is_on else "on")
                                ),
                                self._switching(kind, not is_on),
                            )
            if not self.can_act:
                paragraph(said(context, "read_only"), "note")

    def _profile(self, status: Status) -> None:
        context, state = self.context, self.context.state
        there = [one.rank for one in status.ranks if one.state != "lost"]
        ranks = chosen_ranks(state.get("profile"), there)[:16] or sorted(status.blamed)[:1] or there[:1]
        steps = min(max(state.number("steps", USUAL_STEPS) or USUAL_STEPS, 1), MOST_STEPS)
        key = repr((ranks, steps, self.can_act))
        if getattr(self, "_profile_key", None) == key:
            return
        self._profile_key = key
        self.profile.clear()
        if not self.can_act or not ranks:
            return
        names = named(ranks)
        with self.profile:
            raw(rendered(context, "live.html.j2", "profile", said=every_word(context)))
            controls = [
                Control("profile", said(context, "profile_ranks"), placeholder=", ".join(map(str, ranks))),
                Control(
                    "steps",
                    said(context, "profile_steps"),
                    "number",
                    placeholder=str(steps),
                    minimum=1,
                    maximum=MOST_STEPS,
                ),
            ]
            raw(form(context, state, controls))
            self._button(
                said(context, "do_profile").format(ranks=names, steps=steps),
                said(context, "ask_profile").format(ranks=names, steps=steps),
                self._profiling(ranks, steps),
            )

    def _button(self, title: str, question: str, act: Callable[[], Awaitable[str]]) -> None:
        """A button that asks back before it does something."""

        def ask() -> None:
            self.asked.clear()
            with self.asked, ui.element("div").classes("asked"):
                paragraph(question)
                plain_button(said(self.context, "yes"), do, "live-yes")
                plain_button(said(self.context, "no"), self.asked.clear, "live-no")
            ui.run_javascript("document.getElementById('live-yes')?.focus()")

        def do() -> None:
            self._told(said(self.context, "working"), "computing")
            background_tasks.create(self._acting(act), name="live action")

        plain_button(title, ask)

    async def _acting(self, act: Callable[[], Awaitable[str]]) -> None:
        try:
            text, kind = await act(), "note"
        except StepscopeError as error:
            text, kind = str(error), "empty"
        if not self.asked.is_deleted:
            self._told(text, kind)

    def _told(self, text: str, kind: str) -> None:
        self.asked.clear()
        with self.asked:
            paragraph(text, kind)

    def _switching(self, kind: str, is_on: bool) -> Callable[[], Awaitable[str]]:
        async def act() -> str:
            done: Switched = await self.job.switch({kind: "on" if is_on else "off"}, by=WHO)
            text = said(self.context, "switched").format(count=len(done.applied))
            failed = [
                said(self.context, "failed").format(rank=rank, error=error) for rank, error in done.failed.items()
            ]
            return " ".join([text, *failed])

        return act

    def _profiling(self, ranks: Sequence[int], steps: int) -> Callable[[], Awaitable[str]]:
        async def act() -> str:
            made: Answers = await self.job.capture(ranks, steps)
            return " ".join(captured(made, self.context))

        return act

    def _capture(self, one: CaptureStatus) -> dict[str, Any]:
        """A profile as the page lists it, with its run if that is served."""
        state = {"running": "running", "ended": "ended"}.get(one.state, "failed_capture")
        return {
            "ranks": named(one.ranks),
            "state": said(self.context, state),
            "is_running": one.state == "running",
            "error": one.error,
            "places": [self._place(place) for place in capture_places(one)],
        }

    def _place(self, place: str) -> dict[str, str]:
        """A directory of a profile, with its run, or what becomes of it."""
        run = run_at(self.context, place)
        if run is not None:
            return {"path": place, "url": overview_link(self.context, run), "told": ""}
        told = said(self.context, "soon" if is_served(self.context, place) else "elsewhere").format(path=place)
        return {"path": place, "url": "", "told": told}


WHO = "stepscope serve"
"""Who asks for switches, in the log of the manager."""


def plain_button(title: str, act: Callable[[], Any], identity: str = "") -> None:
    """A button of the page's own style."""
    button = ui.element("button").props('type="button"' + (f' id="{identity}"' if identity else ""))
    with button:
        ui.label(title)
    button.on("click", lambda _: act())
