"""Rules that turn results into advice, one a module, and the function that asks them all."""

from stepscope.advice.advise import advise
from stepscope.advice.base import RULES, Finding, Rule, Severity, rule

__all__ = ["RULES", "Finding", "Rule", "Severity", "advise", "rule"]
