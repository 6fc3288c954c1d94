"""Tables of many small ranks that are read once."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from builders import make_run
from every_format import FORMATS
from stepscope import Run, open_run
from stepscope.run import kept_rows
from stepscope.run.answer_cache import AnswerCache
from stepscope.run.kept_rows import KeptRows
from stepscope.run.rank import stacked
from stepscope.store import Store, cache_directory
from stepscope.tables import TABLES


def test_rows_of_any_ranks_are_those_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(ranks=6, steps=2)
    for most_cells in (10_000_000, 10):  # kept, or read each time
        monkeypatch.setattr("stepscope.run.kept_rows.MOST_CELLS", most_cells)
        cache = AnswerCache(1_000_000)
        rows = KeptRows(run.ranks, cache)
        for ranks in ([0, 1, 2, 3, 4, 5], [1, 2, 3, 5], [0, 2, 4], [3]):
            expected = stacked([run.rank(rank) for rank in ranks], "kernels").collect()
            assert_frame_equal(rows.table("kernels", ranks).collect(), expected)
        assert (cache.used_bytes > 0) == (most_cells > 10)


def test_the_rows_of_a_few_ranks_are_not_a_reason_to_read_all() -> None:
    run = make_run(ranks=6, steps=2)
    cache = AnswerCache(1_000_000)

    assert KeptRows(run.ranks, cache).table("kernels", [4]).collect()["rank"].unique().to_list() == [4]
    assert cache.used_bytes == 0


def test_selected_steps_are_of_the_same_rows() -> None:
    run = make_run(ranks=4, steps=3)

    whole = run.analyse("breakdown")

    assert run.select(steps="2").analyse("breakdown")["step"].unique().to_list() == [2]
    assert_frame_equal(run.select(ranks="1,3").analyse("breakdown"), whole.filter(whole["rank"].is_in([1, 3])))


@pytest.fixture
def job(tmp_path: Path, computed: pytest.MonkeyPatch, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job of several ranks whose rows are kept in the store."""
    computed.undo()
    monkeypatch.setattr(kept_rows, "LEAST_RANKS", 2)
    FORMATS["kineto"](tmp_path / "job")
    return tmp_path / "job"


def rows_of_files(run: Run, name: str) -> pl.DataFrame:
    return stacked([rank for rank in run.ranks if rank.has(name)], name).collect()


def kept_bytes() -> int:
    """Size of what is kept beside the rows."""
    return sum(one.size_bytes for one in Store(cache_directory()).list_answers())


def test_tables_are_those_of_the_files_before_and_after_they_are_kept(job: Path) -> None:
    sizes = []
    for _ in range(3):  # read from the files, from the store, and from the store
        run = open_run([job])
        for name in TABLES:
            if name not in ("ranks", "issues") and run.has(name):
                expected = rows_of_files(run, name)
                assert_frame_equal(run.table(name).collect(), expected)
                assert_frame_equal(run.table(name).slice(3, 4).collect(), expected.slice(3, 4))
                assert_frame_equal(run.table(name).head(2).select("rank").collect(), expected.head(2).select("rank"))
        sizes.append(kept_bytes())
    assert 0 < sizes[0] == sizes[2]


def test_questions_get_the_rows_that_are_kept(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = open_run([job], use_store=False).analyse("breakdown")
    filtered = "SELECT rank, name FROM kernels WHERE duration_ns > 0"
    for _ in range(2):
        run = open_run([job])
        assert_frame_equal(run.query(filtered), rows_of_files(run, "kernels").select("rank", "name"))
        assert_frame_equal(run.analyse("breakdown"), expected)
        monkeypatch.setattr(kept_rows, "read_stacked", refuse)


def test_rows_that_are_asked_for_are_narrowed_to_chosen_ranks_and_steps(job: Path) -> None:
    open_run([job]).table("kernels").collect()

    run = open_run([job])

    every = rows_of_files(run, "kernels")
    assert_frame_equal(run.select(ranks="1").table("kernels").collect(), every.filter(pl.col("rank") == 1))
    step = run.steps[0]
    assert_frame_equal(run.select(steps=[step]).table("kernels").collect(), every.filter(pl.col("step") == step))


def test_rows_that_would_drive_out_answers_are_not_kept(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = open_run([job]).table("kernels").collect()
    before = kept_bytes()
    monkeypatch.setattr(kept_rows, "SHARE", 0.0)

    assert_frame_equal(open_run([job]).table("operators").collect(), rows_of_files(open_run([job]), "operators"))
    assert_frame_equal(open_run([job]).table("kernels").collect(), expected)
    assert kept_bytes() == before > 0


def test_damaged_records_of_rows_are_read_from_the_files_again(job: Path) -> None:
    expected = open_run([job]).table("kernels").collect()
    (file,) = [one.file for one in Store(cache_directory()).list_answers()]
    content = bytearray(file.read_bytes())
    content[-40] ^= 1
    file.write_bytes(content)

    assert_frame_equal(open_run([job]).table("kernels").collect(), expected)


def test_a_changed_rank_is_not_taken_from_rows_that_were_kept(job: Path) -> None:
    before = open_run([job]).table("kernels").collect()
    trace = min(job.rglob("*.json"))
    trace.write_text(trace.read_text() + " ")

    after = open_run([job])

    assert_frame_equal(after.table("kernels").collect(), before)
    assert len(Store(cache_directory()).list_answers()) == 2


def refuse(*_: object) -> pl.DataFrame:
    raise AssertionError("the files were read again")
