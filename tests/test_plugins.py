"""Readers, analyses and rules of other packages: found by entry point or import path; a broken one hides nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from stepscope import plugins
from stepscope.errors import StepscopeError

EXAMPLE = Path(__file__).parents[1] / "examples" / "ddp_gloo_4rank_slow_loader"

LIMITS = """
    from dataclasses import dataclass

    from stepscope.advice import rule
    from stepscope.limits import limit

    @dataclass(frozen=True)
    class Limits:
        \"""When the rule speaks.\"""

        widgets: int = limit(7, "widgets", "a test")

    @rule("widget-count", {})
    def widget_count(slow_ranks, limits=Limits()):
        \"""Count widgets.\"""
        return []
    """

READER = """
    from stepscope.sources.base import Input
    from stepscope.tables import STEPS

    class WidgetReader:
        name = "widgets"
        version = 1
        family = "widgets"
        reasons = {"kernels": "widgets have no kernels"}
        own_tables = frozenset()

        def find(self, directory, names):
            return None

        def sniff(self, file, head):
            return Input(self.name, file, (file,)) if b'"widgets"' in head else None

        def read(self, item, sink):
            sink.write(STEPS, STEPS.unchecked(step=[1], start_ns=[0], end_ns=[5], window=["host"],
                                              window_start_ns=[0], window_end_ns=[5]))
    """


def package(folder: Path, name: str, text: str, entry_points: str) -> None:
    """Install a module with entry points below a folder."""
    (folder / f"{name}.py").write_text(dedent(text))
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(dedent(entry_points))


def stepscope(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command with a folder of packages."""
    paths = os.pathsep.join([str(folder), *(p for p in [os.environ.get("PYTHONPATH")] if p)])
    return subprocess.run(
        [sys.executable, "-m", "stepscope", *map(str, words)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )


def test_rules_of_an_installed_package_are_known(tmp_path: Path) -> None:
    package(tmp_path, "widgets", LIMITS, '[stepscope.rules]\nwidget-count = "widgets"\n'.replace('"', ""))

    told = stepscope(tmp_path, "rules", "--csv")

    assert "widget-count,widget-count,widgets,7" in told.stdout


def test_a_reader_of_an_installed_package_reads(tmp_path: Path) -> None:
    package(tmp_path, "widgets", READER, "[stepscope.sources]\nwidgets = widgets:WidgetReader\n")
    (tmp_path / "a.json").write_text('{"widgets": 1}')

    told = stepscope(tmp_path, "info", tmp_path / "a.json")

    assert told.returncode == 0, told.stderr
    assert "widgets have no kernels" in told.stdout


def test_a_broken_package_is_reported_and_hides_nothing(tmp_path: Path) -> None:
    package(tmp_path, "widgets", "import nothing_like_this", "[stepscope.rules]\nwidget-count = widgets\n")

    told = stepscope(tmp_path, "analyze", EXAMPLE)

    assert told.returncode == 0
    assert "Rank 2" in told.stdout
    assert "the plug-in widget-count (stepscope.rules = widgets) cannot be loaded: ModuleNotFoundError" in told.stdout


def test_a_module_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text(dedent(LIMITS))

    told = stepscope(tmp_path, "--plugin", "widgets", "rules", "--csv")

    assert "widget-count,widget-count,widgets,7" in told.stdout


def test_a_module_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    told = stepscope(tmp_path, "--plugin", "no_such.rules", "analyze", EXAMPLE)

    assert told.returncode == 2
    assert "cannot load 'no_such.rules'" in told.stderr and "PYTHONPATH" in told.stderr
    with pytest.raises(StepscopeError, match="AttributeError"):
        plugins.load("json:no_such_name")
    assert plugins.load("json:dumps").__name__ == "dumps"
