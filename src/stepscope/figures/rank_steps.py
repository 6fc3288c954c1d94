"""What a step consists of on all ranks, stages or hosts side by side: the step trace of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.errors import StepscopeError, Unavailable, close_matches
from stepscope.figures.base import Data, Figure, Rows, Spec, column
from stepscope.figures.rank_bars import HOST, RANK, STAGE, Bars, draw_bars, fewer, in_order, members_of, place_of
from stepscope.figures.slow_marks import slow_of
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.text_columns import filled_in
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

QUESTIONS = {RANK: "rank_means", STAGE: "stage_means", HOST: "host_means"}
"""Answers by what a bar is."""

PHASE, ACTIVITY = "phase", "activity"

_WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    PHASE: (("interval", "forward_backward", "tail"),),
    ACTIVITY: (
        ("computing", "free", "receiving", "collective"),
        ("computing_and_free", "receiving", "collective"),
        ("computing", "free", "communication"),
        ("computing_and_free", "communication"),
    ),
}
"""Parts that add up to a step, the most telling first."""

_COLUMN = {
    "communication": "communication_not_overlapped_ns",
    "collective": "communication_not_overlapped_exclude_receive_ns",
}
"""Columns of parts that are called otherwise."""

PARTS = tuple(dict.fromkeys(part for ways in _WAYS.values() for way in ways for part in way))
SORTED_BY = {"step": "step_ns", "stage_time": "stage_ns", **{part: _COLUMN.get(part, f"{part}_ns") for part in PARTS}}
"""What bars can be sorted by, and its column."""

_COLUMNS = (
    column("rank", "rank"),
    column("host", "host", "Its host."),
    column("stage", "stage", "Its pipeline stage, from 0.", "int32"),
    column("ranks", "ranks", "Its recorded ranks."),
    column("part", "part", "What the time goes to.", values=PARTS),
    column("value_ns", "time", "Its time in the step, or its mean.", "int64"),
    column("share_ratio", "share", "Share of the step.", "float64"),
    column("total_ns", "whole step", "The step.", "int64"),
)


def data(run: Run, *, step: int | None = None, by: str = RANK, sort: str = "", split: str = "") -> Data:
    """Parts of a step of each rank, stage or host.

    Args:
        step: The step. Default: the mean of all that count.
        by: What a bar is: `rank`, `stage` or `host`.
        sort: `step` or a part, the greatest first. Default: by number or name.
        split: `phase` (before forward, forward and backward, after backward) or `activity` (computing, communication,
            idle time). Default: phases where they are all that the source tells apart, and no stages wait for others.

    Raises:
        StepscopeError: If there is no such choice.
    """
    for given, choices in ((by, [*QUESTIONS]), (split or PHASE, [*_WAYS])):
        if given not in choices:
            raise StepscopeError(f"there is no {given!r}. {close_matches(given, choices)}")
    question = QUESTIONS[by]
    found = run.analyse(question, **({} if step is None else {"chosen": str(step)}))
    known = found.filter(pl.col("split") == "steps") if (found["split"] == "steps").any() else found
    if step is not None and not (found["split"] == "steps").any():
        raise Unavailable(f"nothing is known of step {step}", question=question)
    way, parts = _split(known, split)
    if not parts:
        raise Unavailable("the parts of a step are not known", question=question)
    slow = slow_of(run)
    notes = [Text(f"Step {step}.", f"第 {step} 步。")] if step is not None else []
    if by == RANK:
        known, left = fewer(known, "step_ns", slow)
        notes += left
    keys = in_order(known, sort or by, by, SORTED_BY)
    columns = [_COLUMN.get(part, f"{part}_ns") for part in parts]
    long = (
        known.unpivot(columns, index=[by, "step_ns", *_others(known, by)], variable_name="part", value_name="value_ns")
        .drop_nulls("value_ns")
        .with_columns(
            part=pl.col("part").replace(dict(zip(columns, parts, strict=True))),
            share_ratio=pl.when(pl.col("step_ns") > 0).then(pl.col("value_ns") / pl.col("step_ns")),
            total_ns="step_ns",
        )
    )
    order = pl.DataFrame({by: keys, "order": range(len(keys))}, schema_overrides={by: known.schema[by]})
    rows = long.join(order, on=by).sort("order", maintain_order=True)
    members = members_of(known.select(by, "ranks").iter_rows()) if by != RANK else {}
    ranks = known[RANK] if by == RANK else [rank for some in members.values() for rank in some]
    return Data(
        [Rows(rows, [one for one in _COLUMNS if one.name in rows.columns])],
        [*slow.notes(ranks), *notes],
        {"by": by, "keys": keys, "parts": parts, "slow": slow, "members": members, "way": way, "step": step},
    )


def _others(known: pl.DataFrame, by: str) -> list[str]:
    return [name for name in ("host", "stage", "ranks") if name in known.columns and name != by]


def _split(known: pl.DataFrame, split: str) -> tuple[str, tuple[str, ...]]:
    """How steps are split, and the parts; none if that is not known."""

    def parts_of(way: str) -> tuple[str, ...]:
        ways = _WAYS[way]
        has = {part for one in ways for part in one if known[_COLUMN.get(part, f"{part}_ns")].count()}
        return next((one for one in ways if has.issuperset(one)), ())

    activity, phase = parts_of(ACTIVITY), parts_of(PHASE)
    if split:
        return (split, activity if split == ACTIVITY else phase)
    is_told = "computing" in activity or "receiving" in activity
    return (PHASE, phase) if phase and not is_told else (ACTIVITY, activity) if activity else (PHASE, phase)


def draw(data: Data, language: Language) -> Spec:
    """Stacked bars."""
    facts, rows = data.facts, data.main
    by = facts["by"]
    place = place_of(language) if by == RANK else filled_in("(rank {})", "ranks")
    bars = Bars(
        rows.with_columns(key=pl.col(by), place=place),
        facts["parts"],
        by,
        facts["keys"],
        facts["slow"],
        facts["members"],
    )
    axis = word("time", language) if facts["step"] is not None else "mean time" if language == "en" else "平均时间"
    return draw_bars(bars, language, axis)


FIGURE = Figure(
    "rank-steps",
    Text("What one {per} consists of on each rank", "各 rank 一{per:noun}的组成"),
    Text(
        "A bar is a rank's {per}, or the mean of a stage or host. Where all wait for one another, the slow rank is the "
        "one that computes longest and communicates least; it is marked.",
        "每根柱是一个 rank 的一{per:noun}，或一个阶段、一台主机的平均。"
        "各 rank 互相等待时，计算最久而通信最少的即慢 rank，已标记。",
    ),
    ("rank_means", "stage_means", "host_means"),
    data,
    draw,
    for_pages=True,
)
