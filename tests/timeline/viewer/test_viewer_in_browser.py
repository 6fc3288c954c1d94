"""What a browser shows: the offline UI has all of a timeline, says what it lost, and goes where a link points to."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser import LOST_SQL, Page, missing

from stepscope.timeline.viewer import TimelineServer, link_to

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"missing: {missing()}")

START_NS = 1_795_894_556_112_345_678
"""Beyond what a double holds."""

STEP_NS = 1_000_000
RANGE_NS = 500_001
RANKS, STREAMS, RANGES = 3, 12, 20


def start_of(rank: int, number: int) -> int:
    return START_NS + number * STEP_NS + rank


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TimelineServer]:
    file = tmp_path_factory.mktemp("timeline") / "job.pftrace"
    file.write_bytes(perfetto_file())
    with TimelineServer(file, port=0).start() as started:
        yield started


@pytest.fixture
def shown(page: Page, server: TimelineServer) -> Page:
    """The page with the timeline; loading the UI takes seconds, so it is loaded once for all tests of it."""
    if not page.driver.current_url.startswith(server.url):
        assert page.open(server.url) == "open"
    return page


def perfetto_file() -> bytes:
    """A process for each rank, whose streams have the same ranges at almost the same times."""
    pytest.importorskip("perfetto")
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import TraceProtoBuilder

    trace = TraceProtoBuilder()
    for rank in range(RANKS):
        process = trace.add_packet().track_descriptor
        process.uuid, process.process.pid, process.process.process_name = rank + 1, 1000 + rank, f"rank {rank}"
        for stream in range(STREAMS):
            track = trace.add_packet().track_descriptor
            track.uuid, track.parent_uuid, track.name = 100 * (rank + 1) + stream, rank + 1, f"stream {stream}"
            for number in range(RANGES):
                begin = start_of(rank, number)
                for kind, at in (
                    (TrackEvent.TYPE_SLICE_BEGIN, begin),
                    (TrackEvent.TYPE_SLICE_END, begin + RANGE_NS),
                ):
                    packet = trace.add_packet()
                    packet.timestamp, packet.trusted_packet_sequence_id = at, 1
                    packet.track_event.type, packet.track_event.track_uuid = kind, track.uuid
                    packet.track_event.name = f"kernel {number}"
    return bytes(trace.serialize())


def json_server(directory: Path, text: str, title: str = "") -> TimelineServer:
    file = directory / "trace.json"
    file.write_text(text)
    return TimelineServer(file, title=title, remedy="Fix it.", port=0).start()


def selected(page: Page) -> tuple[int, str] | None:
    """Time and track of the range that is selected."""
    kind, number = page.inside("[app.trace.selection.selection.kind, app.trace.selection.selection.eventId]")
    if kind != "track_event":
        return None
    of_it = f"select s.ts, t.name from slice s join track t on s.track_id = t.id where s.id = {number}"
    return next((row["ts"], row["name"]) for row in page.sql(of_it))


def test_all_of_a_timeline_is_shown_without_asking_anybody_else(page: Page, server: TimelineServer) -> None:
    page.requests()

    assert page.open(server.url) == "open"
    time.sleep(0.5)  # for what it fetches after it has drawn the timeline

    assert page.sql("select count(*) as n, min(ts) as first from slice") == [
        {"n": RANKS * STREAMS * RANGES, "first": START_NS}
    ]
    assert (page.has_badge(), page.sql(LOST_SQL)) == (False, [])
    assert page.state.endswith("kB")
    assert {urlsplit(url).netloc for url in page.requests()} == {f"127.0.0.1:{server.port}"}


def test_nothing_of_a_timeline_stays_in_the_browser(shown: Page) -> None:
    kept = shown.driver.execute_async_script(
        "const done = arguments[0];"
        "Promise.all([caches.keys(), navigator.serviceWorker.getRegistrations(), indexedDB.databases()])"
        ".then((found) => done(found.map((each) => each.length)));"
    )

    assert kept == [0, 0, 0]
    assert shown.driver.execute_script("return document.getElementById('ui').contentWindow.caches === undefined")


def test_a_link_moves_the_open_page_without_loading_again(shown: Page, server: TimelineServer) -> None:
    shown.requests()
    link = link_to(server.url, 3 * STEP_NS, 5 * STEP_NS, ("rank 1", "stream 11"), relative=True)

    shown.go(link.partition("#")[2])

    first, last = shown.visible_ns()
    assert START_NS + 2 * STEP_NS < first <= START_NS + 3 * STEP_NS
    assert START_NS + 5 * STEP_NS <= last < START_NS + 6 * STEP_NS
    assert not [url for url in shown.requests() if url.endswith("/trace")]


def test_a_time_without_an_end_shows_a_fiftieth_of_the_timeline(shown: Page) -> None:
    shown.go(f"start_ns={start_of(0, 10)}")

    first, last = shown.visible_ns()
    assert first < start_of(0, 10) < last
    assert last - first < RANGES * STEP_NS / 30


@pytest.mark.parametrize(
    ("fragment", "problem"),
    [
        ("track=rank 9", 'no track "rank 9"'),
        ("track=rank 1&track=lane 0", 'no track "rank 1 / lane 0"'),
        ("start_ns=5&end_ns=6", "the time is outside of the timeline"),
        ("start_ns=x", "start_ns is no whole number of nanoseconds"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(shown: Page, fragment: str, problem: str) -> None:
    shown.go(fragment)

    assert shown.state == f"Not shown: {problem}"


def test_scrolling_by_seconds_is_offered_to_scripts(shown: Page) -> None:
    shown.driver.execute_script(f"scrollTo({(START_NS + 4 * STEP_NS) / 1e9!r}, {(START_NS + 6 * STEP_NS) / 1e9!r})")

    def is_there() -> bool:
        first, last = shown.visible_ns()
        return (
            START_NS + 3 * STEP_NS < first < START_NS + 4 * STEP_NS
            and START_NS + 6 * STEP_NS < last < START_NS + 7 * STEP_NS
        )

    assert shown.until(is_there)


def test_the_page_opens_where_a_link_points_to_and_selects_the_range(page: Page, server: TimelineServer) -> None:
    start = start_of(2, 7)

    state = page.open(link_to(server.url, start, start + RANGE_NS, ("rank 2", "stream 7")))

    first, last = page.visible_ns()
    assert state == "open"
    assert start - RANGE_NS < first <= start
    assert start + RANGE_NS <= last < start + 2 * RANGE_NS
    assert selected(page) == (start, "stream 7")
    assert "stream 7" in page.text()


def test_what_the_viewer_loses_is_said_and_names_are_no_code(page: Page, tmp_path: Path) -> None:
    name = '<img src=x onerror="top.hacked = 1"><script>top.hacked = 1</script>'
    events = [{"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": ts, "dur": 10} for ts in (1, 5)]

    with json_server(tmp_path, json.dumps({"traceEvents": events}), title=name) as server:
        page.open(server.url)
        lost = page.sql(LOST_SQL)

        assert page.has_badge()
        assert [row["name"] for row in lost] == ["slice_drop_overlapping_complete_event"]
        assert page.state == "Not all of the timeline could be read (slice_drop_overlapping_complete_event: 1). Fix it."
        assert page.driver.execute_script("return document.getElementById('title').textContent") == name
        assert page.sql("select name from slice") == [{"name": name}]
        assert page.driver.execute_script("return window.hacked") is None


@pytest.mark.parametrize(
    ("text", "state", "header"),
    [
        ('{"traceEvents": [{"ph": "X", ', "failed", "Cannot show the timeline: the viewer cannot read it (JSON trace"),
        ('{"traceEvents": []}', "open", "0.0 kB, without any event"),
    ],
)
def test_a_broken_or_empty_timeline_is_reported(page: Page, tmp_path: Path, text: str, state: str, header: str) -> None:
    with json_server(tmp_path, text) as server:
        assert page.open(server.url) == state
        assert page.state.startswith(header)


def test_a_ui_that_hides_its_parts_still_shows_a_timeline_at_a_time(page: Page, server: TimelineServer) -> None:
    hidden = "Object.defineProperty(window, 'app', {get: () => undefined, set: (app) => { window.hidden = app; }})"
    script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": hidden})

    def is_there() -> bool:
        window = "document.getElementById('ui').contentWindow.hidden.trace?.timeline.visibleWindow.start.integral"
        start = int(page.driver.execute_script(f"return String({window} ?? 0)"))
        return START_NS + 2 * STEP_NS < start < START_NS + 4 * STEP_NS

    try:
        state = page.open(link_to(server.url, START_NS + 4 * STEP_NS, START_NS + 6 * STEP_NS, "rank 1"))
        assert (state, page.until(is_there)) == ("open", True)
        assert page.state == "Not shown: this version of the UI has no way to go to a track"
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
