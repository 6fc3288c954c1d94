"""Links to a time and a track, times as users type them, and telling timelines from recordings."""

from __future__ import annotations

import gzip
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from stepscope.errors import StepscopeError, UnreadableInput
from stepscope.timeline.viewer import link_to, timeline_kind
from stepscope.timeline.viewer.moments import parse_moments

PAGE = "http://127.0.0.1:9170/secret/"


def fields(link: str) -> list[tuple[str, str]]:
    assert link.startswith(f"{PAGE}#")
    return parse_qsl(link.partition("#")[2], strict_parsing=True)


def test_a_link_holds_nanoseconds_exactly() -> None:
    start = 1_795_894_556_112_345_678

    assert fields(link_to(PAGE, start, start + 1)) == [("start_ns", str(start)), ("end_ns", str(start + 1))]
    assert fields(link_to(PAGE, 7, relative=True)) == [("start_ns", "7"), ("relative", "1")]


def test_a_link_names_groups_around_a_track_first_and_replaces_another_place() -> None:
    before = link_to(PAGE, 1, 2)

    link = link_to(before, 3, 4, ("rank 3", "stream 7 & more #=%"))

    assert fields(link)[2:] == [("track", "rank 3"), ("track", "stream 7 & more #=%")]
    assert fields(link_to(PAGE, track="Findings")) == [("track", "Findings")]


def test_a_range_that_ends_before_it_starts_has_no_link() -> None:
    for start, end in ((5, 4), (None, 4)):
        with pytest.raises(StepscopeError, match="the end needs a start before it"):
            link_to(PAGE, start, end)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.5", (1_500_000_000, None)),
        ("12s", (12_000_000_000, None)),
        ("340ms-350.5ms", (340_000_000, 350_500_000)),
        ("340-350ms", (340_000_000, 350_000_000)),
        ("1s - 1200ms", (1_000_000_000, 1_200_000_000)),
        ("0.000000001", (1, None)),
        ("17us-17us", (17_000, 17_000)),
    ],
)
def test_times_have_units(text: str, expected: tuple[int, int | None]) -> None:
    assert parse_moments(text) == expected


@pytest.mark.parametrize("text", ["", "-", "5-", "-5", "1h", "one", "1-2-3", "1e3", "nan", "٣s"])
def test_what_is_no_time_is_an_error_with_examples(text: str) -> None:
    with pytest.raises(StepscopeError, match=r"is no time of a timeline: give e\.g\. 12\.5s"):
        parse_moments(text)


def test_a_range_of_times_must_not_end_before_it_starts() -> None:
    with pytest.raises(StepscopeError, match="'2s-1500ms': the end is before the start"):
        parse_moments("2s-1500ms")


PACKET = b"\x0a\x04\x40\x05\x50\x01"  # timestamp = 5, trusted_packet_sequence_id = 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PACKET * 3, "perfetto"),
        (b"\x0a\xff\xff\x03\x42\x90\x80\x03" + b"x" * 70_000, "perfetto"),
        (b'{"traceEvents": []}', "chrome"),
        (b' \n{"schemaVersion": 1, "deviceProperties": [],\n "traceEvents" : [', "chrome"),
        (b'\xef\xbb\xbf[{"name": "a", "ph" : "X"}]', "chrome"),
        (b"[]", None),
        (b'{"pg_config": {}, "entries": []}', None),
        (b'[{"name": "a"}]', None),
        (b"\x0a\x05hello", None),
        (b"\x0a\x00", None),
        (b"\n\nRank 3\n", None),
        (b"SQLite format 3\0", None),
        (b"step,time\n1,2\n", None),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_timelines_are_known_by_their_content(
    tmp_path: Path, content: bytes, kind: str | None, is_packed: bool
) -> None:
    file = tmp_path / "file"
    file.write_bytes(gzip.compress(content) if is_packed else content)

    assert timeline_kind(file) == kind


def test_a_directory_is_a_recording(tmp_path: Path) -> None:
    assert timeline_kind(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "there is no such file or directory"),
        (b"", "is empty"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "cannot be unpacked by gzip"),
        (b"\x1f\x8b not packed", "cannot be unpacked by gzip"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_file(
    tmp_path: Path, content: bytes | None, problem: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(UnreadableInput, match=problem) as raised:
        timeline_kind(file)

    assert str(file) in str(raised.value)
