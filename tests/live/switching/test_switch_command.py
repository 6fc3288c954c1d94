"""`stepscope live switch`: what it switches, what it prints, and its exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("grpc_tools")

from running_job import running_job

from stepscope.cli import main


@pytest.fixture(scope="module")
def job() -> Iterator[str]:
    """Four ranks that apply what they are told."""
    with running_job(4) as address:
        yield address


class Command:
    """Runs the command and keeps what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], job: str) -> None:
        self._capsys, self.address = capsys, job
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        code = main(["live", "switch", *words, "--manager", self.address])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *words: str) -> dict[str, Any]:
        """The answer as JSON."""
        self(*words, "--json")
        return dict(json.loads(self.out))


@pytest.fixture
def switch(capsys: pytest.CaptureFixture[str], job: str, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv("STEPSCOPE_LIVE_TOKEN_FILE", raising=False)
    monkeypatch.delenv("STEPSCOPE_LIVE_TOKEN", raising=False)
    return Command(capsys, job)


def test_switches_are_set_and_shown_with_the_ranks_that_have_applied_them(switch: Command) -> None:
    code = switch("all=off", "step=on", "CommunicationOperator=on")

    assert code == 0
    assert re.fullmatch(
        r"on: step, communication; off: fp, dataloader, checkpoint\nApplied by all 4 ranks within [\d,]+ ms\n",
        switch.out,
    )
    assert switch() == 0
    assert switch.out.startswith("on: step, communication; off: fp, dataloader, checkpoint\nRequested by ")
    assert switch.out.endswith("\nApplied by 4 of 4 ranks\n")


def test_switches_that_are_not_named_stay(switch: Command) -> None:
    switch("all=on")

    answer = switch.json("job-1", "fp=off")

    assert answer["on"] == ["step", "dataloader", "checkpoint", "communication"]
    assert answer["off"] == ["fp"]
    assert (answer["job"], answer["applied"], answer["pending"], answer["failed"]) == ("job-1", [0, 1, 2, 3], [], {})
    assert answer["took_ms"] >= 0


def test_the_state_is_shown_as_json(switch: Command) -> None:
    switch("all=on")

    shown = switch.json()

    assert (shown["job"], shown["off"], shown["applied"]) == ("job-1", [], 4)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["step=On"], "'step' is 'On'; it must be on or off"),
        (["step="], "'step' is ''; it must be on or off"),
        (["step=1"], "'step' is '1'; it must be on or off"),
        (["kernel=on"], "'kernel' is not a switch. Switches: step, fp, dataloader, checkpoint, communication"),
        (["step=on", "step=off"], "step is given both on and off"),
        (["all=on", "all=off"], "all is given both on and off"),
        (["step"], "step: on or off? Example: stepscope live switch step=on"),
        (["job-1", "step"], "'step' is not a switch and its state. Example: step=on communication=off"),
        (["step=on", "job-1"], "'job-1' is not a switch and its state"),
        (["step=on", "--wait", "-1"], "--wait -1: give 0 to 600 seconds"),
        (["step=on", "--wait", "601"], "--wait 601: give 0 to 600 seconds"),
        (["step=on", "--wait", "nan"], "--wait nan: give 0 to 600 seconds"),
        (["other-job", "step=on"], "job-1"),
        (["other-job"], "job-1"),
    ],
)
def test_what_is_wrong_is_refused_by_name_and_the_state_stays(words: list[str], reason: str, switch: Command) -> None:
    before = switch.json()["revision"]

    code = switch(*words)

    assert code == 2
    assert reason in switch.err
    assert not switch.out
    assert switch.json()["revision"] == before


def test_a_manager_that_is_not_there_is_named(switch: Command) -> None:
    switch.address = "127.0.0.1:1"

    assert switch("step=on") == 2
    assert "127.0.0.1:1: no manager answers" in switch.err


def test_ranks_that_have_not_applied_it_or_cannot_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    with running_job(4, "deaf=2", "failing=3", "world_size=6") as address:
        switch = Command(capsys, address)
        code = switch("step=off", "--wait", "0.5")

        assert code == 1
        assert switch.out.splitlines()[0] == "on: fp, dataloader, checkpoint; off: step, communication"
        assert re.match(r"Applied by 2 of 4 ranks within 0\.\d s", switch.out.splitlines()[1])
        assert switch.out.splitlines()[2:] == [
            "Not applied yet by 1 rank: 2",
            "Rank 3 cannot apply them: no hooks in this framework",
            "2 ranks of 6 have not registered",
        ]
        assert switch("step=on", "--no-wait") == 0
        answer = switch.json("--wait", "0.2", "step=on")
        assert (answer["pending"], list(answer["failed"]), answer["world_size"]) == ([2], ["3"], 6)


def test_without_any_rank_the_state_is_kept_for_those_that_come(capsys: pytest.CaptureFixture[str]) -> None:
    with running_job(0) as address:
        switch = Command(capsys, address)

        assert switch() == 0
        assert "Nobody has switched yet, so each rank records what it was started with" in switch.out
        assert switch("communication=on") == 1
        assert "No rank takes part at the moment; ranks get the switches when they register" in switch.out


def test_a_manager_with_a_token_serves_only_those_who_have_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "token"
    secret.write_text("0123456789abcdef")
    secret.chmod(0o600)
    with running_job(1, token_file=secret) as address:
        switch = Command(capsys, address)

        assert switch("step=on") == 2
        assert "the token is missing or wrong" in switch.err
        assert switch("step=on", "--token-file", str(secret)) == 0
        assert re.search(r"Applied by rank 0 within [\d,]+ ms\n", switch.out)


def test_a_manager_follows_the_config_map_or_the_file_that_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", "manager", "--kubernetes", "pretrain", "--switch-file", "profilingSwitch"]) == 2
    assert "--switch-file and --kubernetes: give one of them" in capsys.readouterr().err
