"""Timelines of what no recording should hold: both forms stay whole, and nothing is lost without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reading import Sample, Timeline, read
from runs import BASE_NS, both, host_run, sliced, written

from stepscope.errors import StepscopeError
from stepscope.run import Run
from stepscope.tables import COLLECTIVES, COUNTERS, GROUPS, HOST_EVENTS, KERNELS, OPERATOR_TOTALS, SLICES, THREADS
from stepscope.timeline import TimelineOptions
from stepscope.timeline.writing.base import MOST_TEXT

FAR_NS = (1 << 63) - 1


def drawn(timeline: Timeline) -> list[tuple[int, int | None, str]]:
    """Start, end and name of what is on threads."""
    return [(each.start, each.end, each.name) for each in timeline.ranges if "Host" in each.place.track]


def counted(values: list[float], folder: Path) -> tuple[list[Sample], dict[str, str]]:
    """The samples of a counter in the file, and what is left out."""
    counters = COUNTERS.frame(
        time_ns=[BASE_NS + place for place in range(len(values))], name=["power"] * len(values), value=values
    )
    run = Run.from_frames({0: sliced([{"start": 0, "length": 9}], counters=counters)})
    return both(run, folder).samples, written(run, folder).left_out


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"slices": SLICES.frame()},
        {
            "operator_totals": OPERATOR_TOTALS.frame(
                level=["operator"], unit=["host"], name=["mm"], count=[3], total_ns=[7]
            )
        },
    ],
)
@pytest.mark.parametrize("kind", ["summary", "detail"])
def test_without_times_there_is_no_timeline(tables: dict[str, pl.DataFrame], kind: Any, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match="nothing with a time was recorded"):
        written(Run.from_frames({0: tables}), tmp_path, TimelineOptions(kind))
    assert list(tmp_path.glob("*")) == []


def test_ranges_that_end_before_they_start_are_drawn_without_a_length_and_said(tmp_path: Path) -> None:
    run = host_run([{"start": 0, "length": 10}, {"start": 5, "length": -3, "name": "back"}])

    assert drawn(both(run, tmp_path)) == [(5, 5, "back"), (0, 10, "aten::add")]
    assert "Ends are before starts in 1 range, which are drawn without a length." in written(run, tmp_path).notes


def test_times_before_1970_are_drawn(tmp_path: Path) -> None:
    run = host_run([{"start": -BASE_NS - 500, "length": 100}, {"start": -BASE_NS + 500, "length": 100}])

    assert [(start, end) for start, end, _ in drawn(both(run, tmp_path))] == [(0, 100), (1000, 1100)]
    assert written(run, tmp_path).base_ns == -500


def test_times_near_the_end_of_64_bits_are_drawn(tmp_path: Path) -> None:
    last = FAR_NS - BASE_NS
    run = host_run([{"start": last - 100, "length": 50}, {"start": last - 10, "length": FAR_NS}])

    assert [(start, end) for start, end, _ in drawn(both(run, tmp_path))] == [(0, 50), (90, 100)]


def test_lengths_that_viewers_cannot_draw_are_cut_and_said(tmp_path: Path) -> None:
    run = host_run([{"start": -BASE_NS, "length": FAR_NS}, {"start": 0, "length": FAR_NS}, {"start": 5, "length": 9}])

    ends = {end for _, end, _ in drawn(both(run, tmp_path))}

    assert ends == {1 << 62, BASE_NS + 14}
    assert written(run, tmp_path).notes == ["Of 2 ranges, the end is not drawn: it is over 100 years after the start."]


def test_what_has_no_length_is_a_point(tmp_path: Path) -> None:
    events = HOST_EVENTS.frame(
        start_ns=[BASE_NS, BASE_NS + 5],
        duration_ns=[None, 3],
        module=["data"] * 2,
        event=["fetch", "push"],
        stage=["", ""],
    )

    found = both(Run.from_frames({0: {"host_events": events}}), tmp_path)

    assert [(each.start, each.end) for each in found.points] == [(0, None)]
    assert [(each.start, each.end) for each in found.ranges] == [(5, 8)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x00b\x1b[31m", "a\\x00b\\x1b[31m"),
        ("\u2028\x85\x7f", "\\u2028\\x85\\x7f"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("</script>&\"'\\", "</script>&\"'\\"),
        ("\U0001f600\u202e", "\U0001f600\u202e"),
        ("", ""),
    ],
)
def test_names_with_odd_characters(name: str, shown: str, tmp_path: Path) -> None:
    run = host_run([{"start": 0, "length": 1, "name": name, "thread": name}])

    (each,) = [each for each in both(run, tmp_path).ranges if "Host" in each.place.track]

    assert each.name == shown


def test_names_of_a_megabyte_are_cut_visibly(tmp_path: Path) -> None:
    count = 50
    name = "x" * 1_000_000
    run = host_run([{"start": each, "length": 1, "name": f"{each:03}{name}"} for each in range(count)])

    names = [name for _, _, name in drawn(both(run, tmp_path))]

    assert [name[:4] for name in names] == [f"{each:03}x" for each in range(count)]
    assert {len(name) for name in names} == {MOST_TEXT + 1}
    assert {name[-1] for name in names} == {"…"}


def test_a_name_as_long_as_viewers_take_is_whole(tmp_path: Path) -> None:
    name = "逐" * MOST_TEXT

    assert drawn(both(host_run([{"start": 0, "length": 1, "name": name}]), tmp_path)) == [(0, 1, name)]


def test_values_that_are_no_numbers_are_left_out_and_said(tmp_path: Path) -> None:
    samples, left_out = counted([1.5, float("nan"), float("inf"), float("-inf"), 2.0], tmp_path)

    assert [(each.at, each.value) for each in samples] == [(0, 1.5), (4, 2.0)]
    assert left_out["Device counters"] == "3 rows: whose value is no number"


def test_arguments_that_are_no_numbers_leave_json_valid(tmp_path: Path) -> None:
    kernels = KERNELS.frame(
        kernel=[0, 1],
        start_ns=[BASE_NS, BASE_NS + 5],
        duration_ns=[1, 1],
        kind=["compute"] * 2,
        name=["gemm"] * 2,
        stream=[7] * 2,
        occupancy_ratio=[float("nan"), float("inf")],
    )

    found = both(Run.from_frames({0: {"kernels": kernels}}), tmp_path)

    told = [dict(each.args)["occupancy_ratio"] for each in found.ranges if each.category == "kernel"]
    assert told == ["nan", "inf"]


def test_deep_nesting_goes_on_beside(tmp_path: Path) -> None:
    run = host_run([{"start": depth, "length": 1000 - 2 * depth} for depth in range(300)])

    found = both(run, tmp_path)

    assert len(drawn(found)) == 300
    assert found.deepest == 250


def test_equal_ranges_are_all_drawn(tmp_path: Path) -> None:
    run = host_run([{"start": 0, "length": 5, "name": name} for name in "abc"])

    assert sorted(drawn(both(run, tmp_path))) == [(0, 5, "a"), (0, 5, "b"), (0, 5, "c")]


def test_ranks_with_any_numbers_are_in_order(tmp_path: Path) -> None:
    rows = sliced([{"start": 0, "length": 5}])

    found = both(Run.from_frames({1_000_000: rows, 0: rows, 2: rows}), tmp_path)

    assert found.processes == ["rank       0", "rank       2", "rank 1000000"]


def test_streams_with_any_numbers(tmp_path: Path) -> None:
    streams = [-5, 0, (1 << 31) - 1, -(1 << 31)]
    kernels = KERNELS.frame(
        kernel=range(4),
        start_ns=[BASE_NS] * 4,
        duration_ns=[10] * 4,
        kind=["compute"] * 4,
        name=["gemm"] * 4,
        stream=streams,
        correlation=[-(1 << 63), (1 << 63) - 1, 0, -1],
        device=[0, 0, (1 << 31) - 1, -1],
    )

    found = both(Run.from_frames({0: {"kernels": kernels}}), tmp_path)

    devices = [each for each in found.ranges if each.category == "kernel"]
    assert {each.place.track.split("Stream ")[1] for each in devices} == {str(stream) for stream in streams}
    assert {dict(each.args)["correlation"] for each in devices} == {str(-(1 << 63)), str((1 << 63) - 1), "0", "-1"}


def test_threads_with_equal_names_have_a_track_each(tmp_path: Path) -> None:
    ranges = [{"start": 0, "length": 5, "thread": thread, "process": "9"} for thread in ("1", "2", "3")]
    names = THREADS.frame(process=["9"] * 3, thread=["1", "2", "3"], thread_name=["worker 123"] * 3)

    found = both(Run.from_frames({0: sliced(ranges, threads=names)}), tmp_path)

    tracks = [each.place.track for each in found.ranges if "Host" in each.place.track]
    assert sorted(tracks) == ["Host: worker 123", "Host: worker 123 [2]", "Host: worker 123 [3]"]


def test_a_thousand_groups_have_names(tmp_path: Path) -> None:
    count = 1000
    groups = [f"group{each}" for each in range(count)]
    calls = COLLECTIVES.frame(
        collective=range(count),
        group=groups,
        sequence=[0] * count,
        operation=["all_reduce"] * count,
        name=["all_reduce"] * count,
        start_ns=[BASE_NS + each for each in range(count)],
        duration_ns=[1] * count,
        on_device=[True] * count,
        stream=[20] * count,
    )
    named = GROUPS.frame(group=groups, name=[f"data parallel {each}" for each in range(count)])

    found = both(
        Run.from_frames({0: {"collectives": calls, "groups": named}}), tmp_path, TimelineOptions(explain=False)
    )

    tracks = {each.place.track for each in found.ranges if each.category == "collective"}
    assert len(tracks) == count
    assert "Communication: Group data parallel 7 (group7)" in tracks


def test_ten_thousand_threads_have_a_track_each(tmp_path: Path) -> None:
    count = 10_000
    run = host_run([{"start": each, "length": 3, "thread": str(each)} for each in range(count)])

    made = written(run, tmp_path)

    assert made.tracks == count
    assert len({each.place for each in read(made.file).ranges}) == count


def test_more_names_than_a_reader_has_to_remember(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.timeline import asking
    from stepscope.timeline.writing import perfetto

    monkeypatch.setattr(perfetto, "MOST_INTERNED", 50)
    monkeypatch.setattr(asking, "WINDOW_ROWS", 60)
    run = host_run([{"start": each, "length": 90, "name": f"name {each}"} for each in range(500)])

    assert {name for _, _, name in drawn(both(run, tmp_path))} == {f"name {each}" for each in range(500)}


def test_times_that_json_does_not_hold_exactly_are_said(tmp_path: Path) -> None:
    day = 24 * 3_600_000_000_000
    run = host_run([{"start": 0, "length": 5}, {"start": 27 * day, "length": 5}])

    assert written(run, tmp_path).notes == []
    assert "overlaps may be lost" in written(run, tmp_path, form="json").notes[0]


def test_threads_with_endless_names_have_short_titles(tmp_path: Path) -> None:
    threads = ["x" * 9999 + end for end in "ab"]

    found = both(host_run([{"start": 0, "length": 5, "thread": thread} for thread in threads]), tmp_path)

    assert [each.track for each in found.tracks] == [f"Host: thread {'x' * 193}…"] * 2
    assert len(found.ranges) == 2
