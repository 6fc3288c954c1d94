"""What the commands print: in terminals of any width, into files and into pipes that close."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from rich.cells import cell_len

from stepscope.cli import main, output
from stepscope.cli.notes import wrapped
from stepscope.cli.output import Output, print_document, print_frame
from stepscope.pages.csv_text import csv_text
from stepscope.pages.shown_table import undeclared
from tests.cli.calling import EXAMPLE, printed


def terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Standard output is a terminal of this width."""
    monkeypatch.setattr(Output, "room", width)


def run(*words: str, stdout: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell, its output redirected: `> FILE` or `| COMMAND`."""
    line = f'set -o pipefail; "$0" -m stepscope "$@" {stdout}'
    return subprocess.run(["bash", "-c", line, sys.executable, *words], capture_output=True, check=False, text=True)


COMMANDS = [["analyze", EXAMPLE], ["analyze", EXAMPLE, "--language", "zh"], ["info", EXAMPLE], ["cache", "list"]]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(capfd, monkeypatch, words, width) -> None:
    terminal(monkeypatch, width)

    assert main(words) == 0

    lines = capfd.readouterr().out.splitlines()
    assert all(cell_len(line) <= width for line in lines if " " in line.strip())  # a long path may be one word


def test_chinese_is_wrapped_between_characters_but_not_before_punctuation() -> None:
    text = "rank 2 在等待数据（num_workers），每步 62.3 ms。"

    lines = [wrapped(text, width, 2).split("\n") for width in range(22, 40)]

    assert wrapped(text, 22, 2) == "rank 2 在等待数据\n  （num_workers），每\n  步 62.3 ms。"
    assert {"".join(found).replace(" ", "") for found in lines} == {text.replace(" ", "")}
    assert not [line for found in lines for line in found if line.strip()[0] in "），。" or line.endswith("（")]


def test_the_same_figures_are_shown_in_a_narrow_terminal(capfd, monkeypatch) -> None:
    main(["analyze", EXAMPLE])
    wide = capfd.readouterr().out
    terminal(monkeypatch, 80)
    main(["analyze", EXAMPLE])
    narrow = capfd.readouterr().out

    table = narrow[narrow.index("Time by rank") : narrow.index("Slow ranks")]
    cells = {cell for line in table.splitlines() for cell in line.split("  ") if cell.strip().endswith(("ms", "us"))}
    assert cells
    assert all(cell.strip() in wide for cell in cells)


def test_a_query_result_is_whole_in_a_file_and_in_a_terminal(capfd, monkeypatch) -> None:
    name = "k" * 300
    query = f"SELECT '{name}' AS name, 1234567890123456789 AS n, 0.1234567890123 AS x FROM ranks LIMIT 1"

    out = printed(capfd, "sql", EXAMPLE, query)
    assert name in out and "1234567890123456789" in out and "0.1234567890123" in out

    terminal(monkeypatch, 70)
    out = printed(capfd, "sql", EXAMPLE, query)
    assert out.count("k") == 300
    assert "1234567890123456789" in out and "0.1234567890123" in out


def test_a_query_without_rows_says_so_in_a_terminal(capfd, monkeypatch) -> None:
    query = "SELECT * FROM slices WHERE name = 'none'"
    assert printed(capfd, "sql", EXAMPLE, query).startswith("rank  ")

    terminal(monkeypatch, 80)

    assert printed(capfd, "sql", EXAMPLE, query) == "0 rows\n"


def test_names_are_neither_markup_nor_obeyed(capfd) -> None:
    frame = pl.DataFrame({"name": ["[red]x[/red] :bug: \x1b[2J\n"]})

    Output().table(undeclared(frame, "[bold]"))

    out = capfd.readouterr().out
    assert "[red]x[/red] :bug: \\x1b[2J\\n" in out
    assert "[bold]" in out


def test_names_of_files_are_escaped(capfd, tmp_path) -> None:
    (tmp_path / "a\x1b[2J\n.json").write_text("")

    out = printed(capfd, "info", EXAMPLE, tmp_path)
    assert "\x1b" not in out
    assert "a\\x1b[2J\\n.json" in out


def test_a_pipe_that_closes_early_is_no_error() -> None:
    for words in (["analyze", EXAMPLE], ["sql", EXAMPLE, "SELECT * FROM slices", "-f", "csv"]):
        done = run(*words, stdout="| head -1")

        assert done.returncode == 0
        assert done.stderr == ""
        assert len(done.stdout.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full to write to")
@pytest.mark.parametrize("words", [["analyze", EXAMPLE], ["analyze", EXAMPLE, "--json", "-"], ["--version"]])
def test_a_full_disk_is_told(words) -> None:
    done = run(*words, stdout="> /dev/full")

    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "stepscope: the output: No space left on device. Check free disk space and permissions"
    ]


def test_an_output_that_takes_no_unicode_gets_escapes(monkeypatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")

    done = run("analyze", EXAMPLE, stdout="| cat")

    assert done.returncode == 0
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("height", [0, 1, 4, 5])
def test_long_tables_are_printed_in_parts_like_in_one_piece(height: int, monkeypatch, capsys) -> None:
    frame = pl.DataFrame({"name": list("a=é\ne")[:height], "share": [0.5, None, float("nan"), 1e20, 3][:height]})
    monkeypatch.setattr(output, "PRINTED_ROWS", 2)

    print_frame(frame, "csv")
    assert capsys.readouterr().out == csv_text(frame)

    print_frame(frame, "json")
    assert capsys.readouterr().out == frame.write_json() + "\n"

    plain = frame.with_columns(pl.col("share").fill_nan(None)).to_dicts()
    print_document({"run": "é", "tables": {"one": frame, "none": {}}, "rows": [height]})
    expected = {"run": "é", "tables": {"one": plain, "none": {}}, "rows": [height]}
    assert capsys.readouterr().out == json.dumps(expected, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_spreadsheet_runs_no_text_of_a_csv(start: str) -> None:
    formula = f"{start}cmd|'/C calc'!A0"
    frame = pl.DataFrame(
        {formula: [-1], "name": [formula], "names": [[formula, "b"]], "plain": ["a=b"], "none": [None]}
    )

    text = csv_text(frame)

    rows = pl.read_csv(text.encode(), infer_schema=False)
    assert rows.columns == [f"'{formula}", "name", "names", "plain", "none"]
    assert rows.row(0) == ("-1", f"'{formula}", f"'{formula} b", "a=b", None)
