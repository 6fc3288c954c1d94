"""`stepscope info`, `sql` and `cache`."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.cli import main

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader")


def test_info_shows_each_rank_and_what_is_missing(capfd) -> None:
    assert main(["info", EXAMPLE]) == 0

    out = capfd.readouterr().out
    assert "kineto" in out
    assert "missing kernels" in out


def test_sql_answers_as_csv_and_json(capfd) -> None:
    query = "SELECT rank, COUNT(*) AS n FROM steps GROUP BY rank ORDER BY rank"

    assert main(["sql", EXAMPLE, query, "--format", "json"]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert [row["rank"] for row in rows] == [0, 1, 2, 3]

    assert main(["sql", EXAMPLE, query, "-f", "csv"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == "rank,n"


def test_sql_over_a_table_that_is_not_there_gives_no_rows(capfd) -> None:
    assert main(["sql", EXAMPLE, "SELECT name FROM kernels", "-f", "csv"]) == 0
    assert capfd.readouterr().out.strip() == "name"


def test_a_wrong_query_names_the_columns(capfd) -> None:
    assert main(["sql", EXAMPLE, "SELECT nonsense FROM steps"]) == 2

    err = capfd.readouterr().err
    assert "window_start_ns" in err
    assert "Traceback" not in err


def test_the_cache_is_listed_and_cleared(capfd) -> None:
    main(["info", EXAMPLE])
    capfd.readouterr()

    assert main(["cache", "list", "-f", "json"]) == 0
    assert len(json.loads(capfd.readouterr().out)) == 4

    assert main(["cache", "clear"]) == 0
    assert capfd.readouterr().out.startswith("removed 4 entries")


def test_wrong_words_exit_2_without_a_traceback(capfd) -> None:
    assert main(["analyse-this"]) == 2
    assert main(["analyze"]) == 2
    assert main(["cache", "list", "--format", "xml"]) == 2

    assert "Traceback" not in capfd.readouterr().err


def test_help_and_version(capfd) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
