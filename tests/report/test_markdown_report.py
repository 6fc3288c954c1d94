"""The summary for a pull request."""

from __future__ import annotations

from stepscope.report.markdown import in_html
from stepscope.report.markdown_report import to_markdown
from stepscope.report.targets import MARK
from tests.report.reports import first_problem, report_of, slow_run


def test_the_summary_has_verdict_problems_and_times() -> None:
    text = to_markdown(report_of(slow_run()))

    assert text.startswith(f"<!-- {MARK} -->\n## Performance report: frames\n")
    assert "| 1 | 🔴 High priority | Overall | Rank 2 computes slowly" in text
    assert "- **What to do**: " in text
    assert "### Time by rank" in text


def test_inside_elements_there_is_no_markdown() -> None:
    assert in_html("a_b <i> @me") == "a_b &lt;i&gt; @\u200bme"


def test_hostile_code_lines_stay_texts() -> None:
    text = to_markdown(first_problem(report_of(slow_run()), code=("<img src=x>",)))

    assert "<img" not in text
