"""Findings as rows, for spreadsheets and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from stepscope.advice import Language, worded
from stepscope.advice.daily import daily, daily_words
from stepscope.advice.formatters import FORMATTERS
from stepscope.advice.messages import Text, fill
from stepscope.present import duration

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.advice.daily import Prices
    from stepscope.advice.finding import Related

WORDS = ("summary", "cause", "action", "saving_basis")
"""What is put into words in one language."""

SAVINGS = ("saving_ns", "saving_low_ns", "saving_high_ns", "saving_ratio")

CAUSE, ACTION = Text("Why: {cause}", "原因：{cause}"), Text("Fix: {action}", "措施：{action}")
SAVING = Text("{saving}[; {daily}]; severity: {severity}", "{saving}[；{daily}]；严重程度：{severity}")
BECAUSE = Text("Because of {roots}: {summary}", "由 {roots} 引起：{summary}")
"""A finding that follows from others, below the first of these."""
PART = Text("Part of {roots}: {summary}", "属于 {roots}：{summary}")
"""A finding whose time others claim, below the first of these."""
PLACE = Text(
    "At: {code}[ (and {more} more)][; operators: {operators:list}]",
    "位置：{code}[（另有 {more} 处）][；算子：{operators:list}]",
)
OPERATORS = Text("At: operators {operators:list}", "位置：算子 {operators:list}")
WHEN = Text("When: {range}", "时间：{range}")
RANGE = Text("{start} to {end} after the start of the recording", "记录开始后 {start} 至 {end}")
SLACK_NS = 1_000_000_000
"""What begins this long before the recording does is on another clock: more than clocks of hosts differ by."""
NAMED = 3
"""Operators that are named."""

ALSO = Text("Also (causes and fixes: --json):", "其他（原因和措施见 --json）：")
SEVERITIES_ZH = {"high": "高", "medium": "中", "low": "低"}

COLUMNS = {
    **dict.fromkeys(("rule", "severity", "summary", "cause", "action"), pl.String()),
    **dict.fromkeys(("saving_ns", "saving_low_ns", "saving_high_ns"), pl.Int64()),
    "saving_basis": pl.String(),
    "saving_ratio": pl.Float64(),
    "cost_ns": pl.Int64(),
    "cost_ratio": pl.Float64(),
    "per": pl.String(),
    "where": pl.String(),
}


def finding_lines(
    finding: Finding, language: Language = "en", prices: Prices | None = None
) -> tuple[str, str, str, str]:
    """A finding in four lines: summary, cause, action, and saving (of a day, too, with prices) with severity."""
    words = worded(finding, language)
    saved = daily(finding, prices)
    severity = SEVERITIES_ZH[finding.severity] if language == "zh" else finding.severity
    known = {**vars(words), "severity": severity, "daily": None if saved is None else daily_words(saved, language)}
    return words.summary, fill(CAUSE, known, language), fill(ACTION, known, language), fill(SAVING, known, language)


def related_words(related: Sequence[Related], language: Language = "en") -> str:
    """Other findings as a text names them: `host-queue (rank 3) and cpu-busy`."""
    named = [
        fill(_RANKED, {"rule": one.rule, "ranks": list(one.ranks)}, language) if one.ranks else one.rule
        for one in related
    ]
    return FORMATTERS["list"](named, "", language, "step")


def because_line(finding: Finding, language: Language = "en") -> str:
    """The summary of a finding with what it follows from."""
    roots = related_words(finding.explained_by, language)
    is_part = any(root.how == "part" for root in finding.explained_by)
    return fill(PART if is_part else BECAUSE, {"roots": roots, "summary": worded(finding, language).summary}, language)


def place_line(finding: Finding, language: Language = "en", room: int | None = None) -> str:
    """The line of code, and the operators that its summary does not name; empty if neither is known.

    Args:
        finding: The finding.
        language: The language of the words.
        room: Width of a line. What is longer is cut in the directories of the file, never at its name or line.
    """
    summary = worded(finding, language).summary
    operators = [name for name in map(str, finding.where.get("operators") or ()) if name not in summary][:NAMED]
    if not finding.code:
        return fill(OPERATORS, {"operators": operators}, language) if operators else ""
    first, *others = finding.code
    known = {"more": len(others) or None, "operators": operators}
    whole = fill(PLACE, {"code": first, **known}, language)
    if room is None or len(whole) <= room:
        return whole
    bare = fill(PLACE, {"code": "", **known}, language)
    return fill(PLACE, {"code": shortened_code(first, room - len(bare)), **known}, language)


def time_range(finding: Finding, start_ns: int | None, language: Language = "en") -> str:
    """When a finding costs most, counted from the start of the recording; empty if it has no place in time."""
    if finding.span_ns is None or start_ns is None or finding.span_ns[0] < start_ns - SLACK_NS:
        return ""
    start, end = (duration(moment - start_ns) for moment in finding.span_ns)
    return fill(RANGE, {"start": start, "end": end}, language)


def when_line(finding: Finding, start_ns: int | None, language: Language = "en") -> str:
    """The line that says when a finding costs most; empty if it has no place in time."""
    told = time_range(finding, start_ns, language)
    return fill(WHEN, {"range": told}, language) if told else ""


def shortened_code(code: str, room: int) -> str:
    """A line of code (`directory/train.py(12): step`) without as many of its first directories as do not fit.

    Examples:
        >>> shortened_code("/home/user/project/src/train.py(12): step", 30)
        '.../src/train.py(12): step'
        >>> shortened_code("train.py(12): step", 5)
        'train.py(12): step'
    """
    path, bracket, rest = code.partition("(")
    parts = path.split("/")
    kept, cut = path, 0
    while len(kept + bracket + rest) > room and cut < len(parts) - 1:
        cut += 1
        kept = "/".join(["...", *parts[cut:]])
    return kept + bracket + rest


_RANKED = Text("{rule}[ ({ranks:ranks})]", "{rule}[（{ranks:ranks}）]")


def finding_rows(findings: Sequence[Finding], language: Language = "en") -> pl.DataFrame:
    """One row a finding, in their order, with the columns of `COLUMNS`; what it is about (`where`) as JSON."""
    rows = [plain_finding(finding, language) for finding in findings]
    texts = [{**row, "where": json.dumps(row["where"], default=str)} for row in rows]
    return pl.DataFrame([[row[name] for name in COLUMNS] for row in texts], schema=COLUMNS, orient="row")


def plain_finding(finding: Finding, language: Language = "en", prices: Prices | None = None) -> dict[str, Any]:
    """A finding with its words, and with the severity that its saving, or what else it threatens, gives it.

    `daily` is what it saves in a day, None without prices or if that is unknown.
    A saving of 0 is unknown, thus None, unless other findings claim it, or a replay shows that nothing is saved. So is
    one that no replay shows: that time is what the problem costs (`cost_ns`, `cost_ratio`; else None).
    """
    words = worded(finding, language)
    plain = {**asdict(finding), "severity": finding.severity, **{name: getattr(words, name) for name in WORDS}}
    del plain["least"], plain["most"]  # they are in the severity
    saved = daily(finding, prices)
    plain["daily"] = None if saved is None else asdict(saved)
    costs = finding.saving_ns > 0 and not finding.replayed
    plain["cost_ns"], plain["cost_ratio"] = (finding.saving_ns, finding.saving_ratio) if costs else (None, None)
    if costs or (finding.saving_ns <= 0 and not {"claimed_by", "replayed_ns"} & {*finding.evidence}):
        plain.update(dict.fromkeys(SAVINGS))
    return plain
