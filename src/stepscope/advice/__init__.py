"""The rules, the words of their findings, and `advise`, which runs them."""

from stepscope.advice.advise import advise, worded
from stepscope.advice.finding import Finding, Severity
from stepscope.advice.formatters import LANGUAGES, Language
from stepscope.advice.limit_sets import limits_from, rule_table
from stepscope.advice.messages import Words
from stepscope.advice.registry import RULES, Rule, rule

__all__ = [
    "LANGUAGES",
    "RULES",
    "Finding",
    "Language",
    "Rule",
    "Severity",
    "Words",
    "advise",
    "limits_from",
    "rule",
    "rule_table",
    "worded",
]
