"""Write the table of docs/figures.md from the figures: `python docs/make_figures.py`."""

from __future__ import annotations

from pathlib import Path

from stepscope.advice.messages import fill
from stepscope.figures import FIGURES

PAGE = Path(__file__).with_name("figures.md")
BEGIN, END = "<!-- figures: made by docs/make_figures.py -->\n", "<!-- end of figures -->"


def page(text: str) -> str:
    """The page with its table as the figures say."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def table() -> str:
    """A row for each figure."""
    lines = ["| figure | shows | answers |", "|---|---|---|"]
    for figure in FIGURES:
        needs = ", ".join(f"`{name}`" for name in figure.needs)
        lines.append(f"| `{figure.name}` | **{fill(figure.title, {})}.** {fill(figure.shows, {})} | {needs} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
