"""Pages that are made from code are up to date, and those that are not name what there is."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from stepscope.analysis import ANALYSES

DOCS = Path(__file__).parents[1] / "docs"


def test_the_page_of_tables_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_tables", DOCS / "make_tables.py")
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)

    page = (DOCS / "tables.md").read_text(encoding="utf-8")

    assert page == maker.page(), "run: python docs/make_tables.py"


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_every_analysis_has_its_section(name: str) -> None:
    page = (DOCS / "analyses.md").read_text(encoding="utf-8")

    assert f"\n## {name}\n" in page
