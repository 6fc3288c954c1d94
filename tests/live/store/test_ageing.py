"""The cap of all jobs and ranks: who is deleted, who never is."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepscope.live.messages import Hello
from stepscope.live.store import RecordStore, room
from stepscope.live.store.contents import RECENT_S, use
from stepscope.live.store.lines import host_range

LINE = host_range(1, "step 1", "default", 1, 2, 3, 4)
MIB = 1 << 20


def records(base: Path, rank: int, name: int, *, age_s: float = 0.0, size: int = MIB, task: str = "old") -> Path:
    """A record file that was changed some time ago."""
    file = base / task / str(rank) / str(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(LINE * (size // len(LINE)))
    changed = file.stat().st_mtime - age_s
    os.utime(file, (changed, changed))
    return file


def total(base: Path) -> int:
    """Bytes of all files."""
    return sum(file.stat().st_size for file in base.rglob("*") if file.is_file() and not file.is_symlink())


def age(base: Path, limit_mb: int) -> None:
    """Let a rank of another job look."""
    RecordStore(base, "new", 0, limit_mb=limit_mb).age()


def test_nothing_is_deleted_below_the_cap(tmp_path: Path) -> None:
    files = [records(tmp_path, rank, 1, age_s=1e6) for rank in range(5)]

    age(tmp_path, 10)

    assert all(file.exists() for file in files)


def test_the_oldest_fifth_of_all_jobs_and_ranks_goes(tmp_path: Path) -> None:
    files = [records(tmp_path, n % 3, n, age_s=1e6 - n, task=f"job{n % 2}") for n in range(20)]

    age(tmp_path, 19)

    assert [file.exists() for file in files] == [False] * 4 + [True] * 16


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_the_cap_holds_for_few_files_and_of_ranks_that_ended(tmp_path: Path, count: int) -> None:
    for rank in range(count):
        records(tmp_path, rank, 1, age_s=1e6 - rank, size=3 * MIB)

    age(tmp_path, 2)

    assert total(tmp_path) <= 2 * MIB


def test_what_is_not_ours_is_never_deleted_but_counts(tmp_path: Path) -> None:
    foreign = [
        tmp_path / "old/0/1.bak",
        tmp_path / "old/0/77",
        tmp_path / "old/0/parallel_group.json",
        tmp_path / "old/notes/5",
        tmp_path / "old/5",
        tmp_path / "top",
        tmp_path / "old/0/deep/9/8",
    ]
    for file in foreign:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("not a record\n" * (MIB // 13))
        os.utime(file, (1, 1))
    outside = tmp_path.parent / "outside"
    outside.mkdir()
    ours = records(outside, 1, 1, age_s=1e6)
    (tmp_path / "link").symlink_to(outside / "old")
    (tmp_path / "old/0/99").symlink_to(ours)
    mine = records(tmp_path, 0, 5, age_s=1e6)

    age(tmp_path, 7)

    assert all(file.exists() for file in (*foreign, ours)) and not mine.exists()
    assert (tmp_path / "old/0/99").is_symlink()


def test_files_that_may_be_open_stay(tmp_path: Path) -> None:
    recent = records(tmp_path, 0, 2, age_s=RECENT_S / 2)
    closed = records(tmp_path, 0, 1, age_s=RECENT_S / 2)
    quiet = records(tmp_path, 1, 1, age_s=1e6)
    ended = records(tmp_path, 2, 1, age_s=1e6)
    held = use(quiet.parent)

    age(tmp_path, 1)
    os.close(held)

    assert (recent.exists(), closed.exists(), quiet.exists(), ended.exists()) == (True, False, True, False)


def test_a_clock_that_was_set_back_does_not_make_new_files_old(tmp_path: Path) -> None:
    first = records(tmp_path, 0, 1, age_s=5000)
    second = records(tmp_path, 0, 2, age_s=9000)
    third = records(tmp_path, 0, 3, age_s=8000)

    age(tmp_path, 3)

    assert (first.exists(), second.exists(), third.exists()) == (False, True, True)


def test_directories_of_ended_jobs_go_with_their_last_records(tmp_path: Path) -> None:
    store = RecordStore(tmp_path, "old", 1, limit_mb=10)
    store.write_worker(Hello("old", 1, 1, "node", 1))
    store.write_groups([], 1)
    store.close()
    other = tmp_path / "kept/0/notes"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    for directory in (store.directory, other.parent):
        os.utime(directory, (1, 1))

    age(tmp_path, 10)

    assert not (tmp_path / "old").exists() and other.exists()


def test_ranks_that_age_at_once_do_not_delete_too_much(tmp_path: Path) -> None:
    files = [records(tmp_path, n % 4, n, age_s=1e6 - n, size=MIB // 4) for n in range(100)]
    stores = [RecordStore(tmp_path, "new", rank, limit_mb=24) for rank in range(16)]

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(RecordStore.age, stores))

    assert sum(file.exists() for file in files) == 80


def test_the_cap_holds_at_every_moment_for_more_ranks_than_its_files(tmp_path: Path) -> None:
    text = LINE * (20_000 // len(LINE))
    stores = [RecordStore(tmp_path, f"job{rank % 3}", rank, limit_mb=10) for rank in range(40)]
    together = threading.Barrier(5)
    seen = []

    def write(mine: list[RecordStore]) -> None:
        for _ in range(30):
            for store in mine:
                store.write(text)
            together.wait()
            together.wait()

    threads = [threading.Thread(target=write, args=(stores[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        together.wait()
        seen.append(total(tmp_path))
        together.wait()
    for thread in threads:
        thread.join()

    assert max(seen) <= 11 * MIB
    assert sum(store.dropped for store in stores) == 0
    assert all(store.directory.exists() for store in stores)


def test_a_cap_that_others_have_filled_stops_writing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "large").write_bytes(b"x" * 3 * MIB)
    store = RecordStore(tmp_path, "job", 0, limit_mb=2)

    store.write(LINE)
    store.write(LINE)

    assert "cap of 2 MiB" in store.problem and store.dropped == 4
    assert len([record for record in caplog.records if "cap of" in record.getMessage()]) == 1


def test_without_locks_and_state_the_cap_holds_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("stepscope.live.store.contents.fcntl.flock", refuse)
    monkeypatch.setattr(room.os, "pwrite", refuse)
    files = [records(tmp_path, 0, n, age_s=1e6 - n) for n in range(10)]

    age(tmp_path, 5)

    assert total(tmp_path) <= 5 * MIB and not files[0].exists()


def test_looks_are_rare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = room.contents_of

    def counted(*arguments: object) -> object:
        nonlocal looks
        looks += 1
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(room, "contents_of", counted)
    stores = [RecordStore(tmp_path, "job", rank, limit_mb=1000) for rank in range(8)]

    for _ in range(100):
        for store in stores:
            store.write(LINE)
            store.age()

    assert looks <= 2
