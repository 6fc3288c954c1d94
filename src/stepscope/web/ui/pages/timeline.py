"""The timeline of a run in the page, opened at the place that the URL names.

A timeline with all details of a long recording takes minutes. Unless its kind is chosen, such a recording is shown from
afar, or with all details around the place; the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import polars as pl
from markupsafe import Markup
from nicegui import ui

from stepscope.errors import StepscopeError
from stepscope.texts import Text
from stepscope.web.addresses import PREFIX, run_path
from stepscope.web.ui.context import Context
from stepscope.web.ui.controls import Control, form, select
from stepscope.web.ui.html import paragraph, raw, rendered
from stepscope.web.ui.site_map import WebPage
from stepscope.web.ui.state import State

if TYPE_CHECKING:
    from stepscope.report.contents import Contents
    from stepscope.run import Run
    from stepscope.timeline import Written
    from stepscope.web.timelines import Wanted

MOST_ROWS = 300_000
"""Rows of a recording up to which all details are shown unasked: they open in a few seconds."""

AROUND = 3
"""Around a place of a longer one, a part of as many rows: what is shown lies where most happens."""

KINDS = ("summary", "detail")
"""What timelines show, besides as much as opens in seconds."""

PLACES = 8
"""Places of findings that are listed."""

_READS = ("rank", "ranks", "step", "steps", "kind", "graphs", "merge", "scopes", "start_ns", "end_ns", "track", "whole")

WORDS = {
    "ranks": Text("Ranks, e.g. 0,3-5", "Rank，例如 0,3-5"),
    "steps": Text("Steps, e.g. 10-12", "步，例如 10-12"),
    "kind": Text("Shows", "显示"),
    "auto": Text("As much as opens in seconds", "数秒内能打开的内容"),
    "detail": Text("All that was recorded", "全部记录"),
    "summary": Text("Steps, phases, computing and communicating", "步、阶段、计算与通信"),
    "graphs": Text("Graphs (models), e.g. 1,3", "图（模型），例如 1,3"),
    "merge": Text("Iterations of graphs", "各图的迭代"),
    "merged": Text("On one track", "在同一轨道上"),
    "apart": Text("A track for each graph", "每个图一条轨道"),
    "scopes": Text("Scopes in names of operators", "算子名中的作用域"),
    "all": Text("all", "全部"),
    "download": Text("Download this timeline", "下载此时间线"),
    "whole": Text("Download all of it", "下载完整时间线"),
    "afar": Text(
        "This recording has {rows} rows, so steps and phases are shown. Choose a step, a rank or a place, or all that "
        "was recorded.",
        "此记录有 {rows} 行，因此只显示步和阶段。可选择某一步、某个 rank 或某个位置，或选择全部记录。",
    ),
    "around": Text(
        "This recording has {rows} rows, so {length} around the place are shown.",
        "此记录有 {rows} 行，因此只显示该位置附近的 {length}。",
    ),
    "unexplained": Text(
        "The run is still being analysed, so idle time by cause, the critical path and findings are not drawn yet.",
        "此运行仍在分析中，因此尚未绘制空闲原因、关键路径和发现。",
    ),
    "too_long": Text(
        "Idle time by cause, the critical path and findings are left out: in so large a recording they take longer "
        "than all else. `stepscope timeline --explain` writes a file with them.",
        "未绘制空闲原因、关键路径和发现：在如此大的记录中，它们比其余部分耗时更长。"
        "`stepscope timeline --explain` 可写出包含它们的文件。",
    ),
    "show_all": Text("Show all that was recorded", "显示全部记录"),
    "one_rank": Text("Rank {rank} is shown.", "显示 rank {rank}。"),
    "every_rank": Text("Show all ranks", "显示所有 rank"),
    "left_out": Text("Left out of {what}: {why}", "{what} 中省略的内容：{why}"),
    "places": Text("Places that findings are about", "发现所指的位置"),
    "frame": Text("Timeline in the Perfetto UI", "Perfetto 界面中的时间线"),
    "size": Text("{events} events on {tracks} tracks, {size}.", "{events} 个事件，{tracks} 条轨道，{size}。"),
}


@dataclass(frozen=True)
class Chosen:
    """Which timeline is shown, and why not another.

    Args:
        wanted: The timeline.
        notes: What is said of the choice.
        is_part: Whether there is more than is shown.
    """

    wanted: Wanted
    notes: Sequence[str] = ()
    is_part: bool = False


@dataclass(frozen=True)
class Shown:
    """A timeline that was made."""

    chosen: Chosen
    written: Written
    problem: str = ""
    place: dict[str, Any] = field(default_factory=dict)


async def build(context: Context, page: WebPage) -> None:  # noqa: ARG001 - as all pages are built
    """Build the page."""

    async def load(state: State) -> Shown:
        return await shown(context, state)

    def show(found: Shown, state: State) -> None:
        _show(context, found, state)

    async def places(_: State) -> Contents:
        return await context.asking.overview(context.run, context.language)

    _fields(context)
    context.panels.add("timeline", load, show, _READS)
    context.panels.add("places", places, lambda found, state: _places(context, found, state))


def place_link(
    context: Context,
    *,
    rank: int | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    track: str = "",
) -> str:
    """The URL of the timeline at a place.

    Args:
        rank: The rank, by whose clock the times are.
        start_ns, end_ns: From when to when, as the tables of the run have it.
        track: Name of a track; groups around it come before it with ` / ` between them.
    """
    values = {"rank": rank, "start_ns": start_ns, "end_ns": end_ns, "track": track or None}
    return context.link("timeline", **values, ranks=None, steps=None, step=None)


async def shown(context: Context, state: State) -> Shown:
    """Make the timeline that a state asks for.

    Raises:
        StepscopeError: If there is none, or a value is not possible.
    """
    from stepscope.timeline.viewer import find_ui
    from stepscope.web.perfetto import moment_in, place_in
    from stepscope.web.timelines import timeline_file

    start, end = moment_in(state.params, "start_ns"), moment_in(state.params, "end_ns")
    words = tuple((name, state.get(name)) for name in _READS)
    is_known = context.web.catalogue.entry(context.run).state == "ready"
    chosen = await context.asking.about(
        context.run,
        ("timeline choice", words, context.language, is_known),
        lambda run: choose(run, state, start, end, context.language, is_known=is_known),
    )
    files = context.web.files
    assert files is not None
    with await timeline_file(context.web.catalogue, files, context.run, chosen.wanted) as hold:
        written = hold.about
    try:
        find_ui()
        problem = ""
    except StepscopeError as error:
        problem = str(error)
    rank = state.number("rank")
    place = {**place_in(written, rank, start, end), "track": _track(state, written, rank)}
    return Shown(chosen, written, problem, place)


def choose(
    run: Run, state: State, start: int | None, end: int | None, language: Any, *, is_known: bool = True
) -> Chosen:
    """Which timeline a state asks for: as much as opens soon, unless it says what.

    Args:
        run: The run.
        state: What is asked for.
        start, end: The place, ns as the rank of the state recorded it.
        language: Of the notes.
        is_known: Whether what analyses say of the run is known already; of a large one, computing that takes minutes.

    Raises:
        StepscopeError: If there is no such rank, step or kind of timeline.
    """
    from stepscope import present
    from stepscope.timeline import TimelineOptions
    from stepscope.timeline.clocks import clocks_of
    from stepscope.timeline.narrowing import is_soon_explained
    from stepscope.web.timelines import Wanted

    rank, kind = state.number("rank"), state.get("kind")
    if rank is None and state.get("rank"):
        raise StepscopeError(f"rank {state.get('rank')[:40]}: give a whole number")
    if kind not in ("", *KINDS):
        raise StepscopeError(f"there is no timeline of kind {kind[:40]}. There are: {', '.join(KINDS)}")
    ranks = None if state.get("ranks") == "all" else state.get("ranks") or (None if rank is None else str(rank))
    steps = state.get("steps") or state.get("step") or None
    options = TimelineOptions(
        kind="summary" if kind == "summary" else "detail",
        graphs=state.get("graphs") or None,
        merge_graphs=state.get("merge") != "0",
        scope_names=bool(state.get("scopes")),
    )
    narrowed = run.select(ranks, steps)
    if start is not None and rank is not None and all(each.rank != rank for each in narrowed.ranks):
        ranks = f"{ranks},{rank}"  # the place is by the clock of its rank, which is known only of ranks that are shown
        narrowed = run.select(ranks, steps)
    notes = []
    if ranks is not None and ranks == str(rank) and len(run.ranks) > 1 and not state.get("ranks"):
        notes.append(WORDS["one_rank"].of(language).format(rank=rank))
    rows = _rows(narrowed)
    is_far = not kind and rows > MOST_ROWS and start is None
    if not is_known and options.kind == "detail" and not is_far and _rows(run.whole) > MOST_ROWS:
        options = replace(options, explain=False)
        notes.append(WORDS["unexplained"].of(language))
    elif options.kind == "detail" and not is_far and not is_soon_explained(narrowed):
        options = replace(options, explain=False)
        notes.append(WORDS["too_long"].of(language))
    if kind or rows <= MOST_ROWS:
        return Chosen(Wanted("perfetto", ranks, steps, options), notes)
    if is_far or start is None:
        notes.append(WORDS["afar"].of(language).format(rows=f"{rows:,}"))
        return Chosen(Wanted("perfetto", ranks, steps, replace(options, kind="summary")), notes, is_part=True)
    shift = 0 if rank is None else clocks_of(narrowed, align=True).by_rank.get(rank, 0)
    first, last = (time - shift for time in _around(narrowed, rows, start, end or start))
    notes.append(WORDS["around"].of(language).format(rows=f"{rows:,}", length=present.duration(last - first)))
    return Chosen(Wanted("perfetto", ranks, steps, replace(options, window_ns=(first, last))), notes, is_part=True)


def _rows(run: Run) -> int:
    """Rows of all tables with times, as far as that is known without reading them."""
    steps = len(run.whole.steps) or 1
    return round(sum(sum(rank.rows.values()) for rank in run.ranks) * (len(run.steps) or steps) / steps)


def _around(run: Run, rows: int, start: int, end: int) -> tuple[int, int]:
    """A time around a place in which about as many rows lie as open soon; all of the place in any case."""
    steps = run.table("steps").select(pl.col("start_ns").min().alias("first"), pl.col("end_ns").max().alias("last"))
    first, last = steps.collect().row(0) if run.has("steps") else (None, None)
    if first is None or last is None:
        first, last = start - 10**9, end + 10**9
    room = max((last - first) * MOST_ROWS // AROUND // rows - (end - start), (end - start) // 5, 1_000_000) // 2
    return start - room, end + room


def _track(state: State, written: Written, rank: int | None) -> Sequence[str] | None:
    """Names of the groups around the track and its own."""
    names = [part.strip() for part in state.get("track").split(" / ") if part.strip()]
    ranks = sorted({of for of, _, _ in written.events if of >= 0})
    if rank is None or rank not in ranks or (names and names[0].startswith("rank")):
        return names or None
    if not names and len(ranks) < 2:
        return None
    # names of ranks have blanks before them, so that viewers sort them
    return [f"rank {rank:>{len(str(max(ranks)))}}", *names]


def _fields(context: Context) -> None:
    holder = ui.element("div").classes("page-fields")

    def show(_: object = None) -> None:
        holder.clear()
        with holder:
            raw(form(context, context.state, controls(context), resets=("track",)))

    show()
    context.panels.follow(show)


def controls(context: Context) -> list[Control]:
    """The fields of the page."""

    def word(key: str) -> str:
        return WORDS[key].of(context.language)

    rank = context.state.get("rank")
    found = [
        Control("ranks", word("ranks"), placeholder=rank or word("all")),
        Control("steps", word("steps"), placeholder=context.state.get("step") or word("all")),
        select(
            "kind",
            WORDS["kind"],
            context,
            ("", WORDS["auto"]),
            ("summary", WORDS["summary"]),
            ("detail", WORDS["detail"]),
        ),
    ]
    entry = context.entry
    if entry is not None and any("mindspore" in name.lower() for name in (*entry.frameworks, *entry.formats)):
        found += [
            Control("graphs", word("graphs"), placeholder=word("all")),
            select("merge", WORDS["merge"], context, ("", WORDS["merged"]), ("0", WORDS["apart"])),
            Control("scopes", word("scopes"), "flag"),
        ]
    return found


def _show(context: Context, found: Shown, state: State) -> None:
    from stepscope.pages.words import sentence
    from stepscope.web.perfetto import frame_url

    chosen, written = found.chosen, found.written
    if found.problem:
        paragraph(found.problem, "empty")
    else:
        url = frame_url(context.run, chosen.wanted, context.language, found.place)
        raw(
            Markup('<iframe class="timeline" id="timeline-frame" title="{}" src="{}"></iframe>').format(
                WORDS["frame"].of(context.language), url
            )
        )
    raw(
        rendered(
            context,
            "timeline.html.j2",
            "about",
            notes=chosen.notes,
            all_url=state.changed(kind="detail").url if chosen.is_part else "",
            ranks_url=state.changed(ranks="all").url if _has_more_ranks(context, written) else "",
            said={key: text.of(context.language) for key, text in WORDS.items()},
            size=_size(written, context),
            left_out=[(what, sentence(why, context.language)) for what, why in written.left_out.items()],
            written_notes=[sentence(text, context.language) for text in written.notes],
            downloads=downloads(context, chosen.wanted),
            whole=downloads(context, _whole(chosen)) if chosen.is_part else [],
        )
    )


def _has_more_ranks(context: Context, written: Written) -> bool:
    entry = context.entry
    return entry is not None and len({rank for rank, _, _ in written.events if rank >= 0}) < entry.ranks


def _size(written: Written, context: Context) -> str:
    from stepscope import present

    return (
        WORDS["size"]
        .of(context.language)
        .format(events=f"{written.total_events:,}", tracks=f"{written.tracks:,}", size=present.size(written.size_bytes))
    )


def _whole(chosen: Chosen) -> Wanted:
    options = chosen.wanted.options
    return replace(chosen.wanted, options=replace(options, kind="detail", explain=None, window_ns=None))


def downloads(context: Context, wanted: Wanted) -> list[tuple[str, str]]:
    """Names of formats, and where to get a timeline in them."""
    from stepscope.web.perfetto import words_of
    from stepscope.web.timelines import FILE_FORMATS

    base, words = f"{PREFIX}{run_path(context.run)}/timeline", words_of(wanted)
    return [(name, f"{base}?{urlencode({**words, 'format': name})}") for name in FILE_FORMATS]


def _places(context: Context, found: Contents, state: State) -> None:
    """Links to the times that findings name."""
    spans = [
        (
            problem.words.summary,
            state.changed(
                rank=problem.finding.span_rank,
                start_ns=problem.finding.span_ns[0],
                end_ns=problem.finding.span_ns[1],
                **dict.fromkeys(("ranks", "steps", "step", "track", "kind")),
            ).url,
        )
        for problem in found.problems
        if problem.finding.span_ns is not None
    ]
    if spans:
        title = WORDS["places"].of(context.language)
        raw(rendered(context, "timeline.html.j2", "places", title=title, spans=spans[:PLACES]))


PAGES_HERE: tuple[WebPage, ...] = (
    WebPage(
        "timeline",
        Text("Timeline", "时间线"),
        "rank",
        about=Text(
            "What ran when, on the clock of the job. Click the timeline, then use W and S to zoom, A and D to move, "
            "and / to search.",
            "何时运行了什么，以作业的时钟为准。点击时间线后，用 W、S 缩放，A、D 移动，/ 搜索。",
        ),
        build=build,
    ),
)
