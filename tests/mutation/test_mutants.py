"""The mutation tool: what it changes, and what it reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mutants import difference, mutants

TOOL = Path(__file__).parent


def made(statement: str) -> set[str]:
    """What one statement becomes."""
    return {mutant.source for mutant in mutants(statement)}


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("x < y", {"x <= y", "x >= y", "pass"}),
        ("x not in y", {"x in y", "pass"}),
        ("not x", {"x", "pass"}),
        ("a and b and c", {"a or b or c", "b and c", "a and c", "a and b", "pass"}),
        ("a * b / c", {"a / b / c", "a * b * c", "a * b", "a / c", "b / c", "a", "c", "pass"}),
        ("f(3)", {"f(4)", "f(0)", "pass"}),
        ("f('word')", {"f('')", "pass"}),
        ("f(True)", {"f(False)", "pass"}),
        ("f(x, key=y)", {"f(x)", "pass"}),
        ("any(x)", {"all(x)", "pass"}),
        ("x.filter(y)", {"x", "pass"}),
        ("x.sort(y)", {"x", "x.sort(y, descending=True)", "pass"}),
        ("x.group_by(a, b)", {"x.group_by(a)", "x.group_by(b)", "pass"}),
        ("f(a if b else c)", {"f(a)", "f(c)", "pass"}),
        ("f([x for x in y if z])", {"f([x for x in y])", "pass"}),
        ("ready = a == b", {"ready = a != b", "ready = True", "ready = False"}),
        ("x = x.abs()", {"x = x", "pass"}),
        ("x[0] = y", {"pass"}),
        ("raise E", {"pass"}),
    ],
)
def test_a_statement_is_changed_in_one_place_at_a_time(statement, expected) -> None:
    assert made(statement) == expected


def test_an_order_is_turned_round_and_lost() -> None:
    assert {"f(sorted(x, reverse=True))", "f(list(x))"} <= made("f(sorted(x))")
    assert "x.sort(key=y, reverse=True)" in made("x.sort(key=y)")


def test_a_condition_holds_always_or_never_and_a_value_is_not_returned() -> None:
    changes = [mutant.change for mutant in mutants("def f(x):\n    if x:\n        return 1\n")]

    assert changes == [
        "if {x => False}:",
        "if {x => True}:",
        "return {1 => None}",
        "return {1 => 2}",
        "return {1 => 0}",
    ]


def test_what_is_said_to_people_and_type_checkers_only_is_left_alone() -> None:
    source = '"""Module."""\nimport x\nif TYPE_CHECKING:\n    import y\n'
    source += '@x(True)\ndef f(a: int | None) -> "A":\n    """About f."""\n'

    assert mutants(source) == []
    assert [mutant.change for mutant in mutants("a: float = limit(0.5, 'of 1', 'from 2')")] == [
        "a: float = limit({0.5 => 1.5}, 'of 1', 'from 2')",
        "a: float = limit({0.5 => 0.0}, 'of 1', 'from 2')",
    ]


def test_mutants_are_named_by_function_and_change_and_numbered_if_that_is_not_enough() -> None:
    source = "class A:\n    def f(self):\n        g(1 < x)\n        g(1 < x)\n"

    names = [(mutant.function, mutant.change, mutant.line) for mutant in mutants(source)]

    assert ("A.f", "g(1 {< => <=} x)", 3) in names
    assert ("A.f", "g(1 {< => <=} x) (2)", 4) in names
    assert len(set(names)) == len(names)


def test_a_difference_is_shown_with_little_around_it() -> None:
    before = "first.very_long_name_of_a_call(with_many).filter(amount == 2).and_then.some.others.follow()"

    assert difference(before, before.replace("==", "!=")) == ").filter(amount {== => !=} 2).and_then.some.others"


@pytest.fixture
def project(tmp_path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "toy.py").write_text("LEAST = 5\n\ndef enough(x):\n    return x >= LEAST\n")
    (tmp_path / "test_far.py").write_text(
        "from toy import enough\n\ndef test_far():\n    assert enough(9)\n    assert not enough(1)\n"
    )
    (tmp_path / "test_near.py").write_text(
        "from toy import enough\n\ndef test_near():\n    assert enough(5)\n    assert not enough(4)\n"
    )
    (tmp_path / "test_failing.py").write_text("import toy\n\ndef test_failing():\n    assert False\n")
    (tmp_path / "test_other.py").write_text("def test_other():\n    pass\n")
    return tmp_path


def run(project: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit status and lines of the tool."""
    done = subprocess.run(
        [sys.executable, str(TOOL), "src/toy.py", "--targets", "targets.toml", *arguments],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, [*done.stdout.splitlines(), *done.stderr.splitlines()]


def test_mutants_that_no_test_notices_are_shown(project: Path) -> None:
    (project / "targets.toml").write_text('[[target]]\nfile = "src/toy.py"\ntests = ["test_far.py"]\n')

    status, lines = run(project)
    assert status == 1
    assert lines[:2] == [
        "src/toy.py:1: module: LEAST = {5 => 6}",
        "src/toy.py:4: enough: return x {>= => >} LEAST",
    ]
    assert lines[2].startswith("src/toy.py: 4 of 6 mutants caught (66.7%)")

    status, lines = run(project, "--tests", "test_far.py", "test_near.py", "--jobs", "2")
    assert (status, len(lines)) == (0, 1)


def test_mutants_that_are_listed_as_equivalent_are_not_tested_and_those_no_longer_made_are_shown(project: Path) -> None:
    entry = '[[target.equivalent]]\nfunction = "enough"\nreason = ""\nchange = '
    changes = "".join(f"{entry}{change!r}\n" for change in ("return x {>= => >} LEAST", "gone"))
    (project / "targets.toml").write_text(f'[[target]]\nfile = "src/toy.py"\ntests = ["test_near.py"]\n{changes}')

    status, lines = run(project)

    assert status == 1
    assert lines[0] == "src/toy.py: enough: listed as equivalent, but no longer made: gone"
    assert "5 of 5 mutants caught (100.0%)" in lines[1]


@pytest.mark.parametrize(
    ("tests", "problem"),
    [("test_failing.py", "the tests fail without any change"), ("test_other.py", "the tests do not import it")],
)
def test_tests_that_prove_nothing_are_refused(project: Path, tests: str, problem: str) -> None:
    (project / "targets.toml").write_text("target = []")

    status, lines = run(project, "--tests", tests)

    assert (status, lines) == (1, [f"src/toy.py: {problem}: pytest {tests}"])
