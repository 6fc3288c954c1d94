"""What matters about a run: facts, verdict, findings with their evidence, and what could not be read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from stepscope.advice.finding import SEVERITIES
from stepscope.report.answers import answers
from stepscope.report.contents import Contents
from stepscope.report.findings import plain_finding
from stepscope.report.json_report import plain_findings
from stepscope.report.problems import Problem
from stepscope.report.unread import Trouble, Unread
from stepscope.web.api.calls import JSON, Call, Operation
from stepscope.web.api.content import described_table
from stepscope.web.api.parameters import INT64, LANGUAGE, Parameter


async def _overview(call: Call) -> Response:
    entry = call.entry()
    tag = call.tag(entry.stamp, JSON)
    if (same := call.unchanged(tag)) is not None:
        return same
    found = await call.service.asking.overview(call.run, call.language)
    question = call.question(entry.stamp, JSON)
    body = await call.asked(question, lambda: call.encoded(_plain(found)))
    return call.sent(body, JSON, tag=tag)


def _plain(found: Contents) -> dict[str, Any]:
    return {
        "title": found.title,
        "language": found.language,
        "start_ns": found.facts.start_ns,
        "facts": [{"name": fact.name, "text": fact.text} for fact in found.facts.facts],
        "shares": [asdict(share) for share in found.facts.shares],
        "verdict": list(found.verdict),
        "alert": found.alert,
        "counts": dict(found.counts),
        "problems": [_problem(problem, found) for problem in found.problems],
        "unread": _unread(found.unread),
        "missing": list(found.missing_data),
    }


def _problem(problem: Problem, found: Contents) -> dict[str, Any]:
    return {
        "number": problem.number,
        "category": problem.category,
        "priority": problem.priority,
        "computed": problem.computed,
        "finding": plain_finding(problem.finding, found.language),
        "places": [{"name": place.name, "text": place.text} for place in problem.places],
        "evidence": [
            {
                "key": item.key,
                "question": item.question,
                "heading": item.heading,
                "tables": [described_table(table) for table in item.tables],
                "notes": list(item.notes),
            }
            for item in problem.evidence
        ],
        **{name: list(getattr(problem, name)) for name in ("effects", "roots", "parts", "wholes", "counted_in")},
        "saves": problem.saves,
        "costs": problem.costs,
    }


def _unread(found: Unread) -> dict[str, Any]:
    return {
        "unread": [_trouble(one) for one in found.unread],
        "issues": [_trouble(one) for one in found.issues],
        "warnings": list(found.warnings),
    }


def _trouble(one: Trouble) -> dict[str, Any]:
    return asdict(one)


async def _findings(call: Call) -> Response:
    entry, catalogue = call.entry(), call.service.catalogue
    severity, rule, rank = (call.values[name] for name in ("severity", "rule", "rank"))

    def compute() -> dict[str, Any]:
        run = catalogue.open(entry.id)
        everything = plain_findings(answers(run), call.language)
        found = [
            one
            for one in everything
            if severity in (None, one["severity"]) and rule in (None, one["rule"]) and _is_on(one["where"], rank)
        ]
        return {"total": len(everything), "found": len(found), "findings": found}

    return await call.kept([entry.stamp], compute)


def _is_on(where: dict[str, Any], rank: int | None) -> bool:
    """Whether a finding is about a rank, or about all."""
    ranks = [where["rank"]] if "rank" in where else where.get("ranks")
    return rank is None or not ranks or rank in ranks


OPERATIONS = (
    Operation(
        "show_overview",
        "/runs/{run}/overview",
        "Show what matters about a run: facts, verdict, findings with evidence, and what could not be read.",
        _overview,
        (LANGUAGE, INT64),
        returns={JSON: {"$ref": "#/components/schemas/Overview"}},
    ),
    Operation(
        "list_findings",
        "/runs/{run}/findings",
        "List the findings of a run, greatest saving first, as `stepscope analyze --json` has them.",
        _findings,
        (
            Parameter("severity", "text", "Only findings of this severity.", choices=SEVERITIES),
            Parameter("rule", "text", "Only findings of this rule.", longest=100),
            Parameter("rank", "integer", "Only findings about this rank, or about all.", minimum=0, maximum=1 << 31),
            LANGUAGE,
            INT64,
        ),
        returns={JSON: {"$ref": "#/components/schemas/Findings"}},
    ),
)
