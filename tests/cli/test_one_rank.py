"""What the commands about one rank share, and `steps`, `ops`, `flops` and `shapes`."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from stepscope.cli import main
from tests.cli.calling import EXAMPLE, document, printed


@pytest.mark.parametrize(
    ("command", "tables"),
    [
        ("steps", {"step_trace", "step_statistics", "step_reduces", "step_reduce_statistics"}),
        ("ops", {"operator_types", "operator_instances"}),
        ("flops", {"operator_flops", "model_flops", "operator_utilization", "flop_tree"}),
    ],
)
def test_json_has_every_table_or_the_reason_why_it_is_not_there(capfd, command: str, tables: set[str]) -> None:
    found = document(capfd, command, EXAMPLE, "--rank", "2")

    assert found["rank"] == 2
    assert {*found["tables"], *found["unavailable"]} == tables
    assert found["rows"] == {name: len(rows) for name, rows in found["tables"].items()}


def test_a_screen_shows_tables_with_units_and_says_what_is_not_there(capfd) -> None:
    out = printed(capfd, "steps", EXAMPLE, "--rank", "0")

    assert out.startswith("Steps by phase: ")
    assert " ms" in out
    # one reason is reported once
    assert "No communication by stream or mean communication by stream: no device communication" in out


def test_without_a_rank_the_lowest_is_told_and_that_there_are_others(capfd) -> None:
    assert main(["ops", EXAMPLE, "--csv"]) == 0

    out, err = capfd.readouterr()
    assert {row["rank"] for row in csv.DictReader(io.StringIO(out))} == {"0"}
    assert "this is rank 0 of ranks 0-3" in err


def test_a_step_narrows_what_is_about_steps_but_not_their_statistics(capfd) -> None:
    steps = [row["step"] for row in document(capfd, "steps", EXAMPLE, "--rank", "0")["tables"]["step_trace"]]

    found = document(capfd, "steps", EXAMPLE, "--rank", "0", "--step", str(steps[1]))

    assert [row["step"] for row in found["tables"]["step_trace"]] == [steps[1]]
    assert found["tables"]["step_statistics"][0]["steps"] == len(steps) > 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rank", "9"], "no rank 9 in ddp_gloo_4rank_slow_loader. It has ranks 0-3"),
        (["--rank", "0", "--step", "9999"], "no step 9999"),
        (["--rank", "0", "--table", "nonsense"], "There are: operator_types, operator_instances"),
        (["--rank", "0", "--sort", "nonsense"], "Columns: rank, unit, type"),
        (["--rank", "0", "--filter", "nonsense > 1"], "Columns: rank, unit, type"),
        (["--rank", "0", "--filter", "total >"], "Write a condition in SQL"),
        (["--rank", "0", "--filter", "total > (SELECT 1)"], "only a condition over the columns"),
        (["--rank", "0", "--page", "999"], "no page 999: there "),
        (["--rank", "0", "--json", "--csv"], "choose one"),
        (["--rank", "x"], "--rank x: give a whole number"),
        (["-f", "xml"], "--format xml: give one of table, json, csv"),
        (["--rank", "0", "--top", "0"], "--top 0: give at least 1"),
    ],
)
def test_what_cannot_be_given_is_told_with_what_there_is(capfd, words: list[str], message: str) -> None:
    assert message in printed(capfd, "ops", EXAMPLE, *words, code=2)


def test_rows_are_searched_filtered_sorted_and_paged(capfd) -> None:
    words = ("ops", EXAMPLE, "--rank", "0", "--table", "operator_instances")
    every = document(capfd, *words)["tables"]["operator_instances"]
    wanted = sorted((row for row in every if "mm" in row["name"].lower() and row["total_ns"] > 1e5), key=_by_total)

    asked = ("--search", "MM", "--filter", "total_ms > 0.1", "--sort", "-total", "--top", "2", "--page", "2")
    found = document(capfd, *words, *asked)

    assert found["rows"]["operator_instances"] == len(wanted) > 2
    assert [row["total_ns"] for row in found["tables"]["operator_instances"]] == [r["total_ns"] for r in wanted[2:4]]


def _by_total(row: dict[str, Any]) -> int:
    return -int(row["total_ns"])


def test_a_filter_alone_is_about_the_main_table(capfd) -> None:
    assert [*document(capfd, "ops", EXAMPLE, "--rank", "0", "--sort", "-count")["tables"]] == ["operator_types"]


def test_a_column_of_another_table_is_answered_by_its_name(capfd) -> None:
    words = ("ops", EXAMPLE, "--rank", "0", "--filter", "name LIKE '%mm%'")

    assert "Columns of others: --table operator_instances" in printed(capfd, *words, code=2)
    assert "name" in printed(capfd, *words, "--table", "operator_instances")
    assert "Columns of others" not in printed(capfd, *words, "--table", "operator_types", code=2)


def test_a_heading_tells_which_rows_are_shown(capfd) -> None:
    out = printed(capfd, "ops", EXAMPLE, "--rank", "0", "--sort", "-total", "--top", "3", "--page", "2")

    assert out.startswith("Operators by type: rows 4-6 of ")


def test_points_are_named_by_options_and_by_the_environment(capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("steps", EXAMPLE, "--rank", "0", "--table", "step_trace")

    named = document(capfd, *words, "--forward-start", "aten::mm")["tables"]["step_trace"][0]
    monkeypatch.setenv("PROFILING_BP_END", "aten::mm")
    by_environment = document(capfd, *words)["tables"]["step_trace"][0]

    assert (named["forward_start_by"], named["forward_start_operator"]) == ("argument", "aten::mm")
    assert by_environment["backward_end_by"] == "environment"
    assert "no operator or kernel named 'nope'" in printed(capfd, *words, "--forward-start", "nope", code=2)


def test_a_given_peak_gives_the_share_of_it(capfd) -> None:
    (row,) = document(capfd, "flops", EXAMPLE, "--rank", "0", "--peak-tflops", "2")["tables"]["model_flops"]

    assert row["peak_flops_per_s"] == 2e12
    assert row["mfu_ratio"] == pytest.approx(row["step_flops_per_s"] / 2e12)


def test_a_command_without_any_answer_fails_with_the_reason(capfd) -> None:
    assert "the same shapes throughout" in printed(capfd, "shapes", EXAMPLE, "--rank", "0", code=2)


def test_the_longest_gaps_of_the_slow_rank_are_those_of_its_loader(capsys: pytest.CaptureFixture[str]) -> None:
    shown = document(capsys, "gaps", EXAMPLE, "--ranks", 2, "--limit", 2)

    assert shown["rows"]["gaps"] == 2
    assert {(row["rank"], row["layer"]) for row in shown["tables"]["gaps"]} == {(2, "data loader")}
    text = printed(capsys, "gaps", EXAMPLE, "--ranks", 2, "--limit", 2)
    assert text.startswith("Longest gaps, times since the start of the recording\n")
    assert "data_loading" in text
