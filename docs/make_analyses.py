"""Write the tables of columns in docs/analyses.md and docs/comparisons.md from the declarations:
`python docs/make_analyses.py`."""

from __future__ import annotations

from pathlib import Path

from make_tables import column_rows

from stepscope.analysis import ANALYSES
from stepscope.compare import COMPARISONS

PAGE = Path(__file__).with_name("analyses.md")
OF_PAIRS = Path(__file__).with_name("comparisons.md")
HEADING, BEGIN = "\n## ", "<!-- columns: made by docs/make_analyses.py -->\n"


def page(text: str) -> str:
    """The page, each section about an analysis or a comparison with the table of its columns at the end."""
    introduction, *sections = text.rstrip("\n").split(HEADING)
    return HEADING.join([introduction, *map(section, sections)]) + "\n"


def section(text: str) -> str:
    """One section, without its heading's number signs."""
    name = text.partition("\n")[0]
    asked = ANALYSES.get(name) or COMPARISONS.get(name)
    if asked is None:
        return text
    written = text.partition(BEGIN)[0].rstrip("\n")
    return "\n".join([written, "", BEGIN + "\n".join(column_rows(asked.columns)), ""])


if __name__ == "__main__":
    for each in (PAGE, OF_PAIRS):
        each.write_text(page(each.read_text(encoding="utf-8")), encoding="utf-8")
