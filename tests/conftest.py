"""Fixtures that several tests use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from stepscope.advice import advise
from stepscope.report.answers import answers
from stepscope.run import kept_answers

# How long an example takes says nothing on a busy machine.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


def pytest_collection_finish() -> None:
    """Modules and the list of tests stay: no garbage collection need visit them again."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def shared() -> Path:
    """The folder of sample recordings beside the repository; tests that need it are skipped without it."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no folder of sample recordings beside the repository")
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty store of the test's own, so that no test finds or leaves anything in the user's."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("STEPSCOPE_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that fails is an error and not only a warning, so that no test hides one."""
    monkeypatch.setenv("STEPSCOPE_DEBUG", "1")
    for function in (advise, answers):
        monkeypatch.setitem(function.__kwdefaults__, "strict", True)


@pytest.fixture(autouse=True)
def computed() -> Iterator[pytest.MonkeyPatch]:
    """No answer is kept on disk, so that no test compares one with itself; tests of kept answers `undo` it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_answers, "code_version", lambda: None)
        yield patch
