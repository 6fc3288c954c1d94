"""The summary for a pull request."""

from __future__ import annotations

import re
from dataclasses import replace

from stepscope.report.markdown import in_html
from stepscope.report.markdown_report import to_markdown
from stepscope.report.targets import MARK
from tests.report.reports import costly, first_problem, report_of, slow_run


def test_the_summary_has_verdict_problems_and_times() -> None:
    text = to_markdown(report_of(slow_run()))

    assert text.startswith(f"<!-- {MARK} -->\n## Performance report: frames\n")
    assert "| 1 | 🔴 High priority | Overall | Rank 2 computes slowly" in text
    assert "- **What to do**: " in text
    assert "### Time by rank" in text


def test_a_cost_is_told_beside_the_savings_and_not_as_one() -> None:
    found = report_of(slow_run())
    assert "| Share |\n" in to_markdown(found)

    text = to_markdown(costly(found))

    lines = [line.split(" | ") for line in text.splitlines() if line.startswith(("| # |", "| 1 |"))]
    head, row = lines[:2]
    assert head[-3:] == ["Saving", "Share", "Costs |"]
    assert row[-3:-1] == ["-", "-"]
    assert re.fullmatch(r"\d+\.\d+ ms \(\d+\.\d%\) \|", row[-1])


def test_a_saving_that_is_counted_elsewhere_names_the_problem() -> None:
    found = report_of(slow_run())
    first = found.problems[0]
    part = replace(first, number=2, finding=replace(first.finding, saving_ns=0), counted_in=[1])

    row = to_markdown(replace(found, problems=[first, part])).partition("\n| 2 |")[2].splitlines()[0]

    assert row.split(" | ")[-2:] == ["in \\#\u200b1", "- |"]


def test_inside_elements_there_is_no_markdown() -> None:
    assert in_html("a_b <i> @me") == "a_b &lt;i&gt; @\u200bme"


def test_hostile_code_lines_stay_texts() -> None:
    text = to_markdown(first_problem(report_of(slow_run()), code=("<img src=x>",)))

    assert "<img" not in text
