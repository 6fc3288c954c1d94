"""The store: entries that are whole or not there, whoever builds, dies or runs out of room."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from builders import ToySource, toy_slices, write_toy
from stepscope.ingest import Ingested, ingest
from stepscope.sources.base import Input
from stepscope.store import (
    Manifest,
    Store,
    StoredRecording,
    StoreSink,
    identify,
    scan_together,
    write_manifest,
)
from stepscope.tables import ISSUES, KERNELS, OPERATOR_TOTALS, SLICES, STEP_TOTALS

KEY = "0123456789abcdef0123456789abcdef01234567"


def read(*files: Path) -> Ingested:
    return ingest([Input("toy", file, (file,)) for file in files], sources=[ToySource()])


def build(store: Store, key: str, size_bytes: int = 0) -> StoredRecording:
    with store.drafting(key) as draft:
        sink = StoreSink(draft, "toy")
        sink.write(SLICES, toy_slices(1))
        tables = sink.close()
        size = size_bytes or sum(part.size for table in tables.values() for part in table.parts)
        write_manifest(draft, Manifest("toy", 1, "", "0", "/x", [], 0, tables, {}, 0, size))
        entry = store.publish(key, draft)
    assert entry is not None
    return entry


def environment() -> dict[str, str]:
    """For child processes that import what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def entries(cache: Path) -> list[Path]:
    return sorted(cache.iterdir())


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    entry = build(Store(tmp_path), KEY)

    assert_frame_equal(entry.scan("slices").collect(), SLICES.conform(toy_slices(1)))
    assert entry.scan("kernels").collect().schema == KERNELS.stored_schema


@pytest.mark.parametrize("name", ["store", "a b%20c", "*[a-b]?{x}#", "\u00e9\u2713"])
@pytest.mark.parametrize("large", [(), (3, 1), (2,)])
def test_rows_of_several_entries_come_with_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, large: tuple[int, ...]
) -> None:
    store = Store(tmp_path / name)
    entries = []
    for number in (3, 1, 2):
        monkeypatch.setattr("stepscope.store.sinks.SMALL_BYTES", 0 if number in large else 1000)
        entries.append((number, build(store, KEY[:-1] + str(number))))

    rows = scan_together(entries, "slices")

    parts = [SLICES.conform(toy_slices(1)).with_columns(rank=pl.lit(number, pl.Int32)) for number, _ in entries]
    assert_frame_equal(rows.collect(), pl.concat(parts))
    for column in parts[0].columns:
        assert_frame_equal(rows.select(column).collect(), pl.concat(parts).select(column))
    assert rows.select(pl.len()).collect().item() == 6
    assert rows.select("rank").head(3).collect()["rank"].to_list() == [3, 3, 1]
    assert rows.filter(pl.col("rank") == 1).select("stream", "name").collect().shape == (2, 2)


def test_small_tables_share_a_file_and_large_ones_have_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.store.sinks.SMALL_BYTES", 1000)
    names = ["".join(map(chr, range(start, start + 90))) for start in range(40, 80)]
    large = pl.DataFrame({"level": "kernel", "name": names, "count": 1, "total_ns": 2})
    with Store(tmp_path / "store").drafting(KEY) as draft:
        sink = StoreSink(draft, "toy")
        sink.write(SLICES, toy_slices(1))
        sink.write(OPERATOR_TOTALS, large)
        sink.write(STEP_TOTALS, STEP_TOTALS.frame(step=[1, 2]))
        tables = sink.close()
        entry = StoredRecording(draft, Manifest("toy", 1, "", "0", "/x", [], 0, tables, {}, 0, 0))

        assert sorted(file.name for file in draft.iterdir()) == ["operator_totals.parquet", "small.arrow"]
        assert sum(part.size for table in tables.values() for part in table.parts) == sum(
            file.stat().st_size for file in draft.iterdir()
        )
        assert entry.scan("operator_totals").collect()["name"].to_list() == names
        assert entry.scan("step_totals").collect()["step"].to_list() == [1, 2]
        assert_frame_equal(entry.scan("slices").collect(), SLICES.conform(toy_slices(1)))


def test_a_table_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    entry = build(Store(tmp_path), KEY)
    (entry.directory / "small.arrow").write_bytes(bytes(400))

    with pytest.raises(pl.exceptions.PolarsError, match=r"small\.arrow"):
        entry.scan("slices").collect()
    with pytest.raises(pl.exceptions.PolarsError, match=r"small\.arrow"):
        scan_together([(0, entry), (1, entry)], "slices").collect()
    with pytest.raises(pl.exceptions.PolarsError, match=r"small\.arrow"):
        scan_together([(0, entry), (1, entry)], "slices").select("name").collect()


