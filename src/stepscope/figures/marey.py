"""What each rank does in one step, ranks below one another, and how calls lead from one rank to another."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.analysis.pipeline.bands import COLLECTIVE, COMPUTING, KINDS, RECEIVE, SEND
from stepscope.errors import Unavailable
from stepscope.figures.axes import label, unit_of
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.sharing import some_ticks
from stepscope.figures.slow_marks import Slow, slow_of
from stepscope.figures.style import BLUE, GREEN, ORANGE, PURPLE, VERMILION
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.selection import describe_numbers
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST_RANKS = 32
"""Bands; of more ranks, slow ones, and those of each stage with the lowest numbers."""

MOST = 6000
"""Ranges in the figure; of more, the longest."""

LINES, TRANSFERS = 1200, 400
"""Lines that follow collectives, and transfers, from rank to rank: of those that take longest."""

_HALF, _INNER = 0.36, 0.06
"""From the middle of a band to its edge, and to the edge between computing and communication."""

_COLOURS = {COMPUTING: BLUE, COLLECTIVE: ORANGE, SEND: PURPLE, RECEIVE: VERMILION}

_COLUMNS = (
    column("rank", "rank"),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
    column("band", "part", "What the rank does.", values=KINDS),
    column("since_ns", "start", "Since the first range of the step on any rank.", "int64"),
    column("length_ns", "time", "From the start to the end of the range.", "int64"),
    column("busy_ns", "busy", "Sum of what is in it.", "int64"),
    column("calls", "calls", "Kernels, operators or calls in it.", "int64"),
    column("name", "name", "Name of its only one."),
)
_LINES = (
    column("kind", "kind", "A collective, or a transfer."),
    column("name", "name", "Name of the call."),
    column("from_rank", "from", "Rank from which the line leads."),
    column("to_rank", "to", "Rank to which it leads."),
    column("from_ns", "start", "Since the first range of the step.", "int64"),
    column("to_ns", "end", "The same at the other end.", "int64"),
)


def data(run: Run, *, step: int | None = None) -> Data:
    """The ranges of `step_bands`, of ranks that are chosen by selecting them.

    Args:
        step: The step. Default: the second, as the first one may be start-up, or the only one.
    """
    options = {} if step is None else {"step": step}
    found = run.analyse("step_bands", **options)
    if found.is_empty():
        raise Unavailable(f"nothing is known of step {step}", question="step_bands")
    chosen = found["step"].mode().sort().to_list()[0]
    found = found.filter(pl.col("step") == chosen)
    stages = _stages(run)
    slow = slow_of(run)
    rows = found.with_columns(stage=pl.col("rank").replace_strict(stages, default=None, return_dtype=pl.Int32))
    notes = [Text(f"Step {chosen}.", f"第 {chosen} 步。")]
    ranks = rows["rank"].unique().sort().to_list()
    shown = _some(ranks, stages, slow)
    if len(shown) < len(ranks):
        notes.append(
            Text(
                f"{len(shown)} of {len(ranks)} ranks: {describe_numbers(shown)}. Choose others to see them.",
                f"共 {len(ranks)} 个 rank，显示 {len(shown)} 个：{describe_numbers(shown)}。可选择其他 rank。",
            )
        )
        rows = rows.filter(pl.col("rank").is_in(shown))
    first = rows["start_ns"].min()
    rows = rows.with_columns(since_ns=pl.col("start_ns") - first, length_ns=pl.col("end_ns") - pl.col("start_ns"))
    if rows.height > MOST:
        notes.append(
            Text(
                f"The {MOST} longest of {rows.height} ranges.",
                f"共 {rows.height} 段，显示最长的 {MOST} 段。",
            )
        )
        rows = rows.sort("length_ns", "rank", "since_ns", descending=[True, False, False]).head(MOST)
    order = sorted(shown, key=lambda rank: (stages.get(rank, 0), rank))
    lines = pl.concat([_collectives(run, chosen, order, first), _transfers(run, chosen, shown, first)])
    places = {rank: at for at, rank in enumerate(order)}
    facts = {"places": places, "stages": stages, "slow": slow, "step": chosen}
    tables = [Rows(rows.sort("stage", "rank", "since_ns", "band", nulls_last=True), _COLUMNS)]
    tables.append(Rows(lines, _LINES, Text("Lines between ranks", "rank 之间的连线")))
    return Data(tables, [*slow.notes(order), *notes], facts)


def _stages(run: Run) -> dict[int, int]:
    """The pipeline stage of each rank, if there are several."""
    try:
        return dict(run.analyse("pipeline_places").select("rank", "stage").iter_rows())
    except Unavailable:
        return {}


def _some(ranks: list[int], stages: dict[int, int], slow: Slow) -> list[int]:
    """As many ranks as there is room for: slow ones, then the lowest of each stage in turn."""
    if len(ranks) <= MOST_RANKS:
        return ranks
    members: dict[int, list[int]] = {}
    for rank in ranks:
        members.setdefault(stages.get(rank, 0), []).append(rank)
    turns = slow.among(ranks)[: MOST_RANKS // 2]
    for at in range(max(len(some) for some in members.values())):
        turns += [some[at] for some in members.values() if at < len(some)]
    return sorted([*dict.fromkeys(turns)][:MOST_RANKS])


_EMPTY = {
    **{"kind": pl.String, "name": pl.String, "from_rank": pl.Int32, "to_rank": pl.Int32},
    **{"from_ns": pl.Int64, "to_ns": pl.Int64},
}


def _collectives(run: Run, step: int, order: list[int], first: Any) -> pl.DataFrame:
    """Starts of the same collective, from each of its ranks to the next one in the figure."""
    try:
        known = run.analyse("arrival")
    except Unavailable:
        return pl.DataFrame(schema=_EMPTY)
    places = pl.DataFrame({"rank": order, "place": range(len(order))}, schema={"rank": pl.Int32, "place": pl.Int32})
    calls = known.filter((pl.col("step") == step) & ~pl.col("point_to_point")).join(places, on="rank")
    keys = ["group", "sequence"]
    together = (
        calls.group_by(keys)
        .agg(members=pl.len(), length=(pl.col("end_ns").max() - pl.col("start_ns").min()))
        .filter(pl.col("members") > 1)
    )
    longest = together.sort(-pl.col("length"), *keys, nulls_last=True)
    most = longest.filter((pl.col("members") - 1).cum_sum() <= LINES)
    shown = calls.join(most, on=keys, nulls_equal=True).sort(*keys, "place", nulls_last=True)
    there = shown.with_columns(
        to_rank=pl.col("rank").shift(-1).over(keys), to_ns=pl.col("start_ns").shift(-1).over(keys) - first
    )
    return there.drop_nulls("to_rank").select(
        kind=pl.lit(COLLECTIVE),
        name="name",
        from_rank="rank",
        to_rank="to_rank",
        from_ns=pl.col("start_ns") - first,
        to_ns="to_ns",
    )


def _transfers(run: Run, step: int, shown: list[int], first: Any) -> pl.DataFrame:
    """What ranks send to one another: from the start of the send to the end of the receive."""
    try:
        moved = run.analyse("pipeline_transfers")
    except Unavailable:
        return pl.DataFrame(schema=_EMPTY)
    known = moved.filter(
        (pl.col("step") == step)
        & pl.col("rank_a").is_in(shown)
        & pl.col("rank_b").is_in(shown)
        & pl.col("send_start_ns").is_not_null()
        & pl.col("receive_end_ns").is_not_null()
    )
    most = known.sort(pl.col("send_start_ns") - pl.col("receive_end_ns"), "rank_a", "rank_b", "number").head(TRANSFERS)
    return most.select(
        kind=pl.lit(SEND),
        name="name",
        from_rank="rank_a",
        to_rank="rank_b",
        from_ns=pl.col("send_start_ns") - first,
        to_ns=pl.col("receive_end_ns") - first,
    )


def draw(data: Data, language: Language) -> Spec:
    """A band for each rank: computing in its upper half, communication in its lower one; lines between bands.

    `customdata` of a range: rank, step, start and end in ns as texts (they are too long for numbers), and words.
    """
    rows, lines = data.rows[0].frame, data.rows[1].frame
    facts = data.facts
    places, stages, slow = facts["places"], facts["stages"], facts["slow"]
    unit = unit_of("length_ns", [*(rows["since_ns"] + rows["length_ns"])])
    stage_word = "stage" if language == "en" else "阶段"
    names = [f"rank {rank}" + (f" ({stage_word} {stages[rank]})" if rank in stages else "") for rank in places]
    calls_word = "calls" if language == "en" else "次"
    busy_word = "busy" if language == "en" else "其中忙"
    traces: list[dict[str, Any]] = []
    for band in KINDS:
        own = rows.filter(pl.col("band") == band)
        if own.is_empty():
            continue
        name = word(band, language, "band")
        computes = band == COMPUTING
        said = []
        for row in own.iter_rows(named=True):
            what = label(row["name"]) if row["name"] is not None else f"{row['calls']} {calls_word}"
            busy = unit.of([row["busy_ns"]])[0]
            more = "" if row["calls"] == 1 else f", {busy_word} {busy}{unit.after}"
            said.append([row["rank"], facts["step"], str(row["start_ns"]), str(row["end_ns"]), what + more])
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "base": unit.of(own["since_ns"]),
                "x": unit.of(own["length_ns"]),
                "y": [places[rank] for rank in own["rank"]],
                "offset": -_HALF if computes else _INNER,
                "width": _HALF + _INNER if computes else _HALF - _INNER,
                "customdata": said,
                "marker": {"color": _COLOURS[band], "line": {"width": 0}},
                "hovertemplate": f"rank %{{customdata[0]}}: {name}<br>%{{customdata[4]}}<br>%{{base:.5~g}}{unit.after} "
                f"+ %{{x:.4~g}}{unit.after}<extra></extra>",
            }
        )
    traces += _drawn_lines(lines, places, unit, language)
    marked = [at for rank, at in places.items() if rank in slow.ranks]
    edges = [
        at + 0.5 for at, (here, there) in enumerate(pairwise(places)) if stages.get(here, 0) != stages.get(there, 0)
    ]
    return {
        "data": traces,
        "layout": {
            "barmode": "overlay",
            "height": 150 + max(min(46 * len(names), 1100), 120),
            "showlegend": True,
            "hovermode": "closest",
            "dragmode": "zoom",
            "xaxis": {"title": {"text": f"{word('time', language)} ({unit.name})"}},
            "yaxis": {
                **some_ticks(names, marked, most=len(names)),
                "range": [len(names) - 0.5, -0.5],
                "showgrid": False,
                "zeroline": False,
            },
            "shapes": [
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": 0,
                    "x1": 1,
                    "y0": edge,
                    "y1": edge,
                    "line": {"dash": "dot", "width": 1},
                }
                for edge in edges
            ],
        },
    }


def _drawn_lines(lines: pl.DataFrame, places: dict[int, int], unit: Any, language: Language) -> list[dict[str, Any]]:
    """A line from band to band for each call."""
    traces = []
    for kind, name, colour in (
        (COLLECTIVE, "same_collective", GREEN),
        (SEND, "transfer", PURPLE),
    ):
        own = lines.filter(pl.col("kind") == kind)
        if own.is_empty():
            continue
        across: list[float | None] = []
        down: list[float | None] = []
        ends: dict[str, list[Any]] = {"x": [], "y": [], "customdata": []}
        for call, source, target, begins, arrives in own.select(
            "name", "from_rank", "to_rank", "from_ns", "to_ns"
        ).iter_rows():
            below = places[source] < places[target]
            leaves, arrives_at = (_HALF, -_HALF) if below else (-_HALF, _HALF)
            if kind == COLLECTIVE:  # it leads to communication, which is in the lower half
                arrives_at = _INNER
            start, end = unit.of([begins, arrives])
            across += [start, end, None]
            down += [places[source] + leaves, places[target] + arrives_at, None]
            ends["x"].append(end)
            ends["y"].append(places[target] + arrives_at)
            ends["customdata"].append([source, target, label(call) if call is not None else "", "▼" if below else "▲"])
        title = word(name, language)
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": title,
                "legendgroup": name,
                "x": across,
                "y": down,
                "line": {"color": colour, "width": 1.2},
                "opacity": 0.75,
                "hoverinfo": "skip",
            }
        )
        points = {
            "symbol": ["triangle-down" if row[3] == "▼" else "triangle-up" for row in ends["customdata"]]
            if kind == SEND
            else "circle",
            "size": 8 if kind == SEND else 4,
            "color": colour,
        }
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": title,
                "legendgroup": name,
                "showlegend": False,
                **ends,
                "customdata": [row[:3] for row in ends["customdata"]],
                "marker": points,
                "hovertemplate": f"{title}: rank %{{customdata[0]}} → %{{customdata[1]}}<br>%{{customdata[2]}}"
                f"<br>%{{x:.5~g}}{unit.after}<extra></extra>",
            }
        )
    return traces


FIGURE = Figure(
    "marey",
    Text("What each rank does in one {per}", "各 rank 一{per:noun}中的工作"),
    Text(
        "A band is a rank, by stage: computing above, communication below. Lines follow the same collective from rank "
        "to rank, and transfers from sender to receiver: a slanted line is a rank that comes late. Drag to zoom in.",
        "每条带是一个 rank，按阶段排列：上方为计算，下方为通信。连线表示各 rank 的同一集合通信，以及发送到接收；"
        "斜线说明有 rank 来晚。拖动可放大。",
    ),
    ("step_bands", "arrival", "pipeline_transfers"),
    data,
    draw,
    for_pages=True,
)
