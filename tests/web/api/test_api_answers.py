"""What an answer is to HTTP: kept by clients, bounded, computed once, sent without a body to who asks for none."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.web.api.api_server import ID, PREFIX, Api

PLACES = [
    *("/runs", "/pages", "/rules", "/version", f"/runs/{ID}", f"/runs/{ID}/progress", f"/runs/{ID}/overview"),
    *(f"/runs/{ID}/findings", f"/runs/{ID}/pages", f"/runs/{ID}/pages/ops", f"/runs/{ID}/pages/ops/operator_types"),
    *(f"/runs/{ID}/pages/ops/operator_types?format=csv", f"/runs/{ID}/tables", f"/runs/{ID}/tables/steps"),
    *(f"/runs/{ID}/tables/steps?format=parquet", f"/runs/{ID}/figures", f"/runs/{ID}/figures/time-by-rank"),
    *(f"/runs/{ID}/report.html", f"/runs/{ID}/report.md", f"/runs/{ID}/report.json", f"/runs/{ID}/report.xlsx"),
    *(f"/runs/{ID}/timeline?kind=summary", f"/compare?base={ID}", f"/compare/time_differences?base={ID}&ranks=1"),
    "/rules/slow-rank",
]
"""Every kind of address that can be kept."""


@pytest.mark.parametrize("place", PLACES)
def test_what_a_client_has_is_not_computed_again(served: Api, place: str) -> None:
    first = served.client.get(PREFIX + place)
    assert first.status_code == 200, first.text
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    asked, opened = served.asking.stats().asked, served.runs.opened
    for given in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = served.client.get(PREFIX + place, headers={"If-None-Match": given})
        assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == tag
    assert (served.asking.stats().asked, served.runs.opened) == (asked, opened)
    assert served.client.get(PREFIX + place, headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("place", PLACES)
def test_head_has_the_headers_of_get(served: Api, place: str) -> None:
    whole, bare = served.client.get(PREFIX + place), served.client.head(PREFIX + place)
    assert bare.status_code == 200 and bare.content == b""
    for name in ("content-type", "etag", "cache-control"):
        assert bare.headers[name] == whole.headers[name]
    if "content-length" in whole.headers:
        assert bare.headers["content-length"] == whole.headers["content-length"]


def test_tags_differ_by_all_on_which_the_answer_depends(changing: Api) -> None:
    def tag(**query: Any) -> str:
        response = changing.get(f"/runs/{ID}/pages/ops/operator_types", **query)
        assert response.status_code == 200
        return str(response.headers["etag"])

    asked: list[dict[str, Any]] = [{}, {"lang": "zh"}, {"top": 5}, {"page": 2, "top": 5}, {"sort": "type"}, {"rank": 1}]
    asked += [{"int64": "text"}, {"format": "csv"}, {"format": "parquet"}, {"filter": "count > 1"}, {"search": "aten"}]
    tags = [tag(**query) for query in asked]
    assert len(set(tags)) == len(tags)
    assert [tag(**query) for query in asked] == tags
    assert tag(lang="en") == tags[0] and tag(format="json") != ""
    changing.runs.change(stamp="second")
    assert not set(tags) & {tag(**query) for query in asked}


def test_clients_that_ask_at_once_wait_for_one_answer(changing: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.web.api import pages

    waiting, started = threading.Event(), threading.Event()
    computed = []
    encode = pages.page_document

    def slowly(*words: Any) -> Any:
        computed.append(words)
        started.set()
        assert waiting.wait(10)
        return encode(*words)

    monkeypatch.setattr(pages, "page_document", slowly)
    with ThreadPoolExecutor(5) as threads:
        asked = [threads.submit(changing.of_run, "/pages/ops") for _ in range(5)]
        assert started.wait(10)
        while changing.asking.stats().asked < 10:  # each asks for the answers, then for their text
            pass
        waiting.set()
        found = [each.result() for each in asked]
    assert len(computed) == 1 and all(each == found[0] for each in found)


def test_the_event_loop_answers_while_questions_are_computed(changing: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.web.api import pages

    waiting, started = threading.Event(), threading.Event()
    encode = pages.page_document

    def slowly(*words: Any) -> Any:
        started.set()
        assert waiting.wait(10)
        return encode(*words)

    monkeypatch.setattr(pages, "page_document", slowly)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(changing.of_run, "/pages/ops")
        assert started.wait(10)
        assert changing.get("/health").status_code == 200
        waiting.set()
        asked.result()


def test_answers_are_bounded(served: Api) -> None:
    assert len(served.of_run("/tables/slices")["tables"]["slices"]) == 100
    assert len(served.of_run("/tables/slices", top=2_000)["tables"]["slices"]) == 2_000
    served.problem(f"/runs/{ID}/tables/slices", 400, "bad-request", top=10_001)
    served.problem(f"/runs/{ID}/tables/slices", 400, "bad-request", top=0)


def test_runs_are_listed_searched_sorted_and_paged(changing: Api) -> None:
    from dataclasses import replace

    first = changing.runs.known[ID]
    for number in range(25):
        name = f"job-{number:02}"
        changing.runs.known[name] = replace(
            first, id=name, name=name, ranks=number, state="ready" if number % 5 else "reading", progress=0.25
        )
    changing.runs.revision += 1
    whole = changing.get("/runs").json()
    assert whole["total"] == 26 and [run["id"] for run in whole["runs"]] == list(changing.runs.known)
    assert whole["states"]["reading"] == 5
    found = changing.get("/runs", search="JOB-1", sort="-ranks", top=4, page=2).json()
    assert [run["id"] for run in found["runs"]] == ["job-15", "job-14", "job-13", "job-12"]
    assert (found["total"], found["pages"], found["page"]) == (10, 3, 2)
    assert "search=JOB-1" in found["links"]["next"] and found["links"]["next"].endswith("page=3")
    reading = changing.get("/runs", state="reading").json()["runs"]
    assert {run["state"] for run in reading} == {"reading"} and {run["progress"] for run in reading} == {0.25}
    nothing = changing.get("/runs", search="nix").json()
    assert nothing["runs"] == [] and nothing["total"] == 0
    assert first.path.as_posix() not in changing.get("/runs").text


def test_the_list_of_runs_changes_with_them(changing: Api) -> None:
    tag = changing.get("/runs").headers["etag"]
    changing.runs.change(state="analysing", progress=0.5)
    again = changing.get("/runs", {"If-None-Match": tag})
    assert again.status_code == 200 and again.json()["runs"][0]["state"] == "analysing"


def test_a_server_that_was_started_again_lists_its_runs_anew(served: Api, changing: Api) -> None:
    tags = {api.get("/runs").headers["etag"] for api in (served, changing)}
    assert len(tags) == 2