def test_an_entry_of_files_whose_names_are_not_utf8_opens_them_and_shows_their_names(tmp_path: Path) -> None:
    files = [tmp_path / "r\udcff.json", tmp_path / "good.json"]
    store = Store(tmp_path / "store")
    with store.drafting(KEY) as draft:
        sink = StoreSink(draft, "toy")
        sink.issue("error", files[0], "is damaged", "Copy it again.")
        tables = sink.close()
        manifest = Manifest("toy", 1, "", "0", str(files[0]), [str(file) for file in files], 0, tables, {}, 0, 0)
        write_manifest(draft, manifest)
        entry = store.publish(KEY, draft)

    assert entry is not None
    assert entry.files == tuple(files)
    assert entry.path == tmp_path / "r\\xff.json"
    assert entry.scan("issues").collect()["file"].to_list() == [f"{tmp_path}/r\\xff.json"]
    assert entry.manifest.files == [f"{tmp_path}/r\\xff.json", f"{tmp_path}/good.json"]


def test_columns_without_values_take_no_room_and_come_back_as_null(tmp_path: Path) -> None:
    entry = build(Store(tmp_path), KEY)

    assert "stream" not in pl.read_ipc_stream(entry.directory / "small.arrow").columns
    assert entry.scan("slices").select("stream").collect()["stream"].null_count() == 2


def test_rows_of_nulls_only_are_kept(tmp_path: Path) -> None:
    sink = StoreSink(tmp_path, "toy")
    sink.write(STEP_TOTALS, STEP_TOTALS.frame(step=[None, None, None]))

    assert sink.close()["step_totals"].rows == 3
    assert pl.read_ipc_stream(tmp_path / "small.arrow").height == 3


def test_many_batches_make_several_parts_with_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.store.sinks._PART_BYTES", 1)
    with Store(tmp_path / "store").drafting(KEY) as draft:
        sink = StoreSink(draft, "toy")
        for step in range(5):
            sink.write(SLICES, toy_slices(step))
        tables = sink.close()
        manifest = Manifest("toy", 1, "", "0", "/x", [], 0, tables, {}, 0, 0)
        rows = StoredRecording(draft, manifest).scan("slices").collect()

    assert len(tables["slices"].parts) == 5
    assert rows["slice"].to_list() == list(range(10))


def test_issues_beyond_a_thousand_are_counted(tmp_path: Path) -> None:
    sink = StoreSink(tmp_path, "toy")
    for number in range(1500):
        sink.issue("error", Path("f"), f"bad {number}", "Record again")

    tables = sink.close()
    last = pl.read_ipc_stream(tmp_path / "small.arrow")["problem"][-1]

    assert tables[ISSUES.name].rows == 1001
    assert last.startswith("500 more")


