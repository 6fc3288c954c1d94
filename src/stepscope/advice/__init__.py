"""The rules, the words of their findings, and `advise`, which runs them."""

from stepscope.advice.advise import advise, worded
from stepscope.advice.finding import Finding, Severity
from stepscope.advice.limit_sets import limits_from, rule_table
from stepscope.advice.messages import Words
from stepscope.advice.registry import RULES, Rule, rule
from stepscope.present import LANGUAGES, Language

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
