"""Fixtures of the tests of the live worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from live_rig import STARTED, FakeProxy, proxy_in

_VARIABLES = (
    *("STEPSCOPE_LIVE", "STEPSCOPE_LIVE_DIR", "STEPSCOPE_LIVE_SOCKET", "STEPSCOPE_LIVE_SWITCH_FILE"),
    *("STEPSCOPE_LIVE_SWITCHES", "STEPSCOPE_LIVE_LIMIT_MB", "MINDX_TASK_ID"),
    *("RANK", "WORLD_SIZE", "LOCAL_RANK", "RANK_ID", "RANK_SIZE", "MASTER_ADDR", "MASTER_PORT"),
)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable of the user's decides a test, and nothing is written outside of it."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEPSCOPE_LIVE_DIR", str(tmp_path / "records"))
    monkeypatch.setenv("STEPSCOPE_LIVE_SOCKET", str(tmp_path / "proxy.sock"))


@pytest.fixture(autouse=True)
def no_training_is_left() -> Iterator[None]:
    """Trainings end with their test."""
    yield
    while STARTED:
        STARTED.pop().kill()


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[FakeProxy]:
    """A stand-in for the proxy of this node."""
    yield from proxy_in(tmp_path)
