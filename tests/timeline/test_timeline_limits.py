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
from stepscope.tables import COUNTERS, KERNELS, STEPS
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
    from stepscope.timeline import asking

    monkeypatch.setattr(asking, "WINDOW_ROWS", 1000)
    monkeypatch.setattr(Budget, "is_spent", lambda _, family, written_bytes, rows: written_bytes > 10_000 and rows > 0)
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
    budget = Budget(100_000, 40, {"host": 20})
    guessed, known = budget.rows_left("device", 0), budget.rows_left("host", 0)

    budget.wrote("device", 2000, 20_000)

    assert guessed == 100_000 * 0.97 / 40
    assert known == 100_000 * 0.97 / 20
    assert budget.rows_left("device", 20_000) == (100_000 * 0.97 - 20_000) / 10
    assert not budget.is_spent("device", 20_000, 8000)
    assert not budget.is_spent("device", 200_000, 0)
    assert not budget.was_spent
    assert budget.is_spent("device", 20_000, 8001)
    assert budget.was_spent
    assert budget.learned == {"device": 10}
    assert budget.window_rows("device", 500_000) == 1000
    assert Budget(1 << 30, 40).window_rows("device", 500_000) == 500_000


def test_without_a_limit_everything_fits() -> None:
    budget = Budget(None, 40)

    assert budget.rows_left("host", 1 << 40) is None
    assert not budget.is_spent("host", 1 << 40, 1 << 30)
    assert budget.window_rows("host", 5) == 5


def test_a_large_family_leaves_room_for_what_follows(tmp_path: Path) -> None:
    count = 20_000
    kernels = KERNELS.frame(
        kernel=range(count),
        start_ns=range(BASE_NS, BASE_NS + 10 * count, 10),
        duration_ns=[each % 9 for each in range(count)],
        kind=["compute"] * count,
        name=[f"gemm {each % 700}" for each in range(count)],
        stream=[7] * count,
    )
    host = sliced([{"start": 10 * each, "length": each % 9, "name": f"op{each % 700}"} for each in range(count)])
    run = Run.from_frames({0: {"kernels": kernels, **host}})

    made = written(run, tmp_path, TimelineOptions(limit_bytes=60_000, explain=False))

    shares = [sum(n for (_, of, _), n in made.events.items() if of == family) for family in ("device", "host")]
    assert 40_000 < made.size_bytes <= 60_000
    assert min(shares) > max(shares) / 4
