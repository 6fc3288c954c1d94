"""Fixtures of the recorder's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from recorder_standin import StandIn

from stepscope.record import garbage
from stepscope.record import profiler as profiler_module
from stepscope.record.environment import (
    CLASSIC_VARIABLE,
    EXTERNAL_VARIABLE,
    FORBIDDEN_VARIABLE,
    OPTIONS_VARIABLE,
    PATH_VARIABLE,
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable of the user's decides a test, and no Profiler outlives one."""
    for name in (
        *(CLASSIC_VARIABLE, OPTIONS_VARIABLE, PATH_VARIABLE, FORBIDDEN_VARIABLE, EXTERNAL_VARIABLE),
        *("RANK", "WORLD_SIZE", "LOCAL_RANK", "RANK_ID", "RANK_SIZE", "DEVICE_ID", "MS_WORKER_NUM"),
    ):
        monkeypatch.delenv(name, raising=False)
    yield
    if (left := profiler_module.running()) is not None:
        left.stop()


@pytest.fixture(autouse=True)
def unmarked_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collections of the process that tests get no marks among those of a test."""
    monkeypatch.setattr(garbage, "LEAST_NS", 10**12)
    monkeypatch.setattr(garbage, "LONG_NS", 10**12)
    monkeypatch.setattr(garbage, "REPORTED_RATIO", 1.1)


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandIn:
    """The stand-in that every Profiler of the test gets."""
    made = StandIn(tmp_path)
    monkeypatch.setattr(profiler_module, "backend_for", lambda framework: made)
    return made
