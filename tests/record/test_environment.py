"""What the environment says, and what of it is believed."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from stepscope.record.environment import (
    CLASSIC_KEYS,
    Identity,
    kept_arguments,
    kept_environment,
    options_from_environment,
    stated_identity,
)


@pytest.mark.parametrize("name", ["MS_PROFILER_OPTIONS", "STEPSCOPE_OPTIONS"])
@pytest.mark.parametrize("text", ["{", "true", "[1]", '{"start": true', "start=true"])
def test_what_is_no_json_object_is_told_and_starts_nothing(
    name: str, text: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setenv(name, text)
    assert options_from_environment() is None
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert name in caplog.text


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_a_start_that_is_no_bool(value: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    monkeypatch.setenv("MS_PROFILER_OPTIONS", json.dumps({"start": value}))
    assert options_from_environment() is None
    assert '"start"' in caplog.text


def test_nothing_is_started_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options_from_environment() is None
    monkeypatch.setenv("MS_PROFILER_OPTIONS", "{}")
    assert options_from_environment() is None
    monkeypatch.setenv("STEPSCOPE_OPTIONS", "{}")
    assert options_from_environment() == {}
    monkeypatch.setenv("STEPSCOPE_OPTIONS", '{"start": false}')
    assert options_from_environment() is None


def test_all_classic_keys(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    given = dict.fromkeys(CLASSIC_KEYS, True) | {"output_path": "/out", "profile_framework": "all"}
    monkeypatch.setenv("MS_PROFILER_OPTIONS", json.dumps({**given, "steps": [1, 2]}))
    found = options_from_environment()
    del given["start"]
    assert found == given
    assert "'steps' is not an option" in caplog.text


@pytest.mark.parametrize("path", ["relative", 3])
def test_a_classic_path_must_be_absolute(
    path: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MS_PROFILER_OPTIONS", json.dumps({"start": True, "output_path": path}))
    assert options_from_environment() == {"output_path": str(tmp_path / "data")}
    assert "absolute" in caplog.text


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, Identity()),
        ({"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}, Identity(3, 8, 1, None)),
        ({"RANK_ID": "2", "RANK_SIZE": "4", "DEVICE_ID": "2"}, Identity(2, 4, None, 2)),
        ({"RANK_ID": "two", "DEVICE_ID": "-1"}, Identity(0, None, None, 0)),
        ({"RANK": "", "RANK_ID": "5"}, Identity(5, None, None, None)),
    ],
)
def test_ranks(environment: dict[str, str], expected: Identity, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert stated_identity() == expected


def test_a_rank_that_is_no_number_is_told(caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK_ID", "two")
    stated_identity()
    assert "RANK_ID" in caplog.text
    assert "'two'" in caplog.text


def test_secrets_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("TORCH_API_KEY", "secret-1")
    monkeypatch.setenv("HOME_TOKEN", "secret-2")
    kept = kept_environment()
    assert kept["NCCL_DEBUG"] == "INFO"
    assert "secret" not in json.dumps(kept)
    arguments = ["python", "train.py", "--api-key=secret-3", "--token", "secret-4", "--lr", "0.1", "--password"]
    monkeypatch.setattr("sys.orig_argv", [*arguments, "--x"])
    assert kept_arguments() == [
        *("python", "train.py", "--api-key=***", "--token", "***", "--lr", "0.1", "--password", "--x")
    ]
