"""A table, a reader, an analysis, a rule and a page are added by one new file and one line each.

A copy of the package gets one of each; the copy's command then reads a file of the new format, answers the new question
on the new page, gives the new advice and lists all of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from package_copy import copy_package, printed

ADDED = {
    "tables/widgets.py": """
        from stepscope.tables.base import Column, Table

        WIDGETS = Table(
            name="widgets",
            doc="One row per widget.",
            columns=(
                Column("rank", "int32", "Global rank.", nullable=False),
                Column("name", "string", "Its name."),
                Column("duration_ns", "int64", "How long it takes."),
            ),
        )
        """,
    "sources/widgets.py": """
        import json

        from stepscope.sources.base import Input
        from stepscope.tables import RANKS, WIDGETS


        class WidgetSource:
            name = "widgets"
            version = 1
            family = "widgets"
            reasons = {"kernels": "widgets have no kernels"}
            own_tables = frozenset({"widgets"})

            def find(self, directory, names):
                return None

            def sniff(self, file, head):
                return Input(self.name, file, (file,)) if b'"widgets"' in head else None

            def read(self, item, sink):
                held = json.loads(item.path.read_text())["widgets"]
                sink.write(RANKS, RANKS.unchecked(framework=["pytorch"]))
                sink.write(WIDGETS, WIDGETS.unchecked(name=list(held), duration_ns=list(held.values())))
        """,
    "analysis/operators/widget_totals.py": """
        import polars as pl

        from stepscope.analysis.columns import columns
        from stepscope.analysis.registry import analysis
        from stepscope.tables.base import Column


        @analysis("rank", columns("rank name", Column("cost_ns", "int64", "What it costs.", title="price")))
        def widget_totals(widgets: pl.LazyFrame) -> pl.LazyFrame:
            '''Sum up widgets.'''
            return widgets.group_by("rank", "name").agg(cost_ns=pl.col("duration_ns").sum()).sort("name")
        """,
    "advice/rules/widget_cost.py": """
        from stepscope.advice.finding import Finding
        from stepscope.advice.messages import Message
        from stepscope.advice.registry import rule
        from stepscope.advice.messages import Text

        WORDS = {
            "dear": Message(
                summary=Text("Widget {name} costs {cost_ns:ms}.", "部件 {name} 耗时 {cost_ns:ms}。"),
                cause=Text("It is dear.", "它很贵。"),
                action={(None, None): Text("Use another widget.", "换一个部件。")},
            )
        }


        @rule("widget-cost", WORDS)
        def widget_cost(widget_totals):
            '''Name the dearest widget.'''
            name, cost_ns = widget_totals.sort("cost_ns").select("name", "cost_ns").row(-1)
            yield Finding("widget-cost", "dear", {"name": name, "cost_ns": cost_ns}, saving_ns=cost_ns)
        """,
    "pages/widgets.py": """
        from stepscope.pages.base import Page, Section

        PAGE = Page("widgets", "Show what widgets cost.", [Section("widget_totals", "Widgets {by_step}")])
        """,
}
LINES = {
    "tables/__init__.py": (
        "from stepscope.tables.ranks import RANKS as RANKS\n",
        "from stepscope.tables.widgets import WIDGETS as WIDGETS\n",
    ),
    "sources/registry.py": (
        "from stepscope.sources.classic import ClassicSource\n",
        "from stepscope.sources.widgets import WidgetSource\n",
    ),
    "analysis/__init__.py": (
        "from stepscope.analysis.step.activity import activity as activity\n",
        "from stepscope.analysis.operators.widget_totals import widget_totals as widget_totals\n",
    ),
    "advice/rules/__init__.py": ("    slow_rank,\n", "    widget_cost,\n"),
    "pages/__init__.py": ('    "host",\n', '    "widgets",\n'),
}
"""File to a line of it, and the one that is added behind."""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, and a file in the new format beside it."""
    folder = tmp_path_factory.mktemp("copy")
    files = {file: f'"""Made by a test."""\n{dedent(text)}' for file, text in ADDED.items()}
    copy_package(folder, files, LINES)
    (folder / "job.json").write_text(json.dumps({"widgets": {"cog": 2_000_000, "gear": 5_000_000}}))
    return folder


def test_the_new_table_and_reader_are_there(copied: Path) -> None:
    assert "gear" in printed(copied, "sql", "job.json", "SELECT name FROM widgets WHERE duration_ns > 3000000")
    assert "widgets have no kernels" in printed(copied, "info", "job.json")


def test_the_new_page_shows_the_answer_of_the_new_analysis(copied: Path) -> None:
    assert "Show what widgets cost." in printed(copied, "--help")
    assert "price" in printed(copied, "widgets", "job.json")
    rows = json.loads(printed(copied, "widgets", "job.json", "--json"))["tables"]["widget_totals"]
    assert rows == [{"rank": 0, "name": "cog", "cost_ns": 2_000_000}, {"rank": 0, "name": "gear", "cost_ns": 5_000_000}]


def test_the_new_rule_gives_its_advice(copied: Path) -> None:
    told = printed(copied, "analyze", "job.json")

    assert "Widget gear costs 5.00 ms." in told and "Use another widget." in told
    assert "部件 gear" in printed(copied, "analyze", "job.json", "--language", "zh")
    assert "widget-cost" in printed(copied, "rules")
