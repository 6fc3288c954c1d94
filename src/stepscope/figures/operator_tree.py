"""What the time of operators goes to, as nested areas: kinds, types, names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.figures.axes import label, short, unit_of
from stepscope.figures.base import Data, Figure, Spec
from stepscope.figures.operator_groups import OTHERS, most, names_of
from stepscope.figures.style import COLOURS
from stepscope.figures.words import word
from stepscope.present import Language
from stepscope.texts import Text

if TYPE_CHECKING:
    from stepscope.run import Run

MOST = 80
"""Operators that have an area of their own."""


def data(run: Run) -> Data:
    """The rows of `operator_shares` with most time, and one for the others of each kind."""
    return most(run.analyse("operator_shares"), MOST, rest=True)


def draw(data: Data, language: Language) -> Spec:
    """Areas in areas: of a kind, of a type, of a name."""
    rows = data.main
    unit = unit_of("total_ns", rows["total_ns"])
    tree = _Tree(unit.factor)
    others = "others" if language == "en" else "其他"
    columns = ("kind", "type", "total_ns", "share_ratio", "count")
    for name, (kind, type_, total, share, count) in zip(names_of(rows), rows.select(columns).iter_rows(), strict=True):
        place = tree.inner("", word(kind, language, "kind"), kind)
        if type_ is not None and type_ != name:
            place = tree.inner(place, label(type_), kind)
        text = others if name == OTHERS else label(name)
        tree.leaf(place, text, kind, total, share, count)
    calls = "calls" if language == "en" else "次调用"
    return {
        "data": [
            {
                "type": "treemap",
                "ids": tree.ids,
                "parents": tree.parents,
                "labels": tree.labels,
                "values": short(tree.values),
                "customdata": [[*short([share], 4), count] for share, count in tree.facts],
                # rounded totals may be less than what is in them, and nothing would be drawn
                "branchvalues": "remainder",
                "marker": {"colors": [COLOURS[kind] for kind in tree.kinds]},
                "texttemplate": "%{label}<br>%{customdata[0]:.1%}",
                "hovertemplate": f"%{{label}}<br>%{{value:.4~g}}{unit.after} (%{{customdata[0]:.1%}})"
                f"<br>%{{customdata[1]:,}} {calls}<extra></extra>",
                "tiling": {"pad": 2},
                "pathbar": {"visible": True},
                "maxdepth": 3,
            }
        ],
        "layout": {
            "height": 520,
            "showlegend": False,
            "margin": {"t": 8, "l": 8, "r": 8, "b": 8},
            "uniformtext": {"minsize": 10, "mode": "hide"},  # smaller texts cannot be read
        },
    }


class _Tree:
    """The areas, each after the one that it is in."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.places: dict[tuple[str, str], int] = {}
        self.ids: list[str] = []
        self.parents: list[str] = []
        self.labels: list[str] = []
        self.values: list[float] = []
        self.facts: list[tuple[float, int]] = []
        self.kinds: list[str] = []

    def inner(self, parent: str, text: str, kind: str) -> str:
        """The id of an area that holds others."""
        place = self.places.get((parent, text))
        if place is None:
            place = self.places[parent, text] = len(self.ids)
            self._add(parent, text, kind, 0.0, 0.0, 0)
        return self.ids[place]

    def leaf(self, parent: str, text: str, kind: str, total: int, share: float, count: int) -> None:
        """Add an operator, to all that it is in as well."""
        self._add(parent, text, kind, total / self.factor, share, count)
        while parent:
            place = self.ids.index(parent)
            before = self.facts[place]
            self.facts[place] = (before[0] + share, before[1] + count)
            parent = self.parents[place]

    def _add(self, parent: str, text: str, kind: str, value: float, share: float, count: int) -> None:
        self.ids.append(str(len(self.ids)))
        self.parents.append(parent)
        self.labels.append(text)
        self.values.append(value)
        self.facts.append((share, count))
        self.kinds.append(kind)


FIGURE = Figure(
    "operator-tree",
    Text("Time of operators by kind, type and name", "算子耗时：按种类、类型和名称"),
    Text(
        "An area is as large as the time of a kernel or operator on all ranks; those of a kind and type lie together. "
        "Communication includes waiting for other ranks.",
        "面积表示一个 kernel 或算子在所有 rank 上的总耗时，同类的放在一起。通信包括等待其他 rank 的时间。",
    ),
    ("operator_shares",),
    data,
    draw,
)
