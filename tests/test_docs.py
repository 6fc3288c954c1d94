"""Pages that are made from code are up to date, and those that are not name what there is."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from stepscope import open_run
from stepscope.analysis import ANALYSES
from stepscope.compare import COMPARISONS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts of the docs folder find each other, as they do when run."""
    monkeypatch.syspath_prepend(DOCS)


def maker(name: str) -> ModuleType:
    """A script of the docs folder, as a module."""
    return importlib.import_module(name)


def test_the_page_of_tables_is_up_to_date() -> None:
    page = (DOCS / "tables.md").read_text(encoding="utf-8")

    assert page == maker("make_tables").page(), "run: python docs/make_tables.py"


def test_the_table_of_options_is_up_to_date() -> None:
    page = (DOCS / "profiler.md").read_text(encoding="utf-8")

    assert page == maker("make_options").page(page), "run: python docs/make_options.py"


def test_the_table_of_tracks_is_up_to_date() -> None:
    page = (DOCS / "timeline.md").read_text(encoding="utf-8")

    assert page == maker("make_timeline").page(page), "run: python docs/make_timeline.py"


def test_the_page_of_commands_is_up_to_date() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")

    assert page == maker("make_commands").page(page), "run: python docs/make_commands.py"


def test_the_page_of_rules_is_up_to_date() -> None:
    page = (DOCS / "rules.md").read_text(encoding="utf-8")

    assert page == maker("make_rules").page(page), "run: python docs/make_rules.py"


def test_the_columns_of_the_analyses_are_up_to_date() -> None:
    page = (DOCS / "analyses.md").read_text(encoding="utf-8")

    assert page == maker("make_analyses").page(page), "run: python docs/make_analyses.py"


def test_the_json_schema_is_up_to_date() -> None:
    make_schema = maker("make_schema")
    page = make_schema.PAGE.read_text(encoding="utf-8")

    assert page == make_schema.page(page), "run: python docs/make_schema.py"


@pytest.mark.parametrize("name", sorted(ANALYSES))
def test_every_analysis_has_one_section(name: str) -> None:
    page = (DOCS / "analyses.md").read_text(encoding="utf-8")

    assert page.count(f"\n## {name}\n") == 1


def test_the_example_of_what_if_in_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    text = (DOCS / "python.md").read_text(encoding="utf-8").partition("## What if")[2]
    found: dict[str, Any] = {"open_run": open_run}
    exec(text.partition("```python\n")[2].partition("```")[0], found)

    assert found["mean_ms"] < found["ideal"]["replayed_ns"].mean() / 1e6
    assert found["error"] < 0.05
    assert "rank" in found["known"]["word"]


def test_the_page_of_commands_has_the_options_of_every_command() -> None:
    page = (DOCS / "commands.md").read_text(encoding="utf-8")

    assert all(f"| `{option}" in page for option in ("--plugin", "--limits", "--unused-days", "--schedule", "--lang "))
    assert "`, `--language " in page
    every = "[the whole job](#the-whole-job), [one rank](#one-rank), [two sides](#two-sides)"
    assert f"| `--run RUN` | `analyze`, `report`, `timeline`, `view`, `info`, `sql`, `export`, {every} |" in page


def test_the_columns_of_the_comparisons_are_up_to_date() -> None:
    page = (DOCS / "comparisons.md").read_text(encoding="utf-8")

    assert page == maker("make_analyses").page(page), "run: python docs/make_analyses.py"
    assert all(page.count(f"\n## {name}\n") == 1 for name in COMPARISONS)
