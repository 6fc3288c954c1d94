"""Rules that turn results into advice, one a module, and the function that asks them all."""

from stepscope.advice.advise import advise
from stepscope.advice.base import RULES, Finding, Rule, Severity, rule
from stepscope.advice.limit_sets import limits_from, rule_table

__all__ = ["RULES", "Finding", "Rule", "Severity", "advise", "limits_from", "rule", "rule_table"]
