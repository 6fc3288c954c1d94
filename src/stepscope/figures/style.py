"""How figures look: colours by meaning, and a template for light and one for dark pages.

The colours are those of Okabe and Ito (2008), which people with any colour vision tell apart, and shades between them;
all of them stand out on white and on near-black. What differs between light and dark is only in the templates, so a
page switches by applying the other template, and nothing is drawn anew.
"""

from __future__ import annotations

from typing import Any, Literal

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, YELLOW = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#D9C517"),
)
GREY, DARK_GREY, LIGHT_GREY = "#8C8C8C", "#6B6B6B", "#B5B5B5"

COLOURS: dict[str, str] = {
    "computing": BLUE,
    "compute": BLUE,
    "host": SKY,
    "transmit": ORANGE,
    "communication": "#F0C466",
    "wait": VERMILION,
    "memory": GREEN,
    "free": LIGHT_GREY,
    "data_loading": PURPLE,
    "dispatch": GREY,
    "synchronisation": YELLOW,
    "dependency": LIGHT_GREY,
    "python": "#A6761D",
    "compile": "#7A4FA3",
    "garbage_collection": "#882255",
    "checkpoint": "#44AA99",
    "other": "#A0A0A0",
    "unmarked": "#B4B4B4",
    "not_recorded": "#C4C4C4",
    "computing_and_free": SKY,
    "interval": PURPLE,
    "forward_backward": BLUE,
    "tail": SKY,
    "forward": BLUE,
    "backward": SKY,
    "receiving": "#E8936A",
    "collective": "#F0C466",
    "unsplit": YELLOW,
    "extra": DARK_GREY,
    "waiting": VERMILION,
}
"""Colour of what a mark stands for, the same in all figures."""

SERIES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, "#7A4FA3", YELLOW)
"""Colours of things without a meaning of their own, e.g. transports."""

MANY = (
    *SERIES,
    *("#88B7DA", "#F5CE7F", "#7FCDB5", "#EFAB7A", "#5F3B4C", "#1B5E86", "#BBA3D6", "#8A7D0E"),
    *("#004B75", "#8C6100", "#00694C", "#8F3F00"),
)
"""Colours for up to twenty things side by side: those of series, then lighter and darker shades of them."""

SHADES = [[0, "#c9dff0"], [0.5, "#5aa2d0"], [1, "#005a91"]]
"""Colours of values of which none is better; they stand out on light and dark pages, also from empty cells."""

ALARMS = [[0, "#a9cce3"], [0.5, "#e8b04a"], [1, "#b83200"]]
"""The same of values that are usual at one end and bad at the other."""

PATTERNS: dict[str, str] = {
    "wait": "/",
    "receiving": "/",
    "communication": "x",
    "collective": "x",
    "not_recorded": ".",
    "dispatch": "\\",
}
"""Hatching of what must also be told apart without colours."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', sans-serif"

_INK = {"light": "#1f2430", "dark": "#dfe3ea"}
_PAPER = {"light": "#ffffff", "dark": "#14181f"}
_GRID = {"light": "#e3e6eb", "dark": "#303743"}
_LINE = {"light": "#9aa1ac", "dark": "#6c7583"}
_SCALES = {
    "light": [[0, "#f3f5f8"], [0.25, "#fdd9b0"], [0.5, "#f5a252"], [0.75, "#d55e00"], [1, "#7a2f00"]],
    "dark": [[0, "#1f2530"], [0.25, "#5c3410"], [0.5, "#a65408"], [0.75, "#e8822a"], [1, "#ffd9a8"]],
}
"""Colours of a heat map, from nothing to most: they begin near the page's own colour."""


def ink_on(colour: str) -> str:
    """The colour of a text on a colour `#rrggbb`: black or white, whichever stands out more (by WCAG's luminance)."""
    linear = [(int(colour[place : place + 2], 16) / 255) ** 2.2 for place in (1, 3, 5)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.18 else "#ffffff"


def template(theme: Theme = "light", *, clear: bool = False) -> dict[str, Any]:
    """Plotly's template of a theme; `clear` leaves the page's own background."""
    axis = {
        "automargin": True,
        "gridcolor": _GRID[theme],
        "linecolor": _LINE[theme],
        "zerolinecolor": _LINE[theme],
        "zerolinewidth": 1,
        "ticks": "outside",
        "ticklen": 5,
        "tickcolor": "rgba(0,0,0,0)",
        "title": {"standoff": 10},
    }
    paper = "rgba(0,0,0,0)" if clear else _PAPER[theme]
    ink = {"color": _INK[theme], "family": FONT, "size": 13}
    layout = {
        "font": ink,
        "paper_bgcolor": paper,
        "plot_bgcolor": paper,
        "colorway": list(SERIES),
        "colorscale": {"sequential": _SCALES[theme]},
        "xaxis": axis,
        "yaxis": axis,
        "title": {"font": {"size": 17}, "x": 0.01, "xanchor": "left"},
        "margin": {"l": 60, "r": 24, "t": 48, "b": 48},
        "modebar": {"bgcolor": _PAPER[theme], "color": _LINE[theme], "activecolor": _INK[theme]},
        "hoverlabel": {
            "align": "left",
            "bgcolor": _PAPER[theme],
            "bordercolor": _LINE[theme],
            "font": {"family": FONT, "size": 13, "color": _INK[theme]},
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        "annotationdefaults": {"font": ink, "arrowcolor": _LINE[theme]},
        "shapedefaults": {"line": {"color": _LINE[theme]}},
    }
    outline = {"line": {"color": _PAPER[theme], "width": 0.5}}
    bar = {
        "type": "bar",
        "marker": {**outline, "pattern": {"size": 7, "solidity": 0.2, "fillmode": "overlay", "fgopacity": 0.6}},
        "textfont": ink,
    }
    beside = {"outlinewidth": 0, "thickness": 14, "title": {"side": "right"}}
    heat = {"type": "heatmap", "colorscale": _SCALES[theme], "colorbar": beside}
    tree = {"type": "treemap", "marker": {"line": {"color": _PAPER[theme], "width": 1}}}
    return {"data": {"bar": [bar], "heatmap": [heat], "treemap": [tree]}, "layout": layout}
