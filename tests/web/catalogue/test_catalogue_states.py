"""Which runs a catalogue lists, and what becomes of them while their files change."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stepscope.run import open_runs
from stepscope.store import cache_directory
from stepscope.web.catalogue import Catalogue, Entry, helpers
from stepscope.web.catalogue import finding as finding_module
from stepscope.web.catalogue.helpers import Helper, HelperDied
from stepscope.web.errors import NotReady, RunBroken, UnknownRun
from web_jobs import catalogue_of, settled, wait_for, write_job, write_rank


def test_runs_are_those_of_analyze(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_job(root / "deep" / "down" / "job", 3)
    write_rank(root / "single", day=1)
    write_rank(root, day=2)
    with catalogue_of(root) as catalogue:
        entries = settled(catalogue, 3)
        opened = {entry.id: catalogue.open(entry.id) for entry in entries.values()}

    expected = {(run.name, run.path, len(run.ranks), run.world_size) for run in open_runs(root)}
    assert {(run.name, run.path, len(run.ranks), run.world_size) for run in opened.values()} == expected
    assert {(one.name, one.path, one.ranks, one.world_size) for one in entries.values()} == expected
    job = entries["deep/down/job"]
    assert (job.state, job.formats, job.frameworks, job.devices) == ("ready", ("kineto",), ("pytorch",), ("cuda",))
    assert job.steps == 3
    assert job.input_bytes == sum(file.stat().st_size for file in job.path.iterdir())
    assert [entry.ranks for entry in catalogue.entries()] == [1, 1, 3], "newest first"


def test_ids_outlive_a_restart_and_a_move(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_job(root / "My Job!")
    with catalogue_of(root) as catalogue:
        (first,) = (settled(catalogue, 1)["My Job!"].id,)
    with catalogue_of(root) as catalogue:
        assert settled(catalogue, 1)["My Job!"].id == first
    moved = root.rename(tmp_path / "moved")
    with catalogue_of(moved) as catalogue:
        assert settled(catalogue, 1)["My Job!"].id == first
    assert first.startswith("my-job-")


def test_ids_are_unique_and_nested_roots_count_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_job(tmp_path / name / "same" / "job")
    with catalogue_of(tmp_path / "a", tmp_path / "b", tmp_path / "a" / "same", tmp_path / "b") as catalogue:
        wait_for(lambda: [one.state for one in catalogue.entries()] == ["ready", "ready"])
        ids = [entry.id for entry in catalogue.entries()]
        assert len({*ids}) == 2
        assert {catalogue.open(each).path for each in ids} == {tmp_path / n / "same" / "job" for n in ("a", "b")}


def test_a_new_run_appears_and_is_counted(tmp_path: Path) -> None:
    write_job(tmp_path / "one")
    with catalogue_of(tmp_path) as catalogue:
        settled(catalogue, 1)
        revision = catalogue.revision
        write_job(tmp_path / "two", day=1)
        assert settled(catalogue, 2)["two"].ranks == 2
        assert catalogue.revision > revision


def test_a_file_that_is_written_waits(tmp_path: Path) -> None:
    content = write_rank(tmp_path / "elsewhere").read_bytes()
    root = tmp_path / "root"
    root.mkdir()
    file, is_over = root / "growing.json", threading.Event()

    def write() -> None:
        with file.open("wb") as out:
            for place in range(0, len(content), len(content) // 40 + 1):
                out.write(content[place : place + len(content) // 40 + 1])
                out.flush()
                time.sleep(0.04)
        is_over.set()

    writer = threading.Thread(target=write)
    with catalogue_of(root, rest_s=1.5) as catalogue:
        writer.start()
        try:
            seen: list[Entry] = []
            while not is_over.is_set():
                seen.extend(entry for entry in catalogue.entries() if entry.state != "failed")
                time.sleep(0.02)
        finally:
            writer.join()
        assert {entry.state for entry in seen} == {"waiting"}
        assert all("still being written" in entry.problem for entry in seen)
        with pytest.raises((NotReady, UnknownRun)):
            catalogue.open(seen[-1].id)
        (entry,) = settled(catalogue, 1).values()
        assert (entry.state, entry.steps, entry.problem) == ("ready", 3, "")
        assert entry.id == seen[-1].id


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    write_rank(tmp_path / "job")
    with catalogue_of(tmp_path) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        assert catalogue.open(entry.id).steps == [0, 1, 2]
        write_rank(tmp_path / "job", steps=5)
        changed = wait_for(lambda: catalogue.entry(entry.id).stamp != entry.stamp and catalogue.entry(entry.id))
        assert catalogue.open(entry.id).steps == [0, 1, 2, 3, 4]
        assert changed.steps == 5


def test_a_rank_that_comes_later_joins_its_job(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_rank(tmp_path / "job", rank, 3)
    with catalogue_of(tmp_path) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        write_rank(tmp_path / "job", 2, 3)
        wait_for(lambda: catalogue.entry(entry.id).ranks == 3)
        assert len(catalogue.open(entry.id).ranks) == 3
        assert len(catalogue.entries()) == 1


def test_a_removed_run_is_gone_and_others_are_there(tmp_path: Path) -> None:
    write_job(tmp_path / "stays")
    write_job(tmp_path / "goes", day=1)
    with catalogue_of(tmp_path) as catalogue:
        identity = settled(catalogue, 2)["goes"].id
        catalogue.open(identity)
        shutil.rmtree(tmp_path / "goes")
        wait_for(lambda: catalogue.entry(identity).state == "gone")
        with pytest.raises(RunBroken, match="no longer there"):
            catalogue.open(identity)
        assert catalogue.open(settled(catalogue, 2)["stays"].id).name == "stays"
        write_job(tmp_path / "goes", day=1)
        wait_for(lambda: catalogue.entry(identity).state == "ready")
        assert catalogue.open(identity).name == "goes"


def test_broken_files_hide_nothing(tmp_path: Path) -> None:
    write_job(tmp_path / "good")
    (tmp_path / "cut").mkdir()
    whole = write_rank(tmp_path / "elsewhere", day=3).read_bytes()
    (tmp_path / "cut" / "trace.json").write_bytes(b"\0" * len(whole))
    (tmp_path / "empty.json").touch()
    with catalogue_of(tmp_path) as catalogue:
        entries = settled(catalogue, 4)
        assert {name: one.state for name, one in entries.items()} == {
            "good": "ready",
            "elsewhere/rank0.pt.trace.json": "ready",
            "cut/trace.json": "failed",
            "empty.json": "failed",
        }
        assert "only zeros" in entries["cut/trace.json"].problem
        with pytest.raises(RunBroken, match="is empty"):
            catalogue.open(entries["empty.json"].id)


def test_a_broken_rank_is_told_of_its_job(tmp_path: Path) -> None:
    write_job(tmp_path / "job", 3)
    (tmp_path / "job" / "rank1.pt.trace.json").write_bytes(b"\0" * 1000)
    with catalogue_of(tmp_path) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        assert (entry.state, entry.ranks, entry.unread) == ("ready", 2, 1)
        assert entry.problem.startswith("rank1.pt.trace.json: ")
        run = catalogue.open(entry.id)
        assert [issue.file for issue in run.unread] == [str(tmp_path / "job" / "rank1.pt.trace.json")]


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    write_job(outside / "secret")
    write_job(root / "job", day=1)
    (root / "folder").symlink_to(outside, target_is_directory=True)
    (root / "trace.json").symlink_to(outside / "secret" / "rank0.pt.trace.json")
    (root / "job" / "rank7.pt.trace.json").symlink_to(outside / "secret" / "rank1.pt.trace.json")
    (root / "up").symlink_to("..", target_is_directory=True)
    (root / "round").symlink_to(root, target_is_directory=True)
    (root / "job" / "zero.json").symlink_to(root / "job" / "rank0.pt.trace.json")
    with catalogue_of(root) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        assert (entry.relative, entry.ranks) == ("job", 2)
        read = {file for rank in catalogue.open(entry.id).ranks for file in rank.recording.files}
        assert all(file.resolve().is_relative_to(root) for file in read)


def test_odd_entries_cost_nothing(tmp_path: Path) -> None:
    write_job(tmp_path / "job")
    os.mkfifo(tmp_path / "pipe.json")
    write_rank(tmp_path / "<script>alert(1)</script>", day=1)
    write_rank(tmp_path / "new\nline", day=2)
    write_rank(Path(os.fsdecode(os.fsencode(tmp_path) + b"/bytes\xff")), day=3)
    with catalogue_of(tmp_path) as catalogue:
        entries = settled(catalogue, 4)
        assert sorted(one.state for one in entries.values()) == ["failed", "ready", "ready", "ready"]
        (failed,) = (one for one in entries.values() if one.state == "failed")
        assert "not UTF-8" in failed.problem
        for entry in entries.values():
            assert entry.id.replace("-", "").isalnum()
            (entry.name + entry.relative + entry.problem).encode()


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_a_directory_that_cannot_be_read_hides_nothing(tmp_path: Path) -> None:
    write_job(tmp_path / "job")
    (tmp_path / "closed").mkdir(mode=0)
    with catalogue_of(tmp_path) as catalogue:
        assert settled(catalogue, 2)["job"].state == "ready"


def test_nothing_is_found_anew_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_job(tmp_path / "job")
    with catalogue_of(tmp_path) as catalogue:
        settled(catalogue, 1)
        looks: list[Any] = []
        monkeypatch.setattr(finding_module, "discover", lambda *given, **_: looks.append(given))
        revision = catalogue.revision
        time.sleep(0.5)
        assert (looks, catalogue.revision) == ([], revision)


def test_rows_that_the_store_has_lost_are_read_again(tmp_path: Path) -> None:
    write_job(tmp_path / "data" / "job")
    with catalogue_of(tmp_path / "data") as catalogue:
        (entry,) = settled(catalogue, 1).values()
        shutil.rmtree(cache_directory())
        cache_directory().mkdir()
        with pytest.raises(NotReady):
            catalogue.open(entry.id)
        run = wait_for(lambda: _opened(catalogue, entry.id))
        assert run.table("steps").collect().height == 6


def _opened(catalogue: Catalogue, identity: str) -> Any:
    try:
        return catalogue.open(identity)
    except (NotReady, UnknownRun):
        return None


def test_an_input_that_kills_its_reader_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_job(tmp_path / "job", 3)
    read = Helper.read

    def dying(helper: Helper, inputs: Any, *others: Any) -> Any:
        if any("rank1" in item.path.name for item in inputs):
            raise HelperDied("SIGKILL")
        return read(helper, inputs, *others)

    monkeypatch.setattr(helpers.Helper, "read", dying)
    with catalogue_of(tmp_path) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        assert (entry.state, entry.ranks, entry.unread) == ("ready", 2, 1)
        assert "died (SIGKILL)" in entry.problem


def test_only_some_runs_are_kept_open(tmp_path: Path) -> None:
    for day in range(4):
        write_rank(tmp_path / f"job{day}", day=day)
    with catalogue_of(tmp_path, open_runs=2) as catalogue:
        entries = sorted(settled(catalogue, 4).values(), key=lambda entry: entry.relative)
        runs = [catalogue.open(entry.id) for entry in entries]
        are_open = [catalogue.is_open(entry.id, entry.stamp) for entry in entries]
        assert are_open == [False, False, True, True]
        assert catalogue.open(entries[3].id) is runs[3]
        assert catalogue.open(entries[0].id) is not runs[0]


def test_without_a_store_rows_last_as_long_as_the_catalogue(tmp_path: Path) -> None:
    write_job(tmp_path / "data" / "job")
    with catalogue_of(tmp_path / "data", use_store=False) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        assert catalogue.open(entry.id).table("steps").collect().height == 6
        (directory,) = {rank.recording.directory.parent for rank in catalogue.open(entry.id).ranks}  # type: ignore[attr-defined]
    assert not directory.exists()
    assert not cache_directory().exists()


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    from stepscope.errors import StepscopeError

    with pytest.raises(StepscopeError, match="no such directory"):
        Catalogue([tmp_path / "none"])
    with pytest.raises(StepscopeError, match="no directory given"):
        Catalogue([])


def test_an_unknown_run_is_named(tmp_path: Path) -> None:
    write_job(tmp_path / "job")
    with catalogue_of(tmp_path) as catalogue:
        (entry,) = settled(catalogue, 1).values()
        with pytest.raises(UnknownRun, match="Did you mean"):
            catalogue.open(entry.id[:-1])
