"""Write the tables of columns in docs/analyses.md from the declarations: `python docs/make_analyses.py`."""

from __future__ import annotations

from pathlib import Path

from make_tables import column_rows

from stepscope.analysis import ANALYSES

PAGE = Path(__file__).with_name("analyses.md")
HEADING, BEGIN = "\n## ", "<!-- columns: made by docs/make_analyses.py -->\n"


def page(text: str) -> str:
    """The page, each section about an analysis with the table of its columns at the end."""
    introduction, *sections = text.rstrip("\n").split(HEADING)
    return HEADING.join([introduction, *map(section, sections)]) + "\n"


def section(text: str) -> str:
    """One section, without its heading's number signs."""
    name = text.partition("\n")[0]
    if name not in ANALYSES:
        return text
    written = text.partition(BEGIN)[0].rstrip("\n")
    return "\n".join([written, "", BEGIN + "\n".join(column_rows(ANALYSES[name].columns)), ""])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
