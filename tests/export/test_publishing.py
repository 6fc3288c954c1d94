"""An export is there as a whole or not at all, whatever interrupts it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from export_samples import make_recording, torch_frames

from stepscope.export import publishing
from stepscope.export.exporting import EXPORTERS, Outcome, export
from stepscope.export.rank_export import RankExport
from stepscope.run import Run
from stepscope.sources.discover import discover


def exported(recording: Path) -> Outcome:
    (outcome,) = export([recording], opener=lambda _: Run.from_frames({1: torch_frames()}))
    return outcome


def visible(profiler: Path) -> set[str]:
    """Files that readers find beside the recordings."""
    files = {str(path.relative_to(profiler)) for path in profiler.rglob("*") if path.is_file()}
    return {name for name in files if not name.startswith("recording/")}


def sources(profiler: Path) -> list[str]:
    """What is read of a directory, by format."""
    return [item.source for item in discover([profiler]).inputs]


def look_while_it_is_made(monkeypatch: pytest.MonkeyPatch, look: Callable[[RankExport], None]) -> None:
    """Have something done when all files are made."""
    monkeypatch.setattr("stepscope.export.exporting.EXPORTERS", (*EXPORTERS, look))


def interrupt(_: RankExport) -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def test_nothing_is_seen_of_an_export_in_the_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, profiler = make_recording(tmp_path), tmp_path / "profiler"
    seen = []
    look_while_it_is_made(monkeypatch, lambda export: seen.append((set(export.written), sources(profiler))))

    outcome = exported(recording)

    ((made, read),) = seen
    assert made == set(outcome.files)
    assert read == ["recording"]
    assert visible(profiler) == {*outcome.files, "exported-1.json"}
    assert json.loads((profiler / "exported-1.json").read_text())["complete"] is True


def test_what_is_interrupted_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, profiler = make_recording(tmp_path), tmp_path / "profiler"
    look_while_it_is_made(monkeypatch, interrupt)

    with pytest.raises(KeyboardInterrupt):
        exported(recording)

    assert visible(profiler) == set()
    assert sources(profiler) == ["recording"]


def test_what_is_interrupted_leaves_the_export_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, profiler = make_recording(tmp_path), tmp_path / "profiler"
    exported(recording)
    before = {name: (profiler / name).read_bytes() for name in visible(profiler)}
    look_while_it_is_made(monkeypatch, interrupt)

    with pytest.raises(KeyboardInterrupt):
        exported(recording)

    assert {name: (profiler / name).read_bytes() for name in visible(profiler)} == before


@pytest.mark.parametrize("moved", [0, 1, 5])
def test_what_is_killed_while_its_files_appear_is_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    recording, profiler = make_recording(tmp_path), tmp_path / "profiler"
    left, move = [moved], publishing._move

    def until_killed(source: Path, target: Path) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        move(source, target)

    with monkeypatch.context() as killed:
        killed.setattr(publishing, "_move", until_killed)
        with pytest.raises(KeyboardInterrupt):
            exported(recording)

    assert len(visible(profiler)) == moved + 1
    assert sources(profiler) == ["recording"]
    recording.rename(tmp_path / "gone")
    assert sources(profiler) == []
    (tmp_path / "gone").rename(recording)
    outcome = exported(recording)
    assert visible(profiler) == {*outcome.files, "exported-1.json"}


def test_publishing_of_a_process_that_was_killed_are_cleared_away(tmp_path: Path) -> None:
    recording, profiler = make_recording(tmp_path), tmp_path / "profiler"
    dead, alive = (profiler / f".exporting-{recording.name}-{pid}" for pid in (2**22 + 1, os.getppid()))
    for room in (dead, alive):
        room.mkdir()
        (room / "trace.json").write_text("{")

    exported(recording)

    assert not dead.exists()
    assert alive.exists()


def test_files_of_a_user_are_kept(tmp_path: Path) -> None:
    recording = make_recording(tmp_path, stamp="20261121100000000")
    mine = tmp_path / "profiler" / "step_trace_raw_1_detail_time.csv"
    mine.write_text("mine")

    exported(recording)
    exported(recording)

    assert mine.read_text().startswith("step_num")
    kept = tmp_path / "profiler" / "earlier" / "20261121100000000-before" / mine.name
    assert kept.read_text() == "mine"
