"""A run's answers as JSON; `docs/json.md` and `analysis.schema.json` describe it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from stepscope._version import __version__
from stepscope.advice import Language
from stepscope.pages.answering import notes_of, plain_rows
from stepscope.pages.job import PAGE
from stepscope.paths import shown
from stepscope.references import as_typed
from stepscope.report.findings import plain_finding
from stepscope.report.verdict import verdict

if TYPE_CHECKING:
    import polars as pl

    from stepscope.advice import Finding
    from stepscope.advice.daily import Prices
    from stepscope.report.answers import Answers
    from stepscope.run import Run

SCHEMA_VERSION = 1
"""Raised when a key is removed or changes its meaning; new keys do not raise it."""

TOP = 50
"""Rows of the kernel and operator tables, of each rank, that go into the JSON."""


def to_json(run: Run, answers: Answers, language: Language = "en", prices: Prices | None = None) -> bytes:
    """The whole document, UTF-8; times are `*_ns`, sizes `*_bytes`, shares `*_ratio`, texts in one language."""
    return msgspec.json.format(msgspec.json.encode(document(run, answers, language, prices)), indent=1)


def document(run: Run, answers: Answers, language: Language = "en", prices: Prices | None = None) -> dict[str, Any]:
    """The document as plain data."""
    facts = run.table("ranks").collect().sort("rank")
    return {
        "schema_version": SCHEMA_VERSION,
        "stepscope_version": __version__,
        "language": language,
        "run": {
            "name": run.name,
            "path": shown(run.path),
            "formats": sorted(set(facts["format"].drop_nulls())),
            "frameworks": sorted(set(facts["framework"].drop_nulls())),
            "devices": sorted(set(facts["device_kind"].drop_nulls())),
            "ranks": facts.height,
            "world_size": facts["world_size"].max(),
            "start_ns": facts["start_ns"].min(),
            "end_ns": facts["end_ns"].max(),
            "others": [shown(other.path) for other in run.others],
        },
        "ranks": facts.to_dicts(),
        **{section.key: _rows(section.question, answers.tables.get(section.question)) for section in PAGE.sections},
        "verdict": verdict(answers, language),
        "findings": plain_findings(answers, language, prices),
        "notes": _notes(answers),
        "issues": run.issues.to_dicts(),
        "unread": [{"file": shown(u.file), "problem": u.problem, "remedy": u.remedy} for u in run.unread],
        "warnings": run.warnings,
        "unavailable": answers.unavailable,
    }


def plain_findings(answers: Answers, language: Language = "en", prices: Prices | None = None) -> list[dict[str, Any]]:
    """All findings, each with its place in a trace file."""
    return [_finding(finding, answers, language, prices) for finding in answers.findings]


def _finding(finding: Finding, answers: Answers, language: Language, prices: Prices | None) -> dict[str, Any]:
    """A finding with its place in a trace file."""
    place = answers.timelines.at(finding)
    return {**plain_finding(finding, language, prices), "timeline": None if place is None else place.plain()}


def _notes(answers: Answers) -> list[str]:
    """What the tables rest on and cannot know."""
    if answers.page is None:
        return []
    page = answers.page
    notes = [note for section, answer in page.found for note in notes_of(page.run, section, answer)]
    return [as_typed(note) for note in dict.fromkeys(notes)]


def _rows(name: str, table: pl.DataFrame | None) -> list[dict[str, Any]]:
    """Rows of a result; of long per-rank tables the first `TOP` of each rank."""
    if table is None:
        return []
    if name in ("kernel_totals", "operator_summary"):
        table = table.group_by("rank", maintain_order=True).head(TOP)
    return plain_rows(table)
