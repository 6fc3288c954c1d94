"""What this server is: version, state, rules and their limits."""

from __future__ import annotations

from dataclasses import asdict

from starlette.responses import Response

from stepscope._version import __version__
from stepscope.advice.explained import explained
from stepscope.advice.limit_sets import rule_table
from stepscope.advice.registry import RULES
from stepscope.web.api.calls import JSON, Call, Operation
from stepscope.web.api.parameters import LANGUAGE
from stepscope.web.api.problems import ApiProblem
from stepscope.web.catalogue.entry import STATES

API_VERSION = 1
"""Raised, with the prefix, when something is removed or changes its meaning; what is added does not raise it."""


async def _version(call: Call) -> Response:
    return await call.kept([], lambda: {"stepscope": __version__, "api": API_VERSION})


async def _health(call: Call) -> Response:
    states = [entry.state for entry in call.service.catalogue.entries()]
    said = {"status": "ok", "runs": {state: states.count(state) for state in STATES}}
    return call.sent(call.encoded(said), JSON, Cache_Control="no-store")


async def _rules(call: Call) -> Response:
    return await call.kept([call.service.started], lambda: {"rules": rule_table()})


async def _rule(call: Call) -> Response:
    name = call.place["rule"]
    if name not in RULES:
        raise ApiProblem("unknown-page", f"there is no rule {name}. There are: {', '.join(sorted(RULES))}")
    return await call.kept([call.service.started], lambda: asdict(explained(name, call.language)))


OPERATIONS = (
    Operation(
        "show_version", "/version", "Show the versions of stepscope and of this API.", _version, subject="Server"
    ),
    Operation(
        "show_health",
        "/health",
        "Show that the server answers, and how many runs are in which state.",
        _health,
        subject="Server",
    ),
    Operation(
        "list_rules",
        "/rules",
        "List the rules with their limits, units and sources, as `stepscope rules --json` does.",
        _rules,
        subject="Server",
    ),
    Operation(
        "explain_rule",
        "/rules/{rule}",
        "Show what a rule does, needs, decides by, and says.",
        _rule,
        (LANGUAGE,),
        names={"rule": sorted(RULES)},
        subject="Server",
    ),
)
