"""Readers, analyses and rules of other packages: found by entry point or import path; a broken one hides nothing."""

from __future__ import annotations

import json
import os
import shutil
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
        env={**os.environ, "PYTHONPATH": paths, "STEPSCOPE_DEBUG": ""},
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


BROKEN = {
    "exits": ("import sys; sys.exit(3)", "rules", "exits", "SystemExit: 3"),
    "raises": ("def R(): raise RuntimeError", "rules", "raises:R.x", "AttributeError"),
    "garbage": ("", "rules]\ngarbage\n[a", "", "entry_points.txt: its plug-ins cannot be loaded: "),
    "no_reader": ("", "sources", "no_reader", "TypeError: it is not a reader: name, family"),
    "lacking": ("class R: name = 'x'", "sources", "lacking:R", "TypeError: it is not a reader: family"),
    "no_class": ("def R(): pass", "sources", "no_class:R", "TypeError: it is not a reader: name"),
    "licence": ("class R:\n    def __init__(self): 1 / 0", "sources", "licence:R", "ZeroDivisionError: division"),
    "namesake": (dedent(READER).replace('"widgets"', '"kineto"', 1), "sources", "namesake:WidgetReader", "TypeError: "),
}
"""By name: a module, the group and value of its entry point, and the warning."""


def test_all_that_cannot_be_loaded_is_named_and_the_rest_works(tmp_path: Path) -> None:
    for name, (text, group, value, _) in BROKEN.items():
        package(tmp_path, name, text, f"[stepscope.{group}]\n{name}_point = {value}\n")

    told = stepscope(tmp_path, "analyze", EXAMPLE, "--json")

    assert (told.returncode, told.stderr) == (0, "")
    found = json.loads(told.stdout)
    assert found["findings"][0]["rule"] == "slow-rank"
    for name, (*_, warning) in BROKEN.items():
        assert [one for one in found["warnings"] if name in one and warning in one], name
    assert len(found["warnings"]) == len(BROKEN)


GREEDY = """
    from stepscope.sources.base import Found, Input

    class Greedy:
        name = family = "greedy"
        version = 1
        reasons = {}
        own_tables = frozenset()

        def find(self, directory, names):
            FIND

        def sniff(self, file, head):
            raise ValueError("sniff broke")

        def read(self, item, sink):
            raise ValueError("read broke")
    """


@pytest.mark.parametrize(
    ("find", "problem"),
    [
        ("return Found((Input(self.name, directory, ()),))", ""),
        ("return Found((Input('other', directory, ()),))", "internal error of the reader greedy (ValueError: an input"),
        ("raise ValueError('find broke')", "internal error of the reader greedy (ValueError: find broke)"),
        ("raise OSError(2, 'No such file')", "cannot be read: No such file"),
    ],
)
def test_a_reader_that_takes_everything_takes_nothing_from_ours(tmp_path: Path, find: str, problem: str) -> None:
    package(tmp_path, "broken", GREEDY.replace("FIND", find), "[stepscope.sources]\nx = broken:Greedy")
    shutil.copytree(EXAMPLE, tmp_path / "runs" / "one")
    (tmp_path / "runs" / "some.json").write_text("{}")

    told = stepscope(tmp_path, "analyze", tmp_path / "runs", "--json")

    found = json.loads(told.stdout)
    assert len(found["ranks"]) == 4
    problems = [one["problem"] for one in found["unread"]]
    assert "internal error of the reader greedy (ValueError: sniff broke)" in problems
    assert any(one.startswith(problem) for one in problems)


def test_a_reader_that_fails_is_named(tmp_path: Path) -> None:
    package(tmp_path, "broken", GREEDY.replace("FIND", "return Found((Input(self.name, directory, ()),))"),
            "[stepscope.sources]\nx = broken:Greedy")  # fmt: skip

    told, debugged = (stepscope(tmp_path, "analyze", tmp_path, *more) for more in ((), ("--debug",)))

    assert told.returncode == 2
    assert f"{tmp_path}: internal error of the reader greedy (ValueError: read broke)" in told.stderr
    assert "Traceback" not in told.stderr and "\nValueError: read broke\n" in debugged.stderr


def test_without_a_recording_a_broken_plug_in_is_reported_too(tmp_path: Path) -> None:
    package(tmp_path, "broken", "class R: pass", "[stepscope.sources]\nx = broken:R")

    told = stepscope(tmp_path, "analyze", tmp_path)

    assert told.returncode == 2
    assert "the plug-in x (stepscope.sources = broken:R) cannot be loaded" in told.stderr


