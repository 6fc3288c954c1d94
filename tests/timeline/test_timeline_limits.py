"""A timeline that must stay small: below the limit, with what tells most, and with a word on the rest."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import read
from runs import BASE_NS, host_run, sliced, written

from builders import make_run
from stepscope.errors import StepscopeError
from stepscope.run import Run
from stepscope.tables import COUNTERS, STEPS
from stepscope.timeline import Format, TimelineOptions, write_timeline
from stepscope.timeline.limits import Budget, Everyth, Longest


def long_run(count: int = 20_000) -> Run:
    """Three steps, many ranges of many lengths and names, and a counter."""
    ranges = [{"start": 5 * each, "length": each % 97, "name": f"op{each % 1013}"} for each in range(count)]
    steps = STEPS.frame(
        step=[1, 2, 3],
        start_ns=[BASE_NS + place * count for place in range(3)],
        end_ns=[BASE_NS + (place + 1) * count for place in range(3)],
        window_start_ns=[BASE_NS + place * count for place in range(3)],
        window_end_ns=[BASE_NS + (place + 1) * count for place in range(3)],
        window=["host"] * 3,
    )
    times = [BASE_NS + each for each in range(0, 5 * count, 10)]
    counters = COUNTERS.frame(time_ns=times, name=["power"] * len(times), value=[float(each % 7) for each in times])
    return Run.from_frames({0: sliced(ranges, steps=steps, counters=counters)})


@pytest.mark.parametrize("limit", [2_000, 20_000, 60_000, 150_000, 10_000_000])
@pytest.mark.parametrize("name", ["a.pftrace", "a.json", "a.json.gz"])
def test_a_file_is_no_larger_than_allowed(limit: int, name: str, tmp_path: Path) -> None:
    made = write_timeline(long_run(), tmp_path / name, TimelineOptions(limit_bytes=limit, explain=False))

    found = read(made.file)
    assert made.size_bytes == made.file.stat().st_size <= limit
    assert len(found) == made.total_events
    assert found.is_whole
    assert made.events[0, "steps", "step"] == 3
    told = sum(int(each.split(" ")[0].replace(",", "")) for each in made.left_out.values())
    assert made.total_events + told == 20_000 + 3 + 10_000
    assert bool(made.left_out) == (limit < 10_000_000)


@pytest.mark.parametrize("form", ["perfetto", "json"])
def test_a_limit_that_nothing_fits_into_is_said(form: Format, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"not even the steps fit into 10 B. Allow a larger file"):
        written(make_run(), tmp_path, TimelineOptions(limit_bytes=10), form)
    assert list(tmp_path.glob("*")) == []


def test_a_limit_above_0_is_needed(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="must be above 0"):
        written(make_run(), tmp_path, TimelineOptions(limit_bytes=0))


def test_the_longest_ranges_are_kept(tmp_path: Path) -> None:
    made = written(long_run(), tmp_path, TimelineOptions(limit_bytes=40_000, explain=False))

    found = read(made.file)
    lengths = [each.end - each.start for each in found.ranges if each.category == "operator" and each.end is not None]
    assert min(lengths) > 40
    assert "ranges shorter than" in made.left_out["Host"]


def test_ranges_that_are_open_when_the_file_is_full_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.timeline import building

    monkeypatch.setattr(building, "WINDOW_ROWS", 1000)
    monkeypatch.setattr(Budget, "is_spent", lambda _, written_bytes, rows: written_bytes > 10_000 and rows > 0)
    monkeypatch.setattr(Budget, "rows_left", lambda *_: None)
    ranges = [{"start": each, "length": 1_000_000 - each, "name": f"{each}"} for each in range(100)]
    ranges += [{"start": 100 + each, "length": 1, "name": f"op{each}"} for each in range(20_000)]

    made = written(host_run(ranges), tmp_path)

    found = read(made.file)
    assert found.is_whole
    assert len(found.ranges) < 20_100
    assert made.left_out["Host"].endswith("the file is as large as allowed")
    assert sum(each.end == 1_000_000 for each in found.ranges) == 100


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=2, max_size=60), st.data())
def test_no_more_are_kept_than_fit_and_none_that_is_shorter(durations: list[int | None], data: st.DataObject) -> None:
    room = data.draw(st.integers(0, len(durations) - 1))
    rows = pl.DataFrame({"duration_ns": durations}, schema={"duration_ns": pl.Int64})
    cut = data.draw(st.integers(0, len(durations)))

    longest = Longest(rows["duration_ns"], room)
    kept = pl.concat([longest.kept(rows[:cut]), longest.kept(rows[cut:])])

    lengths = sorted(each or 0 for each in durations)
    assert kept.height <= room
    assert sum(each > longest.shortest_ns for each in lengths) <= kept.height
    assert kept.height > 0 or room == 0
    assert (kept["duration_ns"].fill_null(0) >= longest.shortest_ns).all()


def test_one_in_so_many_is_kept_over_several_frames() -> None:
    every = Everyth(3)

    kept = [every.kept(pl.Series([True, False, True, True])).to_list() for _ in range(2)]

    assert kept == [[True, False, False, False], [True, False, False, False]]


def test_a_budget_learns_what_rows_take() -> None:
    budget = Budget(100_000)
    first = budget.rows_left(0)

    budget.wrote(2000, 20_000)

    assert first == 100_000 * 0.97 / 40
    assert budget.rows_left(20_000) == (100_000 * 0.97 - 20_000) / 10
    assert budget.is_spent(20_000, 8001)
    assert not budget.is_spent(20_000, 8000)
    assert not budget.is_spent(200_000, 0)


def test_without_a_limit_everything_fits() -> None:
    budget = Budget(None)

    assert budget.rows_left(1 << 40) is None
    assert not budget.is_spent(1 << 40, 1 << 30)
    assert budget.window_rows(5) == 5
