"""Requests that schemathesis makes of the OpenAPI document: whatever they ask, the answer is one that is documented."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.web.api.api_server import Api, catalogued

schemathesis = pytest.importorskip("schemathesis", reason="pip install 'stepscope[web-tests]'")

EXAMPLES = 4
"""Requests of each operation that are possible, and as many that are not."""

PATIENCE_S = 120
"""Seconds for one answer, on a busy machine."""

TELLING: dict[str, dict[str, Any]] = {
    "sort": {"enum": ["", "-rank", "rank", "total_ns,-rank", "step time", "nix", "-", "name"]},
    "search": {"enum": ["", "a", "aten", "%", "no such text"]},
    "filter": {
        "enum": [
            *(
                "rank = 0",
                "rank >= 0 AND step < 9",
                "name LIKE '%a%'",
                "total_ms > 1",
                "rank",
                "1",
                "nix",
                "rank = rank",
            ),
            *("(select 1)", "read_csv('/etc/passwd') = 1", "name = CAST(rank AS BINARY)", "rank >", "'"),
        ]
    },
    "columns": {"enum": ["rank", "rank,start_ns", "nix", ""]},
    "ranks": {"enum": ["0", "0-2", "1-", "all", "7", "1,3"]},
    "base_ranks": {"enum": ["0", "2-", "9"]},
    "steps": {"enum": ["4", "4-6", "5-", "all", "77"]},
    "base_steps": {"enum": ["4", "5-", "77"]},
    "page": {"minimum": 1, "maximum": 3},
    "rank": {"minimum": 0, "maximum": 5},
    "step": {"minimum": 3, "maximum": 9},
}
"""Values with which a request gets further than with any text; the others are as the document says."""


SEVERAL = ("what-if", "steps", "memory", "step-trace")
"""Pages and figures that stand for the others where these take their parameters in the same way."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Any]]:
    """The API over a catalogue, and its document with runs that there are."""
    with catalogued(tmp_path_factory.mktemp("cache")) as api:
        document = api.get("/openapi.json").json()
        yield api, _narrowed(document, {name: {"enum": [api.first]} for name in ("run", "base", "new")})


def _narrowed(document: Any, values: Mapping[str, Any]) -> Any:
    """The document with other bounds of some parameters."""
    narrowed = copy.deepcopy(document)
    for methods in narrowed["paths"].values():
        for operation in methods.values():
            for parameter in operation["parameters"]:
                schema = parameter["schema"]
                if parameter["name"] in values and "enum" not in schema and schema["type"] != "array":
                    parameter["schema"] = {
                        key: value for key, value in schema.items() if key in ("type", "format", "default")
                    } | values[parameter["name"]]
    return narrowed


def _only(document: Any, is_wanted: Callable[[list[str]], bool]) -> Any:
    """The document without what is not wanted below a run, by the words of its address."""
    parts = {path: path.strip("/").split("/") for path in document["paths"]}
    kept = {
        path: methods for path, methods in document["paths"].items() if len(parts[path]) < 4 or is_wanted(parts[path])
    }
    return {**document, "paths": kept}


def _try(api: Api, document: Any, mode: Any) -> Counter[int]:
    """Try all operations; how often each status came.

    Raises:
        AssertionError: With all that is not as documented.
    """
    from schemathesis import checks

    schema = schemathesis.openapi.from_dict(document)
    schema.app = api.client.app
    statuses: Counter[int] = Counter()
    wrong: dict[tuple[str, str], str] = {}
    for found in schema.get_all_operations():
        operation = found.ok()

        @given(operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            response = case.call(timeout=PATIENCE_S)
            statuses[response.status_code] += 1
            try:  # a text that is one may still be no condition, column or rank
                case.validate_response(response, excluded_checks=[checks.positive_data_acceptance])
            except Exception as failures:
                for failure in getattr(failures, "exceptions", [failures]):
                    told = f"{failure}\n{case.query} {case.body!r:.300}\n{response.status_code} {response.text:.500}"
                    wrong.setdefault((case.operation.label, type(failure).__name__), told)

        try:
            ask()
        except Unsatisfiable:  # what has no parameters cannot be asked wrongly
            assert mode == schemathesis.GenerationMode.NEGATIVE
    assert not wrong, "\n\n".join(f"{label}: {told}" for (label, _), told in wrong.items())
    return statuses


def test_possible_requests(asked: Any, computed: pytest.MonkeyPatch) -> None:
    computed.undo()  # as on a server, answers are kept
    api, document = asked
    several = _only(document, lambda words: words[2:] != ["pages", words[-1]] or words[-1] in SEVERAL)
    statuses = _try(api, _narrowed(several, TELLING), schemathesis.GenerationMode.POSITIVE)
    assert set(statuses) <= {200, 400, 404}
    assert statuses[200] > 50


def test_impossible_requests(asked: Any, computed: pytest.MonkeyPatch) -> None:
    computed.undo()  # as on a server, answers are kept
    api, document = asked
    several = _only(document, lambda words: words[2] not in ("pages", "figures") or words[3] in SEVERAL)
    statuses = _try(api, several, schemathesis.GenerationMode.NEGATIVE)
    assert max(statuses) < 500
    assert statuses[400] > 10
