"""One convention for what a command prints: its format, its file, its help."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from stepscope.cli import formatted
from stepscope.cli.analyze import with_json_file
from stepscope.cli.app import app
from stepscope.cli.command_list import HEADINGS
from tests.cli.calling import EXAMPLE, document, printed

QUESTIONS = [["steps"], ["ops"], ["flops"], ["memory"], ["info"], ["analyze"]]
CALLS = [
    *([*words, EXAMPLE] for words in QUESTIONS),
    ["input", EXAMPLE, "--table", "loader"],
    ["sql", EXAMPLE, "SELECT rank FROM ranks"],
    ["rules"],
    ["cache", "list"],
]


def records(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("words", CALLS, ids=lambda words: " ".join(words[:1]))
def test_every_answer_comes_as_json_and_csv_and_goes_to_a_file(capfd, tmp_path: Path, words: list[str]) -> None:
    printed(capfd, "info", EXAMPLE)  # so that something is in the cache
    as_json = printed(capfd, *words, "--json")
    as_csv = printed(capfd, *words, "--csv")
    file = tmp_path / "answer"

    assert printed(capfd, *words, "--format", "json") == as_json
    assert printed(capfd, *words, "-f", "csv") == as_csv
    assert printed(capfd, *words, "--csv", "-o", str(file)) == ""

    assert json.loads(as_json)
    assert records(as_csv)
    assert file.read_text() == as_csv


@pytest.mark.parametrize("words", CALLS, ids=lambda words: " ".join(words[:1]))
def test_two_formats_are_refused(capfd, words: list[str]) -> None:
    assert "conflicting formats json and csv: choose one" in printed(capfd, *words, "--json", "--csv", code=2)
    assert "csv and json" in printed(capfd, *words, "-f", "csv", "--json", code=2)


@pytest.mark.parametrize("in_memory", [100, 1_000_000])
def test_text_goes_to_a_file_as_it_goes_to_a_pipe(in_memory: int, capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(formatted, "IN_MEMORY", in_memory)
    text = printed(capfd, "steps", EXAMPLE, "--rank", "0")

    printed(capfd, "steps", EXAMPLE, "--rank", "0", "--output", str(tmp_path / "steps.txt"))

    assert (tmp_path / "steps.txt").read_text() == text


@pytest.mark.parametrize("in_memory", [100, 1_000_000])
def test_a_directory_that_is_missing_is_named(in_memory: int, capfd, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(formatted, "IN_MEMORY", in_memory)
    target = tmp_path / "nowhere" / "steps.txt"

    problem = printed(capfd, "steps", EXAMPLE, "--rank", "0", "--output", str(target), code=2)

    assert f"{target}: cannot write the answer: No such file or directory" in " ".join(problem.split())


@pytest.mark.parametrize("in_memory", [100, 1_000_000])
def test_nothing_is_written_beside_a_device(in_memory: int, capfd, monkeypatch) -> None:
    monkeypatch.setattr(formatted, "IN_MEMORY", in_memory)

    with Path("/dev/null").open("wb") as device:  # nobody can make a file in this directory, not even root
        printed(capfd, "steps", EXAMPLE, "--rank", "0", "--output", f"/proc/self/fd/{device.fileno()}")


def test_a_command_that_fails_leaves_an_older_file_alone(capfd, tmp_path: Path) -> None:
    file = tmp_path / "mine" / "steps.txt"
    file.parent.mkdir()
    file.write_text("older")

    printed(capfd, "steps", EXAMPLE, "--rank", "9", "-o", str(file), code=2)

    assert file.read_text() == "older"
    assert [*file.parent.iterdir()] == [file]


def test_a_file_that_cannot_be_written_is_named(capfd, tmp_path: Path) -> None:
    err = printed(capfd, "steps", EXAMPLE, "-o", str(tmp_path / "absent" / "steps.txt"), code=2)

    assert "absent/steps.txt: cannot write the answer: No such file or directory. Choose a file" in err


def test_analyze_has_its_tables_by_name(capfd) -> None:
    every = document(capfd, "analyze", EXAMPLE)

    findings = records(printed(capfd, "analyze", EXAMPLE, "--csv"))
    calls = records(printed(capfd, "analyze", EXAMPLE, "--csv", "--table", "communication"))

    assert [row["summary"] for row in findings] == [finding["summary"] for finding in every["findings"]]
    assert [row["total_ns"] for row in calls] == [str(row["total_ns"]) for row in every["communication"]]
    assert "Slow ranks" in printed(capfd, "analyze", EXAMPLE, "--table", "slow_ranks")
    assert "There are: findings, steps" in printed(capfd, "analyze", EXAMPLE, "--table", "nonsense", code=2)
    assert "JSON has all tables" in printed(capfd, "analyze", EXAMPLE, "--table", "steps", "--json", code=2)
    assert "no accelerator work" in printed(capfd, "analyze", EXAMPLE, "--table", "kernels", "--csv", code=2)


def test_info_has_ranks_and_data_by_run(capfd) -> None:
    (run,) = document(capfd, "info", EXAMPLE)["runs"]

    assert [row["rank"] for row in run["ranks"]] == [0, 1, 2, 3]
    assert {"table": "ranks", "rows": 4, "ranks": "0-3", "least": 1, "most": 1} in run["data"]
    assert any(line.startswith("kernels: a CPU-only job") for line in run["missing"])
    assert [row["rank"] for row in records(printed(capfd, "info", EXAMPLE, "--csv"))] == ["0", "1", "2", "3"]
    assert records(printed(capfd, "info", EXAMPLE, "--csv", "--table", "data"))[0]["table"] == "ranks"


def test_a_file_behind_json_is_written_as_it_once_was(capfd, tmp_path: Path) -> None:
    text = printed(capfd, "analyze", EXAMPLE)
    report, trace = tmp_path / "report.json", Path(shutil.copy(next(Path(EXAMPLE).glob("rank-0*")), tmp_path))
    before = trace.read_bytes()

    assert printed(capfd, "analyze", EXAMPLE, "--json", str(report)) == text
    first = report.read_text()
    assert printed(capfd, "analyze", EXAMPLE, "--json", str(report)) == text  # again, over the older one

    assert json.loads(first) == json.loads(report.read_text()) == document(capfd, "analyze", EXAMPLE)
    assert printed(capfd, "analyze", EXAMPLE, "--json", "-") == first
    assert json.loads(printed(capfd, "analyze", "--json", str(trace)))["run"]["name"] == "rank-0"
    assert trace.read_bytes() == before


def test_only_a_word_that_is_no_input_is_a_file_behind_json(tmp_path: Path) -> None:
    assert with_json_file(["d", "--json", "--quiet"]) == ["d", "--json", "--quiet"]
    assert with_json_file(["d", "--json"]) == ["d", "--json"]
    assert with_json_file(["--json", str(tmp_path)]) == ["--json", str(tmp_path)]
    assert with_json_file(["d", "--json=out"]) == ["d", "--json-file", "out"]


def help_of(*words: str, width: int = 80) -> str:
    """The help, as a process of its own prints it: the width is known from the start."""
    environment = {**os.environ, "COLUMNS": str(width), "TERMINAL_WIDTH": str(width)}
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", *words], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_list_of_commands_begins_with_recording_and_analysing_and_cuts_no_sentence() -> None:
    listed = help_of("-h").partition("Start here:")[2]

    assert all(f"\n{heading}:\n" in listed for heading in HEADINGS[1:])
    names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "]
    assert names[:2] == ["record", "analyze"]
    assert len(names) == len(app.registered_commands) + len(app.registered_groups)
    assert "..." not in listed.replace("torchrun ... train.py", "")
    assert listed.count(".\n") >= len(names)  # each ends with a full stop


@pytest.mark.parametrize("command", ["steps", "ops", "flops", "shapes", "input", "memory", "host"])
def test_the_help_names_the_tables(capfd, command: str) -> None:
    text = " ".join(help_of(command, "--help").split())
    refusal = printed(capfd, command, EXAMPLE, "--table", "nonsense", code=2)

    names = refusal.partition("There are: ")[2].strip()
    assert f"Show only this table: {names}." in text


@pytest.mark.parametrize(
    ("command", "arguments"),
    [("analyze", "PATH..."), ("ops", "PATH"), ("sql", "PATH QUERY"), ("record", "-- COMMAND...")],
)
def test_the_help_names_arguments_as_one_types_them(command: str, arguments: str) -> None:
    text = help_of(command, "--help")

    assert f"stepscope {command} [OPTIONS] {arguments}\n" in text
    assert f"Arguments:\n  {arguments.split(' QUERY', maxsplit=1)[0]}  " in text
    assert not re.search(r"[<{]", text)


def test_limits_as_toml_are_in_no_other_format(capfd) -> None:
    assert "conflicting formats toml and json" in printed(capfd, "rules", "--toml", "--json", code=2)


def test_the_help_of_an_option_names_no_option_that_the_command_lacks() -> None:
    def leaves(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        inner = getattr(command, "commands", {})
        for name, each in inner.items():
            yield from leaves(each, f"{path} {name}")
        if not inner:
            yield path, command

    commands = dict(leaves(typer.main.get_command(app), "stepscope"))
    known = {path: {word for each in command.params for word in each.opts} for path, command in commands.items()}
    named = {
        (path, word)
        for path, command in commands.items()
        for option in command.params
        for word in re.findall(r"(?<![\w-])--[a-z][\w-]*", getattr(option, "help", None) or "")
    }

    assert ("stepscope steps", "--table") in named
    assert {(path, word) for path, word in named if word not in known[path]} == set()


def test_csv_of_a_table_that_is_not_recorded_names_the_others(capfd) -> None:
    err = printed(capfd, "input", EXAMPLE, "--csv", code=2)

    assert "the recording has no batches and queues" in err
    assert "Other tables: --table input_queues, input_operators, loader, " in err


def test_a_shell_completes_commands_and_tables() -> None:
    def completed(line: str) -> list[str]:
        variables = {"_STEPSCOPE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        command = "from stepscope.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", command],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.split()

    assert completed("stepscope rec") == ["record"]
    assert "step_trace" in completed("stepscope steps --table ")
