"""A running job: steps as they come, who is slow, what is recorded, and profiles of ranks at a click.

What is shown is asked of the manager of the job, as `stepscope live status` asks it. What changes the job (switches,
profiles) happens by a button and a confirmation, never by an address, and only on a server whose clients give a token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import background_tasks, ui

from stepscope.errors import StepscopeError
from stepscope.texts import Text
from stepscope.web.live_jobs import EVERY_S, MEASURES, MOST_STEPS, LiveJob, Measure, StepTime
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, form, select
from stepscope.web.ui.frame import frame, overview_link
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from nicegui.element import Element

    from stepscope.live.control.client import Answers, Switched
    from stepscope.live.show.status import CaptureStatus, RankStatus, Status

LINES = 12
"""Ranks with a line of their own, unless others are chosen: those that are worth a look first."""

MAP_STEPS = 64
"""Steps of the map, the last ones."""

SHOWN_RANKS = 64
USUAL_STEPS = 8

WORDS = {
    "about": Text(
        "A job while it runs: asked of its manager once a second.",
        "运行中的作业：每秒向其管理器查询一次。",
    ),
    "how": Text(
        "No running job is shown: this server was started without `--live`. Start tracing with "
        "`stepscope live manager` and `STEPSCOPE_LIVE=1` in the environment of the job, then start the server with "
        "`--live here` (the manager of this machine) or `--live HOST:PORT`.",
        "未显示运行中的作业：此服务启动时未指定 `--live`。请运行 `stepscope live manager`，在作业环境中设置 "
        "`STEPSCOPE_LIVE=1`，然后以 `--live here`（本机的管理器）或 `--live 主机:端口` 启动此服务。",
    ),
    "records": Text("Light records below the served directories", "所服务目录下的轻量记录"),
    "no_records": Text("There are none.", "没有。"),
    "waiting": Text("Waiting for the manager", "正在等待管理器"),
    "old": Text("Not up to date: {problem}", "不是最新状态：{problem}"),
    "summary": Text(
        "Job {job}: {alive} of {ranks} ranks, on {hosts}; step {step}, {time} a step",
        "作业 {job}：{ranks} 个 rank 中有 {alive} 个在运行（{hosts}）；第 {step} 步，每步 {time}",
    ),
    "measure": Text("Shows", "显示"),
    "step": Text("Step time", "步时间"),
    "data": Text("Wait for data", "等待数据"),
    "forward": Text("Forward pass", "前向"),
    "ranks": Text("Ranks, e.g. 0,3-5", "Rank，例如 0,3-5"),
    "lines": Text("{measure} by rank", "各 rank 的{measure}"),
    "map": Text("{measure}, rank by step", "{measure}：按 rank 与步"),
    "no_steps": Text("No steps have been reported yet.", "尚未收到任何一步。"),
    "none_chosen": Text("The manager tells no steps of the chosen ranks.", "管理器未提供所选 rank 的步。"),
    "table": Text("Ranks, the worst first", "各 rank，最差者在前"),
    "rank": Text("rank", "rank"),
    "host": Text("host", "主机"),
    "state": Text("state", "状态"),
    "last": Text("step", "步"),
    "communication": Text("communication", "通信"),
    "own": Text("own time", "自身耗时"),
    "inside": Text("is in", "所处位置"),
    "more": Text("and {count} more", "另有 {count} 个"),
    "verdicts": Text("Who is slow", "谁慢"),
    "over": Text("Over", "已结束"),
    "switches": Text("What is recorded", "记录内容"),
    "on": Text("on", "开"),
    "off": Text("off", "关"),
    "turn_on": Text("Switch on", "打开"),
    "turn_off": Text("Switch off", "关闭"),
    "revision": Text(
        "Revision {revision}: applied by {applied} of {there} ranks{by}.",
        "版本 {revision}：{there} 个 rank 中有 {applied} 个已应用{by}。",
    ),
    "asked_by": Text(", requested by {by}", "，由 {by} 请求"),
    "pending": Text("Not applied yet by {ranks}.", "尚未应用：{ranks}。"),
    "failed": Text("Rank {rank} cannot apply them: {error}", "rank {rank} 无法应用：{error}"),
    "read_only": Text(
        "To switch and to profile from here, start the server with a token: --token-file FILE.",
        "若要在此切换或采集，请以令牌启动服务：--token-file 文件。",
    ),
    "ask_switch": Text("Switch {kind} {state} on all ranks of the job?", "在作业的所有 rank 上将{kind}切换为{state}？"),
    "profile": Text("Profile ranks", "采集 rank 的性能数据"),
    "profile_ranks": Text("Ranks to profile", "要采集的 rank"),
    "profile_steps": Text("Steps", "步数"),
    "do_profile": Text("Profile {ranks}, {steps} steps", "采集 {ranks}，{steps} 步"),
    "ask_profile": Text(
        "Profile {steps} steps of {ranks}? Training is slower meanwhile.",
        "采集 {ranks} 的 {steps} 步？期间训练会变慢。",
    ),
    "yes": Text("Do it", "执行"),
    "no": Text("Leave it", "取消"),
    "working": Text("Working…", "正在执行……"),
    "switched": Text("Switched: applied by {count} ranks.", "已切换：{count} 个 rank 已应用。"),
    "running": Text("running", "进行中"),
    "ended": Text("done", "完成"),
    "failed_capture": Text("failed", "失败"),
    "captures": Text("Profiles", "性能数据"),
    "opens": Text("Open", "打开"),
    "elsewhere": Text(
        "Not below the served directories: stepscope analyze {path}", "不在所服务的目录下：stepscope analyze {path}"
    ),
    "all": Text("all", "全部"),
}


async def build(context: Context, job: LiveJob | None) -> None:
    """Build the page.

    Args:
        job: The job to show; None if the server was told of none.
    """
    title = context.word("live")
    with frame(context, title):
        if job is None:
            paragraph(_said(context, "how"), "empty")
        else:
            paragraph(_said(context, "about"), "intro")
            await _Page(context, job).build()
        _records(context)
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
        self.figures = ui.element("div").classes("live-figures")
        self.ranks = ui.element("div")
        with ui.element("div").classes("live-actions"):
            self.switches = ui.element("section")
            self.profile = ui.element("section")
        self.asked = ui.element("div").props('role="status"')
        self.captures = ui.element("div")
        self._fields()
        self.context.panels.follow(self._changed)
        await self.job.look()
        self._show()
        ui.timer(EVERY_S, self._tick)

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
            Control("ranks", _said(context, "ranks"), placeholder=_said(context, "all")),
        ]
        self.fields.clear()
        with self.fields:
            raw(form(context, context.state, controls))

    def _show(self) -> None:
        context, status, problem = self.context, self.job.status, self.job.problem
        self.drawn_s = self.job.asked_s
        self._put(
            self.top, "top", status=status and summary(status, context), problem=problem, **verdicts(status, context)
        )
        if status is None:
            return
        self._figures(status)
        self._put(self.ranks, "ranks", rows=rank_rows(status), more=max(len(status.ranks) - SHOWN_RANKS, 0))
        self._switches(status)
        self._profile(status)
        self._put(self.captures, "captures", profiles=[self._capture(one) for one in status.captures])

    def _put(self, place: Element, macro: str, **values: Any) -> None:
        said = {key: text.of(self.context.language) for key, text in WORDS.items()}
        markup = rendered(self.context, "live.html.j2", macro, said=said, **values)
        children = place.default_slot.children
        if not children:
            with place:
                raw(markup)
        elif children[0].content != str(markup):  # type: ignore[attr-defined] # what `raw` makes
            children[0].set_content(str(markup))  # type: ignore[attr-defined]

    def _figures(self, status: Status) -> None:
        context, measure = self.context, measure_of(self.context.state)
        chosen = drawn_ranks(status, self.job.steps, context.state.get("ranks"))
        title = _said(context, measure)
        drawn = {
            "lines": lines({rank: self.job.steps[rank] for rank in chosen[:LINES]}, measure, context),
            "map": heat_map({rank: self.job.steps[rank] for rank in sorted(chosen)}, measure, context),
        }
        for name, spec in drawn.items():
            plot = self.plots.get(name)
            if plot is not None:
                plot.update_figure(spec)
                continue
            with self.figures, ui.element("figure").classes("drawn").props(f'id="drawn-live-{name}"'):
                heading = ui.element("div")
                plot = self.plots[name] = ui.plotly(spec).classes("plot")
                height = spec["layout"]["height"]
                plot.props(f'role="img" aria-label="{_said(context, name).format(measure=title)}"').style(
                    f"height: {height}px"
                )
                self.plots[f"{name}-heading"] = heading
        for name in drawn:
            self._put(self.plots[f"{name}-heading"], "heading", text=_said(context, name).format(measure=title))

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
                    context, "live.html.j2", "switches", said=_all_said(context), notes=switch_notes(status, context)
                )
            )
            with ui.element("ul").classes("switch-list"):
                for kind, is_on in sorted(kinds):
                    with ui.element("li"):
                        name = KINDS[kind].of(context.language)
                        raw(
                            rendered(context, "live.html.j2", "switch", said=_all_said(context), kind=name, is_on=is_on)
                        )
                        if self.can_act:
                            self._button(
                                _said(context, "turn_off" if is_on else "turn_on"),
                                _said(context, "ask_switch").format(
                                    kind=name, state=_said(context, "off" if is_on else "on")
                                ),
                                self._switching(kind, not is_on),
                            )
            if not self.can_act:
                paragraph(_said(context, "read_only"), "note")

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
        names = _named(ranks)
        with self.profile:
            raw(rendered(context, "live.html.j2", "profile", said=_all_said(context)))
            controls = [
                Control("profile", _said(context, "profile_ranks"), placeholder=", ".join(map(str, ranks))),
                Control(
                    "steps",
                    _said(context, "profile_steps"),
                    "number",
                    placeholder=str(steps),
                    minimum=1,
                    maximum=MOST_STEPS,
                ),
            ]
            raw(form(context, state, controls))
            self._button(
                _said(context, "do_profile").format(ranks=names, steps=steps),
                _said(context, "ask_profile").format(ranks=names, steps=steps),
                self._profiling(ranks, steps),
            )

    def _button(self, title: str, question: str, act: Callable[[], Awaitable[str]]) -> None:
        """A button that asks back before it does something."""

        def ask() -> None:
            self.asked.clear()
            with self.asked, ui.element("div").classes("asked"):
                paragraph(question)
                plain_button(_said(self.context, "yes"), do, "live-yes")
                plain_button(_said(self.context, "no"), self.asked.clear, "live-no")
            ui.run_javascript("document.getElementById('live-yes')?.focus()")

        def do() -> None:
            self._told(_said(self.context, "working"), "computing")
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
            text = _said(self.context, "switched").format(count=len(done.applied))
            failed = [
                _said(self.context, "failed").format(rank=rank, error=error) for rank, error in done.failed.items()
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
        place = capture_place(one)
        run = run_at(self.context, place) if place else None
        state = {"running": "running", "ended": "ended"}.get(one.state, "failed_capture")
        return {
            "ranks": _named(one.ranks),
            "state": _said(self.context, state),
            "is_running": one.state == "running",
            "error": one.error,
            "place": place,
            "url": overview_link(self.context, run) if run else "",
        }


WHO = "stepscope serve"
"""Who asks for switches, in the log of the manager."""


def measure_of(state: State) -> Measure:
    """What the figures show."""
    return next((measure for measure in MEASURES if measure == state.get("measure")), MEASURES[0])


def summary(status: Status, context: Context) -> str:
    """The job in a line."""
    from stepscope.live.show.sentences import short_job
    from stepscope.present import duration, plural

    hosts = len({rank.host for rank in status.ranks})
    return _said(context, "summary").format(
        job=short_job(status.job) or "-",
        alive=status.count("alive"),
        ranks=status.world_size or len(status.ranks),
        hosts=plural(hosts, "host") if context.language == "en" else f"{hosts} 台主机",
        step="-" if status.step is None else f"{status.step:,}",
        time="-" if status.step_ns is None else duration(status.step_ns),
    )


def verdicts(status: Status | None, context: Context) -> dict[str, Any]:
    """Verdicts that last, with what to do, and those that are over; what it means that there are none."""
    from stepscope.live.show.sentences import circumstances, headline
    from stepscope.live.show.status_lines import calm, verdict_lines

    if status is None:
        return {"open": [], "over": [], "calm": ""}
    language = context.language
    return {
        "open": [verdict_lines(one, language) for one in status.open],
        "over": [
            f"{headline(one.verdict, language)} ({circumstances(one.verdict, language)})" for one in status.over[:3]
        ],
        "calm": "" if status.open else calm(status),
    }


def rank_rows(status: Status) -> list[dict[str, Any]]:
    """Rows of the table of ranks, the worst first."""
    from stepscope.live.show.view import worst_first
    from stepscope.present import duration

    blamed = status.blamed

    def time(ns: int | None) -> str:
        return "-" if ns is None else duration(ns)

    def row(one: RankStatus) -> dict[str, Any]:
        times = (one.step_ns, one.data_ns, one.forward_ns, one.communication_ns)
        return {
            "rank": one.rank,
            "host": one.host,
            "state": one.state,
            "step": f"{one.step:,}",
            "times": [time(ns) for ns in times],
            "own": "-" if one.own_ratio is None else f"{one.own_ratio:.2f}x",
            "inside": one.problem or one.inside,
            "is_blamed": one.rank in blamed,
        }

    return [row(one) for one in worst_first(status.ranks, blamed)[:SHOWN_RANKS]]


def switch_notes(status: Status, context: Context) -> list[str]:
    """Who asked for the switches, and who has applied them."""
    switches = status.switches
    there = switches.applied + len(switches.pending) + len(switches.failed)
    by = _said(context, "asked_by").format(by=switches.by) if switches.by else ""
    notes = [
        _said(context, "revision").format(revision=switches.revision, applied=switches.applied, there=there, by=by)
    ]
    if switches.pending:
        notes.append(_said(context, "pending").format(ranks=_named(switches.pending)))
    notes += [_said(context, "failed").format(rank=one.rank, error=one.error) for one in switches.failed[:10]]
    return notes


def drawn_ranks(status: Status, steps: Mapping[int, Sequence[StepTime]], chosen: str) -> list[int]:
    """Ranks that figures show: those that are chosen, else those worth a look, the worst first."""
    from stepscope.live.show.view import worst_first

    worst = [one.rank for one in worst_first(status.ranks, status.blamed) if steps.get(one.rank)]
    return chosen_ranks(chosen, worst) if chosen else worst


def chosen_ranks(text: str, there: Sequence[int]) -> list[int]:
    """Those of some ranks that a text names; none if it cannot be understood."""
    from stepscope.selection import parse_selection

    if not text:
        return []
    try:
        selection = parse_selection(text, "ranks")
    except StepscopeError:
        return []
    return list(there) if selection is None else [rank for rank in there if rank in selection]


def lines(steps: Mapping[int, Sequence[StepTime]], measure: Measure, context: Context) -> dict[str, Any]:
    """Times of the last steps, a line for each rank."""
    data = []
    for rank in sorted(steps):
        points = [(each.step, each.of(measure)) for each in steps[rank]]
        values = [None if ns is None else ns / 1e6 for _, ns in points]
        data.append(
            {"type": "scatter", "mode": "lines", "name": f"rank {rank}", "x": [step for step, _ in points], "y": values}
        )
    layout = {"height": 300, "yaxis": {"rangemode": "tozero", "title": {"text": f"{_said(context, measure)} (ms)"}}}
    return _spec(data, layout, context)


def heat_map(steps: Mapping[int, Sequence[StepTime]], measure: Measure, context: Context) -> dict[str, Any]:
    """Times of the last steps as colours, a row for each rank."""
    every = sorted({each.step for points in steps.values() for each in points})[-MAP_STEPS:]
    known = {rank: {each.step: each.of(measure) for each in points} for rank, points in steps.items()}
    cells = [[None if (ns := known[rank].get(step)) is None else ns / 1e6 for step in every] for rank in steps]
    data = [
        {
            "type": "heatmap",
            "x": every,
            "y": [f"rank {rank}" for rank in steps],
            "z": cells,
            "xgap": 1,
            "ygap": 1,
            "colorbar": {"title": {"text": "ms"}},
            "hovertemplate": f"%{{y}}, {_said(context, 'last')} %{{x}}: %{{z:.4~g}} ms<extra></extra>",
        }
    ]
    height = min(max(22 * len(steps) + 90, 300), 700)
    return _spec(data, {"height": height, "yaxis": {"autorange": "reversed", "type": "category"}}, context)


def _spec(data: list[dict[str, Any]], layout: dict[str, Any], context: Context) -> dict[str, Any]:
    from stepscope.web.ui.figures import on_page

    whole = {
        "margin": {"t": 10, "b": 44},
        "xaxis": {"title": {"text": _said(context, "last")}, "tickformat": "d"},
        "uirevision": "live",
        **layout,
    }
    return on_page(context, data, whole)


def captured(made: Answers, context: Context) -> list[str]:
    """What has come of a profile, as sentences."""
    texts = []
    for one in made.results:
        directory, error = getattr(one, "directory", ""), getattr(one, "error", "")
        texts.append(f"rank {one.rank}: {error or directory}.")
    if made.pending:
        texts.append(_said(context, "pending").format(ranks=_named(made.pending)))
    return texts


def capture_place(one: CaptureStatus) -> str:
    """The directory of a profile, on the host of its rank."""
    for file in one.files:
        before, found, _ = file.rpartition(f"/{one.capture}/")
        return f"{before}/{one.capture}" if found else file.rpartition("/")[0]
    return ""


def run_at(context: Context, place: str) -> str | None:
    """The run that a directory has become, if it lies below a served directory."""
    directory = Path(place)
    entries = context.web.catalogue.entries()
    return next((entry.id for entry in entries if entry.path.is_relative_to(directory)), None)


def plain_button(title: str, act: Callable[[], Any], identity: str = "") -> None:
    """A button of the page's own style."""
    button = ui.element("button").props('type="button"' + (f' id="{identity}"' if identity else ""))
    with button:
        ui.label(title)
    button.on("click", lambda _: act())


def _records(context: Context) -> None:
    """Runs that are light records, which also grow while a job runs."""
    runs = [
        (entry.name, overview_link(context, entry.id), entry.ranks, entry.steps)
        for entry in context.web.catalogue.entries()
        if "light" in entry.formats
    ]
    raw(rendered(context, "live.html.j2", "records", said=_all_said(context), runs=runs))


def _named(ranks: Sequence[int]) -> str:
    from stepscope.selection import named_numbers

    return named_numbers("rank", list(ranks))


def _said(context: Context, key: str) -> str:
    return WORDS[key].of(context.language)


def _all_said(context: Context) -> dict[str, str]:
    return {key: text.of(context.language) for key, text in WORDS.items()}
