"""The OpenAPI document: it describes every address, and the page made of it loads nothing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from stepscope.web.api import OPERATIONS
from stepscope.web.api.pages import RUN_PAGES
from stepscope.web.api.problems import in_words_of_queries
from tests.web.api.api_server import ID, PREFIX, Api


@pytest.fixture(scope="module")
def described(served: Api) -> Any:
    response = served.get("/openapi.json")
    assert response.status_code == 200 and response.headers["content-type"] == "application/json"
    return response.json()


def _operations(described: Any) -> Iterator[tuple[str, str, Any]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def test_every_operation_is_described(described: Any) -> None:
    found = list(_operations(described))
    identities = [operation["operationId"] for _, _, operation in found]
    assert len(set(identities)) == len(identities)
    for operation in OPERATIONS:
        assert any(identity.startswith(operation.identity) for identity in identities)
    for name in RUN_PAGES:
        assert f"/runs/{{run}}/pages/{name}" in described["paths"]
        assert f"/runs/{{run}}/pages/{name}/{{table}}" in described["paths"]
    for path, _, operation in found:
        assert operation["summary"] and operation["description"] and operation["tags"]
        named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))
        for parameter in operation["parameters"]:
            said = parameter["description"]
            assert said and in_words_of_queries(said) == said, (path, parameter)
            _is_bounded(parameter)


def _is_bounded(parameter: Any) -> None:
    schema = parameter["schema"]
    if schema["type"] == "array":
        assert schema["maxItems"]
        schema = schema["items"]
    bounds = {"string": ("maxLength", "enum"), "integer": ("maximum",), "boolean": ("type",), "number": ("type",)}
    assert any(bound in schema for bound in bounds[schema["type"]]), parameter


def test_problems_are_declared(described: Any) -> None:
    for path, _, operation in _operations(described):
        responses = operation["responses"]
        assert {"200", "400", "500"} <= set(responses)
        if "{run}" in path:
            assert {"404", "409", "410", "422"} <= set(responses)
        for status, response in responses.items():
            if int(status) >= 400:
                assert list(response["content"]) == ["application/problem+json"]


def test_references_lead_somewhere(described: Any) -> None:
    known = described["components"]["schemas"]
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert referred <= set(known) and set(known) <= referred


def test_answers_are_as_the_schemas_say(served: Api, described: Any) -> None:
    validators = pytest.importorskip("jsonschema")
    places = {
        "Runs": "/runs",
        "Run": f"/runs/{ID}",
        "Progress": f"/runs/{ID}/progress",
        "PageAnswer": f"/runs/{ID}/pages/ops",
        "TableAnswer": f"/runs/{ID}/pages/ops/operator_types",
        "Overview": f"/runs/{ID}/overview",
        "Findings": f"/runs/{ID}/findings",
        "Figure": f"/runs/{ID}/figures/time-by-rank",
        "Problem": "/nix",
    }
    for name, place in places.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
        validators.Draft202012Validator(schema).validate(served.get(place).json())


def test_the_page_loads_nothing_and_runs_nothing(served: Api) -> None:
    response = served.get("/docs")
    assert response.status_code == 200 and response.headers["content-type"] == "text/html; charset=utf-8"
    text = response.text
    assert not re.search(r"<(script|link|img|iframe|object|embed)|\ssrc=|url\(|@import|\son\w+=", text)
    assert set(re.findall(r'href="([^"]+)"', text)) == {f"{PREFIX}/openapi.json"}
    for operation in OPERATIONS:
        assert operation.identity in text
    assert html.escape('e.g. "total_ms > 5"') in text


def test_parameters_are_those_that_are_read(served: Api, described: Any) -> None:
    refused = served.get(f"/runs/{ID}/pages/what-if/what_if", nix=1).json()["detail"]
    operation = described["paths"]["/runs/{run}/pages/what-if/{table}"]["get"]
    names = [each["name"] for each in operation["parameters"] if each["in"] == "query"]
    assert ", ".join(names) in refused
