"""Printing a page in a terminal."""

from __future__ import annotations

from stepscope.cli.output import Output
from stepscope.cli.warning_lines import show_warnings
from stepscope.pages.answering import Answered
from stepscope.pages.showing import shown_sections
from stepscope.report.counting import counted
from stepscope.report.sentences import spoken


def print_tables(answered: Answered, *, wide: bool) -> None:
    """Every table with its heading and units, then why others are missing and what could not be read."""
    out = Output(wide=wide)
    if marked_as := counted(answered.run):
        out.say(spoken(marked_as))
        out.say("")
    for section in shown_sections(answered, every_column=wide):
        for table in section.tables:
            out.table(table)
            out.say("")
        for sentence in section.sentences:
            out.say(sentence)
        if section.sentences:
            out.say("")
    reasons: dict[str, list[str]] = {}
    for question, reason in answered.unavailable.items():
        reasons.setdefault(reason, []).append(question)
    for reason, questions in reasons.items():
        out.say(f"{', '.join(questions)}: {reason}", "dim", indent=2)
    show_warnings(out, answered.run)
