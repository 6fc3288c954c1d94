"""`stepscope info`, `sql` and `cache`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stepscope.cli import main
from stepscope.cli.app import app
from tests.cli.calling import EXAMPLE, printed


def test_info_shows_each_rank_and_what_is_missing(capfd) -> None:
    out = printed(capfd, "info", EXAMPLE)
    assert "kineto" in out
    assert "kernels: a CPU-only job" in out
    assert "4 ranks" in out


def test_sql_answers_as_csv_and_json(capfd) -> None:
    query = "SELECT rank, COUNT(*) AS n FROM steps GROUP BY rank ORDER BY rank"

    rows = json.loads(printed(capfd, "sql", EXAMPLE, query, "--format", "json"))
    assert [row["rank"] for row in rows] == [0, 1, 2, 3]

    assert printed(capfd, "sql", EXAMPLE, query, "-f", "csv").splitlines()[0] == "rank,n"


def test_sql_over_a_table_that_is_not_there_gives_no_rows(capfd) -> None:
    assert printed(capfd, "sql", EXAMPLE, "SELECT name FROM kernels", "-f", "csv").strip() == "name"


def test_a_wrong_query_names_the_columns(capfd) -> None:
    err = printed(capfd, "sql", EXAMPLE, "SELECT nonsense FROM steps", code=2)
    assert "window_start_ns" in err
    assert "Traceback" not in err


def test_a_failed_query_is_told_in_a_line_without_the_plan(capfd) -> None:
    (line,) = printed(capfd, "sql", EXAMPLE, "SELECT nonsense FROM steps", code=2).splitlines()
    assert line.startswith('stepscope: the query failed: unable to find column "nonsense". Columns: steps(')


@pytest.mark.parametrize(
    "query", ["drop table steps", "DELETE FROM steps", "create table t as select 1", " ", "/* nothing */"]
)
def test_only_questions_are_accepted(capfd, query) -> None:
    assert "only SELECT, WITH ... SELECT and SHOW TABLES" in printed(capfd, "sql", EXAMPLE, query, code=2)


@pytest.mark.parametrize(
    "query",
    ["/* all */ select 1 AS x FROM ranks", "WITH r AS (SELECT * FROM ranks) SELECT rank FROM r", "show tables"],
)
def test_questions_of_any_form_are_accepted(capfd, query) -> None:
    assert main(["sql", EXAMPLE, query]) == 0


def test_the_cache_is_listed_and_cleared(capfd) -> None:
    main(["info", EXAMPLE])
    capfd.readouterr()

    assert len(json.loads(printed(capfd, "cache", "list", "-f", "json"))) == 4

    assert printed(capfd, "cache", "clear").startswith("removed 4 entries")


def test_cached_answers_are_listed_and_cleared(capfd, computed) -> None:
    computed.undo()
    main(["analyze", EXAMPLE, "-q"])
    capfd.readouterr()

    listed = json.loads(printed(capfd, "cache", "list", "-f", "json"))
    assert [row["input"] for row in listed if row["source"] == "answers"] == [str(Path(EXAMPLE).absolute())]

    assert printed(capfd, "cache", "clear").startswith("removed 4 entries")
    assert json.loads(printed(capfd, "cache", "list", "-f", "json")) == []


@pytest.mark.parametrize("command", ["list", "clear"])
def test_a_cache_that_cannot_be_used_is_told(capfd, tmp_path, monkeypatch, command) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "file"))

    err = printed(capfd, "cache", command, code=2)
    assert "the cache cannot be opened" in err
    assert "STEPSCOPE_CACHE" in err
    assert (tmp_path / "file").read_text() == "mine"


def test_the_listed_cache_tells_the_ranks_apart_in_a_narrow_terminal(capfd, monkeypatch) -> None:
    main(["info", EXAMPLE])
    capfd.readouterr()
    monkeypatch.setattr("stepscope.cli.output.Output.room", 80)

    out = printed(capfd, "cache", "list")
    assert all(f"rank-{rank}." in out for rank in range(4))
    assert "4 entries" in " ".join(out.split())  # the path may take the line


def test_wrong_words_exit_2_without_a_traceback(capfd) -> None:
    assert main(["analyse-this"]) == 2
    assert main(["analyze"]) == 2
    assert "Traceback" not in printed(capfd, "cache", "list", "--format", "xml", code=2)


def test_every_option_of_every_command_is_explained() -> None:
    def unexplained(command: Any, name: str) -> list[str]:
        own = [f"{name} {option.opts[0]}" for option in command.params if not (option.help or option.hidden)]
        return own + [
            one for word, inner in getattr(command, "commands", {}).items() for one in unexplained(inner, word)
        ]

    assert unexplained(typer.main.get_command(app), "stepscope") == []


def test_help_and_version(capfd) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0


@pytest.mark.parametrize("words", [["--json"], ["--debug"], ["--ranks=0"]])
def test_an_option_before_its_command_says_where_it_belongs(capfd, words) -> None:
    err = printed(capfd, *words, "analyze", EXAMPLE, code=2)

    name = words[0].partition("=")[0]
    assert f"{name} comes after the command: stepscope analyze ... {name}" in err


def test_a_rule_in_place_of_a_command_says_how_to_explain_it(capfd) -> None:
    assert "stepscope rules explain slow-rank" in printed(capfd, "rules", "slow-rank", code=2)


def test_a_file_of_another_tool_is_told_what_can_be_read(capfd, tmp_path) -> None:
    other = tmp_path / "profile.nsys-rep"
    other.write_bytes(b"NSYS")

    err = " ".join(printed(capfd, "analyze", other, code=2).split())

    assert "It reads traces of the PyTorch profiler" in err
    assert "Pass the trace file itself" not in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["attach", "abc"], "Invalid value for 'PID': give a whole number"),
        (["attach", "1", "--timeout", "soon"], "Invalid value for '--timeout': give a number"),
    ],
)
def test_a_value_that_is_no_number_is_a_short_usage_error(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2

    printed = capsys.readouterr().err
    assert told in printed
    assert all(len(line) <= 80 for line in printed.splitlines())