def test_only_the_owner_may_look(cache: Path, tmp_path: Path) -> None:
    read(write_toy(tmp_path / "a.json"))

    for path in [cache, *cache.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


def test_a_second_reading_uses_the_entry(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_toy(tmp_path / "a.json")
    read(file)
    monkeypatch.setattr(ToySource, "read", lambda *_: pytest.fail("read again"))

    assert read(file).recordings[0].rows["slices"] == 4


def test_a_changed_input_is_read_again(cache: Path, tmp_path: Path) -> None:
    file = write_toy(tmp_path / "a.json", steps=1)
    read(file)
    write_toy(file, steps=3)

    assert read(file).recordings[0].rows["steps"] == 3


def test_the_key_changes_with_reader_and_files(tmp_path: Path) -> None:
    a, b = write_toy(tmp_path / "a.json"), write_toy(tmp_path / "b.json")
    keys = {
        identify("toy", 1, tmp_path, [a]),
        identify("toy", 2, tmp_path, [a]),
        identify("other", 1, tmp_path, [a]),
        identify("toy", 1, tmp_path, [a, b]),
        identify("toy", 1, tmp_path, [b]),
    }
    os.utime(a, ns=(0, 0))
    keys.add(identify("toy", 1, tmp_path, [a]))

    assert len(keys) == 6
    assert identify("toy", 1, tmp_path, [b, a]) == identify("toy", 1, tmp_path, [a, b])


@pytest.mark.parametrize("damage", ["cut", "zeroed", "gone", "manifest", "no manifest"])
@pytest.mark.parametrize("name", ["small.arrow", "slices.parquet"])
def test_a_damaged_entry_is_built_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, damage: str
) -> None:
    if name == "slices.parquet":
        monkeypatch.setattr("stepscope.store.sinks.SMALL_BYTES", 0)
    file = write_toy(tmp_path / "a.json")
    read(file)
    (entry,) = entries(cache)
    part = entry / name
    if damage == "cut":
        part.write_bytes(part.read_bytes()[:-9])
    elif damage == "zeroed":
        part.write_bytes(bytes(part.stat().st_size))
    elif damage == "gone":
        part.unlink()
    elif damage == "manifest":
        (entry / "manifest.json").write_text('{"source": 1')
    else:
        (entry / "manifest.json").unlink()

    done = read(file)

    assert done.recordings[0].scan("slices").collect().height == 4
    assert (done.warnings, done.unread, len(entries(cache))) == ([], [], 1)


def test_two_builders_at_once_leave_one_entry(cache: Path, tmp_path: Path) -> None:
    file = write_toy(tmp_path / "a.json", sleep_s=0.5)
    code = f"from pathlib import Path; from test_store import read; print(read(Path({str(file)!r})).recordings)"

    builders = [
        subprocess.Popen([sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE) for _ in range(2)
    ]
    outputs = [builder.communicate()[0] for builder in builders]

    assert all(b"StoredRecording" in output for output in outputs)
    assert len(entries(cache)) == 1


def test_the_second_builder_takes_the_entry_of_the_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.drafting(KEY) as late:
        first = build(store, KEY)
        second = store.publish(KEY, late)

    assert second is not None
    assert second.manifest == first.manifest
    assert entries(tmp_path) == [tmp_path / KEY]


def test_what_a_killed_builder_left_is_removed(cache: Path, tmp_path: Path) -> None:
    code = f"""if 1:
        import os
        from pathlib import Path
        from stepscope.store import Store
        with Store(Path({str(cache)!r})).drafting({KEY!r}):
            os.kill(os.getpid(), 9)
    """
    subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    assert len(entries(cache)) == 1

    read(write_toy(tmp_path / "a.json"))

    assert [path for path in entries(cache) if path.name.endswith(".tmp")] == []


def test_drafts_of_the_living_stay_and_those_of_other_hosts_for_an_hour(tmp_path: Path) -> None:
    store = Store(tmp_path)
    foreign = tmp_path / f"{KEY}.elsewhere.1.00.tmp"
    foreign.mkdir()
    with store.drafting(KEY) as mine:
        store.sweep()
        assert (mine.is_dir(), foreign.is_dir()) == (True, True)

        os.utime(foreign, (time.time() - 4000,) * 2)
        store.sweep()
        assert (mine.is_dir(), foreign.is_dir()) == (True, False)


def test_a_full_store_evicts_what_was_not_used_for_longest(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [f"{number:040x}" for number in range(4)]
    for age_h, key in enumerate(keys):
        build(store, key, size_bytes=100)
        os.utime(tmp_path / key, (time.time() - age_h * 7200,) * 2)

    store.evict(250)
    assert [entry.key for entry in store.list_entries()] == keys[:2]

    store.evict(0)
    assert [entry.key for entry in store.list_entries()] == keys[:1]  # used in the last hour


def test_opening_an_entry_counts_as_use(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, KEY)
    os.utime(tmp_path / KEY, (0, 0))

    store.find(KEY)

    assert time.time() - store.list_entries()[0].used < 60


def test_clearing_touches_nothing_but_entries(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(store, KEY, size_bytes=70)
    (tmp_path / ("ff" * 20)).mkdir()  # damaged: no manifest
    (tmp_path / "thesis").mkdir()

    assert store.clear() == (1, 70)
    assert entries(tmp_path) == [tmp_path / "thesis"]


def test_clearing_may_keep_what_was_used_of_late(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for age_s, key in ((0, KEY), (5000, KEY[::-1])):
        build(store, key)
        os.utime(tmp_path / key, (time.time() - age_s,) * 2)

    assert store.clear(unused_s=3600)[0] == 1
    assert [entry.key for entry in store.list_entries()] == [KEY]


def test_a_store_that_cannot_be_made_costs_a_warning_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "file" / "cache"))

    done = read(write_toy(tmp_path / "a.json"), write_toy(tmp_path / "b.json"))

    assert [recording.rows["slices"] for recording in done.recordings] == [4, 4]
    assert len(done.warnings) == 1
    assert "STEPSCOPE_CACHE" in done.warnings[0]


def test_a_full_disk_costs_a_warning_only(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    monkeypatch.setattr(pl.DataFrame, "write_ipc_stream", full)

    done = read(write_toy(tmp_path / "a.json"), write_toy(tmp_path / "b.json"))

    assert [recording.scan("slices").collect().height for recording in done.recordings] == [4, 4]
    assert len(done.warnings) == 1
    assert "No space left" in done.warnings[0]
    assert entries(cache) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_really_full_disk_costs_a_warning_only(tmp_path: Path) -> None:
    code = """if 1:
        import os, sys
        from pathlib import Path
        from builders import write_toy
        from test_store import read
        work = Path(sys.argv[1])
        os.environ["STEPSCOPE_CACHE"] = str(work / "disk")
        done = read(write_toy(work / "a.json", steps=5000))
        print(done.recordings[0].scan("slices").collect().height, len(done.warnings), os.listdir(work / "disk"))
    """
    (tmp_path / "disk").mkdir()
    script = f'mount -t tmpfs -o size=16k none {tmp_path}/disk && exec {sys.executable} -c "$1" {tmp_path}'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip("mounting is not permitted here")

    assert done.stdout.strip() == "10000 1 []", done.stderr


def test_a_temporary_store_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = "\n".join(
        [
            "import os",
            "from stepscope.store import Store",
            "print(Store.temporary().directory, flush=True)",
            "os.kill(os.getpid(), 9)",
        ]
    )
    env = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    killed = subprocess.run([sys.executable, "-c", code], check=False, env=env, capture_output=True, text=True)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    mine = Store.temporary().directory
    assert (left.exists(), mine.is_dir()) == (False, True)
    Store.temporary()
    assert mine.is_dir()