def test_a_rule_that_fails_is_a_warning_and_with_debug_an_error(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text(dedent(LIMITS).replace("return []", "raise ZeroDivisionError('oops')"))
    words = ("--plugin", "widgets", "analyze", EXAMPLE)

    told, debugged = stepscope(tmp_path, *words, "--json"), stepscope(tmp_path, *words, "--debug")

    found = json.loads(told.stdout)
    assert told.returncode == 0 and found["findings"]
    assert [one.partition(":")[0] for one in found["warnings"]] == [
        "the rule widget-count (widgets) failed, so findings are missing"
    ]
    assert "Traceback" in debugged.stderr and "ZeroDivisionError: oops" in debugged.stderr


def test_a_rule_that_ends_the_process_costs_only_its_findings(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text(dedent(LIMITS).replace("return []", "raise SystemExit(3)"))

    told = stepscope(tmp_path, "--plugin", "widgets", "analyze", EXAMPLE)
    debugged = stepscope(tmp_path, "--plugin", "widgets", "analyze", EXAMPLE, "--debug")

    assert told.returncode == 0 and "Rank 2" in told.stdout
    assert "the rule widget-count (widgets) failed, so findings are missing: SystemExit: 3" in told.stdout
    assert debugged.returncode and "the rule widget-count (widgets) ends the process" in debugged.stderr
    assert "widgets.py" in debugged.stderr and "SystemExit: 3" in debugged.stderr


@pytest.mark.parametrize("method", ["find", "sniff", "read"])
def test_a_reader_that_ends_the_process_costs_only_its_inputs(tmp_path: Path, method: str) -> None:
    ends = f"def {method}(self, *_):\n        raise SystemExit(3)\n\n    def ended("
    text = dedent(READER).replace(f"def {method}(", ends)
    package(tmp_path, "widgets", text, "[stepscope.sources]\nwidgets = widgets:WidgetReader\n")
    shutil.copytree(EXAMPLE, tmp_path / "runs" / "one")
    (tmp_path / "runs" / "a.json").write_text('{"widgets": 1}')

    told = stepscope(tmp_path, "analyze", tmp_path / "runs", "--json")

    found = json.loads(told.stdout)
    assert told.returncode == 0 and len(found["ranks"]) == 4
    assert "internal error of the reader widgets (SystemExit: 3)" in [one["problem"] for one in found["unread"]]


@pytest.mark.parametrize(
    "words",
    [
        ("rules",),
        ("rules", "--csv"),
        ("steps", EXAMPLE, "--rank", "0", "--csv"),
        ("steps", EXAMPLE, "--rank", "0", "--json"),
        ("analyze", EXAMPLE, "--csv"),
        ("info", EXAMPLE, "--json"),
        ("sql", EXAMPLE, "SELECT rank FROM ranks"),
    ],
)
def test_what_has_no_place_for_warnings_leaves_them_to_standard_error(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    package(tmp_path, "broken", "import nothing_like_this", "[stepscope.rules]\nx = broken\n")

    told = stepscope(tmp_path, *words)

    assert told.returncode == 0
    assert told.stderr.count("stepscope: warning: the plug-in x (stepscope.rules = broken) cannot be loaded: ") == 1
    assert "plug-in" not in told.stdout


def test_a_module_that_ends_the_process_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text("import sys; sys.exit(3)")

    told = stepscope(tmp_path, "--plugin", "widgets", "analyze", EXAMPLE)

    assert told.returncode == 2
    assert "cannot load 'widgets': SystemExit: 3" in told.stderr


@pytest.mark.parametrize("text", ["import nothing_like_this", "1 / 0", "import sys; sys.exit(3)"])
def test_a_module_that_fails_is_not_said_to_be_missing(tmp_path: Path, text: str) -> None:
    (tmp_path / "widgets.py").write_text(text)

    told = stepscope(tmp_path, "--plugin", "widgets", "rules")

    assert told.returncode == 2
    assert "The module was found but fails when it is imported" in told.stderr and "PYTHONPATH" not in told.stderr


def test_a_module_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text(dedent(LIMITS))

    told = stepscope(tmp_path, "--plugin", "widgets", "rules", "--csv")

    assert "widget-count,widget-count,widgets,7" in told.stdout


def test_a_rule_of_others_is_explained_without_all_that_it_may_declare(tmp_path: Path) -> None:
    (tmp_path / "widgets.py").write_text(dedent(LIMITS))

    told = stepscope(tmp_path, "--plugin", "widgets", "rules", "explain", "widget-count")

    assert told.returncode == 0
    assert told.stdout.startswith("widget-count (overall)\n\nWhat it does\n  Count widgets.\n")
    assert "Its author does not say." in told.stdout
    assert "analysis `slow_ranks` (required)" in told.stdout
    assert "`widget-count.widgets` = 7 widgets; source: a test" in told.stdout
    assert "the module widgets, which is not ours" in told.stdout


def test_explaining_a_rule_of_others_reports_what_is_broken(tmp_path: Path) -> None:
    package(
        tmp_path,
        "broken",
        "1 / 0",
        """
        [stepscope.rules]
        broken = broken
        """,
    )

    told = stepscope(tmp_path, "rules", "explain", "slow-rank")

    assert told.returncode == 0
    assert "the plug-in broken (stepscope.rules = broken) cannot be loaded" in told.stderr


def test_a_module_that_is_not_there_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    told = stepscope(tmp_path, "--plugin", "no_such.rules", "analyze", EXAMPLE)

    assert told.returncode == 2
    assert "cannot load 'no_such.rules'" in told.stderr and "PYTHONPATH" in told.stderr
    with pytest.raises(StepscopeError, match=r"AttributeError.* give a name that it defines"):
        plugins.load("json:no_such_name")
    with pytest.raises(StepscopeError, match="Give the import path"):
        plugins.load("rules/mine.py")
    assert plugins.load("json:dumps").__name__ == "dumps"
