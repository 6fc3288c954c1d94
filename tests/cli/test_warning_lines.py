"""What could not be read is told, also in few words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stepscope import open_run
from stepscope.cli import main
from stepscope.cli.opening import missing
from stepscope.cli.output import Output
from stepscope.cli.warning_lines import LISTED, show_warnings
from stepscope.run import Run
from stepscope.tables.issues import OTHER_RUNS, Issue
from tests.cli.calling import printed

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"


def shown(capfd: pytest.CaptureFixture[str], run: Run, *, quiet: bool = False) -> list[str]:
    show_warnings(Output(), run, quiet=quiet)
    return capfd.readouterr().out.splitlines()


def run_with(*unread: Issue) -> Run:
    run = open_run(EXAMPLE)
    run.unread.extend(unread)
    return run


def test_a_row_that_stands_for_many_inputs_counts_as_many(capfd) -> None:
    listed = [Issue("error", f"{n}.json", "is empty", "Record again") for n in range(20)]
    more = Issue("error", "(several files)", "17 more files with the same problem: is empty", "Record again", inputs=17)

    lines = shown(capfd, run_with(*listed, more))

    assert f"... and {20 - LISTED + 17} more unread inputs" in lines


def test_a_path_begins_below_the_input(capfd) -> None:
    run = run_with(Issue("error", str(EXAMPLE / "sub" / "0.json"), "is empty", "Record again"))

    assert "unread: sub/0.json: is empty. Record again" in shown(capfd, run)


def test_one_more_is_one(capfd) -> None:
    lines = shown(
        capfd, run_with(*(Issue("error", f"{n}.json", "is empty", "Record again") for n in range(LISTED + 1)))
    )

    assert lines[-1] == "... and 1 more unread input"


def test_quiet_names_errors_and_counts_the_rest(capfd) -> None:
    bad = Issue("error", "bad.json", "is empty", "Record again")
    odd = Issue("note", "odd.json", "is JSON, but no recording", "Nothing")

    lines = shown(capfd, run_with(odd, bad), quiet=True)

    assert lines == [
        "unread: bad.json: is empty. Record again",
        "... and 1 more unread input; `stepscope info` names it",
    ]


def test_quiet_tells_of_data_that_was_lost(capfd, tmp_path) -> None:
    recording = Path(shutil.copytree(EXAMPLE, tmp_path / "recording"))
    victim = min(p for p in recording.iterdir() if "rank-3" in p.name)
    victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])

    assert "rank-3" in printed(capfd, "analyze", "--quiet", recording)


@pytest.mark.parametrize("quiet", [False, True])
def test_further_runs_are_left_to_standard_error(capfd, quiet) -> None:
    run = run_with()
    run.others = [open_run(EXAMPLE)]
    more = "1 more runs lie under the same path: x"
    run.own_issues.append(Issue("note", str(run.path), more, "Name the path", place=OTHER_RUNS))

    assert shown(capfd, run, quiet=quiet) == []


def test_ranks_and_steps_that_are_not_there_are_told(capfd) -> None:
    assert main(["analyze", str(EXAMPLE), "-q", "--ranks", "0,2,99-100", "--steps", "4-5,77"]) == 0

    assert capfd.readouterr().err.splitlines() == [
        f"stepscope: no ranks 99-100 in {EXAMPLE.name}; the other chosen ranks are used",
        f"stepscope: no step 77 in {EXAMPLE.name}; the other chosen steps are used",
    ]


@pytest.mark.parametrize(
    ("chosen", "there", "absent"),
    [
        (None, [0], ""),
        ("all", [0], ""),
        ("0-3", [0, 1, 2, 3], ""),
        ("0-3,7", [0, 3], "1-2,7"),
        ("0-9999999999", [5], "0-4,6-9999999999"),
        ("2-", [0, 3], ""),
        ("9-", [0], "9-"),
    ],
)
def test_what_is_missing_from_a_selection(chosen, there, absent) -> None:
    assert str(missing(chosen, there, "ranks")) == absent
