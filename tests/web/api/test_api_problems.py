"""Whatever is wrong with a request, its answer is a problem that names it, lists what there is, and shows no more."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from stepscope.errors import Cancelled
from stepscope.web.api.problems import KINDS
from tests.web.api.api_server import EXAMPLE, ID, PREFIX, Api, checked

PAGE = f"/runs/{ID}/pages/ops/operator_types"

WRONG: list[tuple[dict[str, Any], int, str, tuple[str, ...]]] = [
    ({"top": "many"}, 400, "bad-request", ("top", "whole number")),
    ({"top": "-1"}, 400, "bad-request", ("top", "from 1 to 10000")),
    ({"top": "1" * 30}, 400, "bad-request", ("top",)),
    ({"top": "\uff11\uff12"}, 400, "bad-request", ("top",)),
    ({"page": "0"}, 400, "bad-request", ("page",)),
    ({"page": "99"}, 400, "bad-request", ("there is no page 99",)),
    ({"nix": "1"}, 400, "bad-request", ("nix: there is no such parameter", "search, filter, sort")),
    ({"lang": "fr"}, 400, "bad-request", ("lang", "en or zh")),
    ({"format": "xml"}, 400, "bad-request", ("json, csv or parquet",)),
    ({"int64": "hex"}, 400, "bad-request", ("number or text",)),
    ({"search": "x" * 600}, 400, "bad-request", ("600 characters",)),
    ({"search": "a\0b"}, 400, "bad-request", ("code 0",)),
    ({"search": "no such operator"}, 404, "no-rows", ("search no such operator", "There are")),
    ({"filter": "count > 1000000"}, 404, "no-rows", ("count is 5 to",)),
    ({"filter": "count >"}, 400, "bad-request", ("filter",)),
    ({"filter": "(SELECT 1) = 1"}, 400, "bad-request", ("only a condition",)),
    ({"filter": "count IN (FROM read_csv('/etc/passwd'))"}, 400, "bad-request", ("only a condition",)),
    ({"filter": "nix = 1"}, 400, "unknown-column", ("nix", "total_ns")),
    ({"sort": "nix"}, 400, "unknown-column", ("nix", "total_ns")),
    ({"rank": "9"}, 400, "bad-request", ("no rank 9", "0-3")),
    ({"rank": "-1"}, 400, "bad-request", ("rank",)),
    ({"step": "99"}, 400, "bad-request", ("no step 99",)),
]


@pytest.mark.parametrize(("query", "status", "kind", "said"), WRONG)
def test_a_wrong_parameter(served: Api, query: dict[str, Any], status: int, kind: str, said: tuple[str, ...]) -> None:
    found = served.problem(PAGE, status, kind, **query)
    assert found["instance"] == PREFIX + PAGE
    for words in said:
        assert words in found["detail"]
    assert "--" not in found["detail"]


def test_all_that_is_wrong_is_said_at_once(served: Api) -> None:
    found = served.problem(PAGE, 400, "bad-request", top="x", lang="fr", nix="1")
    assert [each["parameter"] for each in found["parameters"]] == ["top", "lang", "nix"]


def test_a_parameter_is_given_once(served: Api) -> None:
    response = served.client.get(f"{PREFIX}{PAGE}?top=1&top=2")
    assert "2 times" in checked(response, 400, "bad-request")["detail"]


def test_what_must_be_given(served: Api) -> None:
    assert "base: it must be given" in served.problem("/compare", 400, "bad-request")["detail"]


PLACES = [
    ("/runs/nix", "unknown-run", ID),
    ("/runs/nix/pages/ops", "unknown-run", ID),
    (f"/compare?base={ID}&new=nix", "unknown-run", ID),
    (f"/runs/{ID}/pages/nix", "unknown-page", "what-if"),
    (f"/runs/{ID}/pages/compare", "unknown-page", "what-if"),
    (f"/runs/{ID}/pages/ops/nix", "unknown-page", "operator_types"),
    (f"/runs/{ID}/pages/ops/{{table}}", "unknown-page", "operator_types"),
    (f"/compare/nix?base={ID}", "unknown-page", "time_differences"),
    (f"/runs/{ID}/tables/nix", "unknown-page", "slices"),
    (f"/runs/{ID}/figures/nix", "unknown-page", "time-by-rank"),
    ("/rules/nix", "unknown-page", "slow-rank"),
    (f"/runs/{ID}/tables/links", "not-recorded", ""),
    (f"/runs/{ID}/figures/link-matrix", "not-recorded", ""),
    (f"/runs/{ID}/pages/links/link_totals?format=csv", "not-recorded", ""),
    ("/nix", "not-found", "/api/v1/docs"),
    ("", "not-found", "/api/v1/docs"),
    (f"/runs/{ID}/pages/ops/operator_types/more", "not-found", "/api/v1/docs"),
    (f"/runs/{ID}/", "not-found", "/api/v1/docs"),
]


@pytest.mark.parametrize(("place", "kind", "said"), PLACES)
def test_there_is_nothing_there(served: Api, place: str, kind: str, said: str) -> None:
    assert said in checked(served.client.get(PREFIX + place), 404, kind)["detail"]
    bare = served.client.head(PREFIX + place)
    assert bare.status_code == 404 and bare.content == b""


@pytest.mark.parametrize(
    "name",
    [
        *("..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2f..", "%00", "a%00b", "x" * 300, "x" * 4000),
        *(
            "%2fetc%2fpasswd",
            "C:%5cwindows",
            "%0d%0aSet-Cookie:x=1",
            "%ff%fe",
            "<script>alert(1)<%2fscript>",
            "%E2%80%AE",
        ),
    ],
)
@pytest.mark.parametrize("place", ["/runs/{}", "/runs/{}/pages/ops", "/runs/{}/tables/slices", "/runs/{}/report.html"])
def test_hostile_names_of_runs(served: Api, name: str, place: str) -> None:
    response = served.client.get(PREFIX + place.format(name))
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert "set-cookie" not in response.headers
    assert "root:" not in response.text and "\0" not in response.text and "\u202e" not in response.json()["detail"]
    assert len(response.text) < 6_000


@pytest.mark.parametrize("name", ["..%2fsteps", "%2e%2e", "steps%00", "x" * 300])
@pytest.mark.parametrize("place", ["pages/{}", "pages/ops/{}", "tables/{}", "figures/{}"])
def test_hostile_names_of_other_things(served: Api, name: str, place: str) -> None:
    response = served.client.get(f"{PREFIX}/runs/{ID}/{place.format(name)}")
    assert response.status_code == 404 and response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
def test_a_method_that_an_address_does_not_take(served: Api, method: str) -> None:
    response = served.client.request(method, f"{PREFIX}/runs/{ID}/pages/ops")
    checked(response, 405, "wrong-method")
    assert response.headers["allow"] == "GET, HEAD"
    response = served.client.get(f"{PREFIX}/runs/{ID}/query")
    checked(response, 405, "wrong-method")
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "place", ["overview", "pages/ops", "tables/slices", "report.html", "timeline", "figures/heat-map"]
)
def test_a_run_in_another_state(changing: Api, place: str) -> None:
    address = f"/runs/{ID}/{place}"
    changing.runs.change(state="reading", progress=0.25)
    response = changing.get(address)
    found = checked(response, 409, "not-ready")
    assert int(response.headers["retry-after"]) > 0
    assert (found["state"], found["progress"]) == ("reading", 0.25) and "25%" in found["detail"]
    changing.runs.change(state="failed", problem="trace.json: is no JSON. Record it again")
    assert "is no JSON" in changing.problem(address, 422, "broken-run")["detail"]
    changing.runs.change(state="gone", problem="")
    assert "gone" in changing.problem(address, 410, "gone")["detail"]
    assert changing.get(f"/runs/{ID}").json()["state"] == "gone"
    del changing.runs.known[ID]
    changing.problem(address, 404, "unknown-run")


def test_a_run_that_breaks_costs_no_other(changing: Api) -> None:
    changing.runs.known["other"] = changing.runs.known[ID]
    changing.runs.change("other", state="failed", id="other", problem="broken")
    assert {run["id"]: run["state"] for run in changing.get("/runs").json()["runs"]} == {ID: "ready", "other": "failed"}
    assert changing.of_run("/pages/ops")["tables"]
    changing.problem("/compare", 422, "broken-run", base=ID, new="other")


def test_a_mistake_of_ours_is_logged_and_says_nothing(
    changing: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from stepscope.web.api import pages

    def failing(*_: Any) -> Any:
        raise RuntimeError(f"secret at {EXAMPLE}")

    monkeypatch.setattr(pages, "page_document", failing)
    with caplog.at_level(logging.ERROR):
        found = changing.problem(f"/runs/{ID}/pages/ops", 500, "failed")
    assert "secret" not in str(found) and "secret" in caplog.text
    assert changing.of_run("/tables")["tables"]


def test_a_question_that_was_cancelled_may_be_asked_again(changing: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.web.api import pages

    def stopped(*_: Any) -> Any:
        raise Cancelled("the question was cancelled")

    monkeypatch.setattr(pages, "page_document", stopped)
    response = changing.get(f"/runs/{ID}/pages/ops")
    checked(response, 503, "busy")
    assert int(response.headers["retry-after"]) > 0


def test_every_kind_is_described_where_its_type_leads(served: Api) -> None:
    docs = served.get("/docs").text
    for kind in KINDS:
        assert f'id="{kind}"' in docs
    found = served.problem("/nix", 404, "not-found")
    assert found["type"].partition("#")[0] == f"{PREFIX}/docs"
