"""Stacked bars of ranks, stages or hosts, as many as are readable, with the slow ones marked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError, close_matches
from stepscope.figures.axes import FEW, label, short, unit_of
from stepscope.figures.base import Spec
from stepscope.figures.sharing import shared
from stepscope.figures.slow_marks import Slow
from stepscope.figures.style import COLOURS, PATTERNS, VERMILION
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.selection import describe_numbers
from stepscope.text_columns import filled_in
from stepscope.texts import Text

MOST = 1100
"""Bars; of more ranks, one of several that follow one another has a bar."""

SLIDER = 72
"""Bars from which on a slider below chooses which of them are seen."""

PLACED = 300
"""Bars up to which each says on what host and in which stage its rank is."""

ABOVE = 0.03
"""How far above its bar a mark is, over the height of the highest bar."""

RANK, STAGE, HOST = "rank", "stage", "host"


@dataclass(frozen=True)
class Bars:
    """What bars show.

    Args:
        rows: A row for each bar and part: `key` (rank, stage or host), `part`, `value_ns`, `share_ratio`, `total_ns`,
            and `place` (host and stage of a rank, or the ranks of a stage or host; null if unknown).
        parts: The parts, the lowest in a bar first.
        by: What a bar is.
        keys: The bars in order.
        slow: What is marked.
        members: Ranks of a stage or host, by its key.
    """

    rows: pl.DataFrame
    parts: Sequence[str]
    by: str
    keys: Sequence[Any]
    slow: Slow
    members: Mapping[Any, Sequence[int]]

    def ranks(self, key: Any) -> Sequence[int]:
        """The ranks of a bar."""
        return [key] if self.by == RANK else self.members.get(key, ())


def fewer(ranks: pl.DataFrame, longest: str, slow: Slow) -> tuple[pl.DataFrame, list[Text]]:
    """Of too many ranks, the one of several that follow one another for which a column is greatest; slow ones always.

    Args:
        ranks: A row for each rank (`rank`).
    """
    if ranks.height <= MOST:
        return ranks, []
    places = shared(ranks["rank"], MOST - len(slow.ranks))
    first = ranks.with_columns(place=places.place("rank")).sort("place", -pl.col(longest), "rank", nulls_last=True)
    kept = first.unique("place", keep="first", maintain_order=True)["rank"]
    shown = ranks.filter(pl.col("rank").is_in(kept.implode()) | pl.col("rank").is_in(sorted(slow.ranks)))
    return shown, [
        Text(
            f"{shown.height} of {ranks.height} ranks: of each {places.each} that follow one another, the one that "
            "takes longest.",
            f"共 {ranks.height} 个 rank，显示 {shown.height} 个：每 {places.each} 个相邻的 rank 中耗时最长的一个。",
        )
    ]


def in_order(rows: pl.DataFrame, sort: str, by: str, columns: Mapping[str, str]) -> list[Any]:
    """The keys of bars in an order.

    Args:
        rows: A row for each bar.
        sort: What they are: by their number or name, or a part, the greatest first.
        columns: Columns by the parts that may be sorted by.

    Raises:
        StepscopeError: If there is no such part.
    """
    if sort in (by, RANK):
        return rows[by].to_list() if by != RANK else rows.sort(RANK)[RANK].to_list()
    if sort not in columns:
        raise StepscopeError(f"bars cannot be sorted by {sort!r}. {close_matches(sort, [by, *columns])}")
    return rows.sort(pl.col(columns[sort]), by, descending=[True, False], nulls_last=True)[by].to_list()


def draw_bars(bars: Bars, language: Language, axis: str) -> Spec:
    """Stacked bars; a triangle above a bar marks what is slow.

    A part's `customdata` is the rank, stage or host, its share, what the bar is about in words, and its total.
    """
    keys = list(bars.keys)
    by_word = {"en": {RANK: "rank", STAGE: "stage", HOST: "host"}, "zh": {RANK: "rank", STAGE: "阶段", HOST: "主机"}}
    noun = by_word[language][bars.by]
    found: dict[str, dict[Any, tuple[int, float | None]]] = {}
    totals: dict[Any, int] = {}
    places: dict[Any, str] = {}
    for key, part, value, share, total, place in bars.rows.select(
        "key", "part", "value_ns", "share_ratio", "total_ns", "place"
    ).iter_rows():
        found.setdefault(part, {})[key] = (value, share)
        totals[key] = total
        places[key] = label(place) if place is not None and len(keys) <= PLACED else ""
    heights = {key: sum(found[part].get(key, (0, None))[0] for part in found) for key in keys}
    unit = unit_of("_ns", heights.values())
    names = [label(key, 24) for key in keys]
    whole = dict(zip(keys, unit.of(totals.get(key) for key in keys), strict=True))
    total_word = "in all" if language == "en" else "合计"
    traces: list[dict[str, Any]] = []
    for part in bars.parts:
        if part not in found:
            continue
        name, own = word(part, language), found[part]
        marker = {"color": COLOURS[part]} | ({"pattern": {"shape": PATTERNS[part]}} if part in PATTERNS else {})
        shares = short((own.get(key, (0, None))[1] for key in keys), 3)
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": names,
                "y": unit.of(own.get(key, (None, None))[0] for key in keys),
                "customdata": [
                    [key, share, places.get(key, ""), whole[key]] for key, share in zip(keys, shares, strict=True)
                ],
                "marker": marker | ({"line": {"width": 0}} if len(keys) > SLIDER else {}),
                "hovertemplate": f"{noun} %{{x}} %{{customdata[2]}}<br>{name}: %{{y:.4~g}}{unit.after} "
                f"(%{{customdata[1]:.1%}})<br>{total_word}: %{{customdata[3]:.4~g}}{unit.after}<extra></extra>",
            }
        )
    traces += _marks(bars, names, unit.of(heights[key] for key in keys), noun, language)
    many = len(keys) > SLIDER
    return {
        "data": traces,
        "layout": {
            "barmode": "stack",
            "bargap": 0.7 if len(keys) < FEW else 0.25 if len(keys) < 48 else 0.08 if not many else 0,
            "height": 430 + (60 if many else 0),
            "showlegend": True,
            "xaxis": {
                "title": {"text": noun},
                "type": "category",
                "range": [-0.5, len(keys) - 0.5],
                **(
                    {
                        "rangeslider": {"visible": True, "thickness": 0.08, "range": [-0.5, len(keys) - 0.5]},
                        "nticks": 32,
                    }
                    if many
                    else {}
                ),
            },
            "yaxis": {"title": {"text": f"{axis} ({unit.name})"}, "rangemode": "tozero", "fixedrange": False},
        },
    }


def _marks(
    bars: Bars, names: Sequence[str], heights: Sequence[float | int | None], noun: str, language: Language
) -> list[dict[str, Any]]:
    """Triangles above what is slow."""
    marked = []
    for at, key in enumerate(bars.keys):
        slow = bars.slow.among(bars.ranks(key))
        is_slow = bool(slow) if bars.by != HOST else bool(slow) or key in bars.slow.hosts
        if is_slow:
            which = "" if bars.by == RANK else f" (rank {describe_numbers(slow)})" if slow else ""
            marked.append((at, bars.slow.at(slow, language) + which))
    if not marked:
        return []
    name = "slow" if language == "en" else "慢"
    above = max((height for height in heights if height is not None), default=0) * ABOVE
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [names[at] for at, _ in marked],
            "y": short([(heights[at] or 0) + above for at, _ in marked]),
            "customdata": [[bars.keys[at], text] for at, text in marked],
            "marker": {"symbol": "triangle-down", "size": 12, "color": VERMILION},
            "cliponaxis": False,
            "hovertemplate": f"{noun} %{{x}}<br>{name}: %{{customdata[1]}}<extra></extra>",
        }
    ]


def members_of(texts: Iterable[tuple[Any, str]]) -> dict[Any, list[int]]:
    """Ranks of stages or hosts, of lists as `0, 1`."""
    return {key: [int(one) for one in text.split(",")] for key, text in texts if text}


def place_of(language: Language) -> pl.Expr:
    """Host and stage of a rank in parentheses; null if neither is known."""
    stage = filled_in("stage {}" if language == "en" else "阶段 {}", "stage")
    where = pl.concat_str(pl.col("host"), stage, separator=", ", ignore_nulls=True)
    return pl.when(where.str.len_chars() > 0).then(filled_in("({})", where))
