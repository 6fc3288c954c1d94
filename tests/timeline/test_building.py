"""From a run to a file: what is asked for, what fails, and where it is written."""

from __future__ import annotations

import errno
import os
import stat
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from reading import read
from runs import FORMS, both, host_run, written

from builders import make_run
from stepscope.errors import Cancelled, StepscopeError
from stepscope.timeline import Format, TimelineOptions, asking, building, write_timeline
from stepscope.timeline.drafts import draft_of, opened
from stepscope.timeline.tracks import FAMILIES, host, steps
from stepscope.timeline.tracks.base import Part

PLAIN = TimelineOptions(explain=False)
"""Analyses take most of the time of a small run."""


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are not to be seen, as they are with `--debug`."""
    monkeypatch.delenv("STEPSCOPE_DEBUG")


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *, in_window: int = 0) -> None:
    """Have the family of host threads fail, in a window of time."""
    windows: list[Any] = []

    def rows(part: Part) -> pl.LazyFrame | None:
        windows.append(part.window)
        if len(windows) > in_window:
            raise error
        return host.FAMILY.rows(part)

    bad = replace(host.FAMILY, rows=rows)
    monkeypatch.setattr(building, "FAMILIES", tuple(bad if each is host.FAMILY else each for each in FAMILIES))


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyError("x"), "it failed: KeyError: 'x'"),
        (StepscopeError("trace.json: it is odd. Record again"), "it failed: trace.json: it is odd. Record again"),
        (SystemExit(3), "it failed: SystemExit: 3"),
        (pl.exceptions.ColumnNotFoundError("name"), "it failed: ColumnNotFoundError: name"),
    ],
)
def test_a_family_that_fails_is_said_and_costs_none_of_the_others(
    error: BaseException, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = written(make_run(), tmp_path, PLAIN).events
    failing(monkeypatch, error)

    made = written(make_run(), tmp_path, PLAIN)

    assert made.left_out == {"Host": why}
    assert made.events == expected
    assert len(read(made.file)) == made.total_events


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("form", FORMS)
def test_what_a_family_wrote_before_it_failed_stays_whole(
    form: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "WINDOW_ROWS", 50)
    failing(monkeypatch, KeyError("x"), in_window=2)
    ranges = [{"start": each, "length": 1000 - 2 * each} for each in range(400)]

    made = written(host_run(ranges), tmp_path, form=form)

    found = read(made.file)
    assert len(found.ranges) == made.total_events == 100
    assert found.is_whole
    assert made.left_out == {"Host": "it failed: KeyError: 'x'"}


def test_errors_are_seen_with_debug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyError("x"))

    with pytest.raises(KeyError):
        written(make_run(), tmp_path, PLAIN)
    assert list(tmp_path.glob("*timeline*")) == []


@pytest.mark.usefixtures("lenient")
def test_cancelling_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, Cancelled("cancelled"))

    with pytest.raises(Cancelled):
        written(make_run(), tmp_path, PLAIN)


@pytest.mark.usefixtures("lenient")
def test_if_all_fails_the_reasons_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(part: Part) -> pl.LazyFrame | None:
        raise KeyError(part.ranks[0])

    monkeypatch.setattr(building, "FAMILIES", (replace(steps.FAMILY, rows=rows),))

    with pytest.raises(StepscopeError, match=r"there is no timeline, since all was left out. Steps: it failed: KeyErr"):
        written(make_run(), tmp_path)


@pytest.mark.parametrize(
    "name", ["a.json", "a.json.gz", "a.JSON", "a.pftrace", "a.perfetto-trace", "a", "a.pftrace.gz"]
)
def test_the_name_of_a_file_says_its_form(name: str, tmp_path: Path) -> None:
    made = write_timeline(make_run(1), tmp_path / name, PLAIN)

    start = made.file.read_bytes()[:2]
    assert made.format == ("json" if "json" in name.lower() else "perfetto")
    assert (start == b"\x1f\x8b") == name.endswith(".gz")
    assert len(read(made.file)) == made.total_events
    assert [each.name for each in tmp_path.glob("*a*") if each.is_file()] == [name]


def test_a_form_overrides_the_name(tmp_path: Path) -> None:
    made = write_timeline(make_run(1), tmp_path / "a.json", PLAIN, format="perfetto")

    assert not made.file.read_bytes().startswith(b"{")
    assert len(read(made.file)) == made.total_events


@pytest.mark.parametrize("form", FORMS)
def test_a_run_has_the_same_bytes_each_time(form: Format, tmp_path: Path) -> None:
    first, second = (written(make_run(late={2: 5_000_000}), tmp_path, form=form).file.read_bytes() for _ in range(2))

    assert first == second


def test_packed_files_have_the_same_bytes_each_time(tmp_path: Path) -> None:
    files = [write_timeline(make_run(), tmp_path / f"{name}.json.gz").file.read_bytes() for name in "ab"]

    assert files[0] == files[1]


def test_ranks_are_those_of_the_run(tmp_path: Path) -> None:
    found = both(make_run(12).select(ranks=[2, 10]), tmp_path)

    assert found.processes[-2:] == ["rank  2 (CUDA)", "rank 10 (CUDA)"]


def test_the_summary_has_steps_and_overlap_only(tmp_path: Path) -> None:
    made = written(make_run(), tmp_path, TimelineOptions("summary"))

    assert {family for _, family, _ in made.events} == {"steps", "overlap"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (TimelineOptions(graphs="1"), "its steps are not counted by graph"),
        (TimelineOptions(kind="all"), "'all' is no kind of timeline. Choose summary or detail"),  # type: ignore[arg-type]
    ],
)
def test_options_that_are_not_possible_are_refused(options: TimelineOptions, problem: str, tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=problem):
        written(make_run(), tmp_path, options)


def test_a_form_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"'xml' is no format of timelines. Choose perfetto or json"):
        write_timeline(make_run(), tmp_path / "a", format="xml")  # type: ignore[arg-type]


def test_a_full_disk_is_said_and_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "timeline.pftrace"
    file.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("stepscope.timeline.writing.perfetto.PerfettoWriter.close", full)
    with pytest.raises(StepscopeError, match=r"timeline.pftrace: cannot write the timeline: No space .*\. Free some"):
        written(make_run(), tmp_path, PLAIN)
    assert file.read_bytes() == b"old"
    assert [each.name for each in tmp_path.glob("*timeline*")] == ["timeline.pftrace"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")  # noqa: PTH110
@pytest.mark.parametrize("form", FORMS)
def test_a_device_that_is_full_stays_what_it_is(form: Format) -> None:
    with pytest.raises(StepscopeError, match=r"No space left on device. Free some space there, or choose another disk"):
        write_timeline(make_run(), "/dev/full", PLAIN, format=form)
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_pipe_gets_the_timeline_and_stays(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()

    made = write_timeline(make_run(), pipe, PLAIN)

    reader.join(10)
    assert got == [written(make_run(), tmp_path, PLAIN).file.read_bytes()]
    assert pipe.is_fifo()
    assert made.total_events == 96


def test_a_directory_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"none/timeline: cannot write the timeline: No such file or directory"):
        write_timeline(make_run(), tmp_path / "none" / "timeline", PLAIN)


def test_a_failure_leaves_no_draft(tmp_path: Path) -> None:
    def fail() -> None:
        with draft_of(tmp_path / "a") as draft, opened(draft, packed=False) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.glob("*a*")) == [] or [each.name for each in tmp_path.iterdir()] == ["cache"]


def test_rows_without_a_place_in_the_recording_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(part: Part) -> pl.LazyFrame | None:
        found = steps.FAMILY.rows(part)
        return None if found is None else found.with_columns(start_ns=pl.when(pl.col("step") > 1).then("start_ns"))

    monkeypatch.setattr(building, "FAMILIES", (replace(steps.FAMILY, rows=rows),))

    made = written(make_run(2, 3), tmp_path)

    assert made.left_out == {"Steps": "2 rows: without a time in the recording"}
    assert made.total_events == 4


def test_all_is_written_for_many_ranks_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = written(make_run(9), tmp_path).events
    monkeypatch.setattr(asking, "RANKS_AT_ONCE", 2)

    found = both(make_run(9), tmp_path)

    assert len(found) == sum(expected.values())
