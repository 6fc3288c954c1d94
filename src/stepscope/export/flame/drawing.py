"""Flame graphs that any browser shows: an SVG picture, and a page in which one can zoom and search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

import msgspec
import polars as pl

from stepscope.export.flame.frames import Flame
from stepscope.present import cell, duration

LEAST_RATIO = 0.0005
"""The least share of the whole of a call that is drawn: half a pixel of a wide screen."""

WIDTH, ROW, MARGIN, HEAD = 1200, 18, 10, 44
"""Pixels of an SVG picture: its width, the height of a call, its margin, and the height of what is above."""

LETTER = 6.6
"""Pixels of a letter, for names that are cut."""

COLOURS = {
    "thread": "#9aa5b1",
    "phase": "#b8a9c9",
    "module": "#7fb069",
    "python": "#e6aa68",
    "annotation": "#c9b458",
    "operator": "#5b9bd5",
    "compile": "#d36c6c",
    "gc": "#d36c6c",
    "runtime": "#a3a3c2",
    "kernel": "#e07a5f",
}
"""Colours by kind of call."""

SLOWER, FASTER, SAME = (214, 69, 65), (58, 124, 199), 222
"""Red, green and blue of calls of a differential graph whose difference is at least `STRONGEST`; of no difference."""

STRONGEST = 0.1
"""Difference, as a share of the whole, from which on colours are strongest."""


def svg(flame: Flame) -> Iterator[bytes]:
    """The picture, calls in others below them."""
    height = HEAD + MARGIN + ROW * (max(flame.rows["depth"].to_list()) + 1)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Verdana, DejaVu Sans, sans-serif" font-size="11">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n'
        f'<text x="{MARGIN}" y="18" font-size="14">{_text(flame.title)}</text>\n'
        f'<text x="{MARGIN}" y="35" fill="#555">{_text(_about(flame))}</text>\n'
    ).encode()
    for call in _placed(flame):
        x, width = MARGIN + call.start * (WIDTH - 2 * MARGIN), call.share * (WIDTH - 2 * MARGIN)
        y = HEAD + ROW * call.depth
        letters = int((width - 6) / LETTER)
        name = call.name if len(call.name) <= letters else f"{call.name[: letters - 1]}..." if letters > 5 else ""
        told = f"{call.name} ({call.kind}): {_told(call, flame.other)}"
        yield (
            f'<g><title>{_text(told)}</title><rect x="{x:.2f}" y="{y}" width="{max(width, 0.2):.2f}" '
            f'height="{ROW - 1}" rx="1.5" fill="{_colour(flame, call)}"/>'
            f'<text x="{x + 3:.2f}" y="{y + 12.5}">{_text(name)}</text></g>\n'
        ).encode("utf-8", "xmlcharrefreplace")
    yield b"</svg>\n"


def page(flames: Sequence[Flame]) -> bytes:
    """A page with one flame graph or several to choose from, which needs no network."""
    graphs = [
        {
            "title": flame.title,
            "about": _about(flame),
            "time": flame.time,
            "total": flame.total_ns,
            "compared": flame.compared,
            "drawn": flame.drawn,
            "other": flame.other,
            "rows": flame.rows.select("depth", "name", "kind", "calls", "whole_ns", "own_ns", *_other(flame)).rows(),
        }
        for flame in flames
    ]
    data = msgspec.json.encode({"graphs": graphs, "colours": COLOURS, "strongest": STRONGEST}).decode()
    template = (files(__package__) / "page.html").read_text(encoding="utf-8")
    before, _, after = template.partition("/*DATA*/")
    title = escape(flames[0].title)
    return (before.replace("TITLE", title) + data.replace("<", "\\u003c") + after).encode("utf-8", "replace")


class _Call(msgspec.Struct):
    """A call with its place: shares of the whole."""

    depth: int
    name: str
    kind: str
    calls: int
    whole_ns: int
    other_ns: int | None
    start: float
    share: float


def _placed(flame: Flame) -> Iterator[_Call]:
    """Each call, beside the ones before it in the same call."""
    next_ns = [0]
    rows = flame.rows.select("depth", "name", "kind", "calls", "whole_ns", *_other(flame))
    for depth, name, kind, calls, whole_ns, *other in rows.iter_rows():
        del next_ns[depth + 1 :]
        start = next_ns[depth]
        next_ns[depth] += whole_ns
        next_ns.append(start)
        share = whole_ns / flame.total_ns
        yield _Call(depth, name, kind, calls, whole_ns, other[0] if other else None, start / flame.total_ns, share)


def _other(flame: Flame) -> list[str]:
    return ["other_ns"] if flame.compared else []


def _told(call: _Call, other: str) -> str:
    """The figures of a call."""
    share = cell("share_ratio", call.share)
    if call.other_ns is None:
        return f"{duration(call.whole_ns)}, {share}; {call.calls} calls"
    return f"{duration(call.whole_ns)}, {share}; {other} {duration(call.other_ns)}"


def _colour(flame: Flame, call: _Call) -> str:
    """By kind; in a differential graph red if the new side takes longer, blue if it takes less, the stronger the
    more, grey if both take the same."""
    if call.other_ns is None:
        return COLOURS.get(call.kind, "#ccc")
    slower = (call.whole_ns - call.other_ns) * (1 if flame.compared == "new" else -1)
    strength = min(1.0, abs(slower) / (STRONGEST * flame.total_ns)) ** 0.5
    mixed = (round(SAME + (full - SAME) * strength) for full in (SLOWER if slower > 0 else FASTER))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _about(flame: Flame) -> str:
    whose = "time on the host" if flame.time == "host" else "time of device work, by what launched it"
    parts = [f"{duration(flame.total_ns)} of {whose}{' in a step' if flame.compared else ''}"]
    if flame.compared:
        parts.append(f"drawn: {flame.drawn}; red: {flame.sides[1]} takes longer, blue: less, grey: the same")
    if flame.left_out:
        parts.append(f"{flame.left_out} calls of less than {LEAST_RATIO:.2%} are left out")
    if flame.rows.select((pl.col("depth") == 0).sum()).item() > 1 and flame.time == "host":
        parts.append("threads run beside one another")
    return "; ".join(parts)


def _text(text: str) -> str:
    return escape(text)
