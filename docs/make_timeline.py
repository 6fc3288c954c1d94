"""Write the table of tracks in docs/timeline.md from their declarations: `python docs/make_timeline.py`."""

from __future__ import annotations

from pathlib import Path

from stepscope.timeline.tracks import FAMILIES

PAGE = Path(__file__).with_name("timeline.md")
BEGIN, END = "<!-- tracks: made by docs/make_timeline.py -->\n", "<!-- end of tracks -->"


def page(text: str) -> str:
    """The page with its table as the declarations say."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


def table() -> str:
    """One row a family, in the order in which viewers show them."""
    rows = ["| tracks | in the summary | what they show |", "|---|---|---|"]
    for family in FAMILIES:
        rows.append(f"| {family.title} | {'yes' if family.kind == 'summary' else ''} | {family.doc} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
