"""A text of a message with placeholders for its parameters, for those who read about a rule without a finding."""

from __future__ import annotations

import re

from stepscope.advice.finding import Per
from stepscope.advice.formatters import FORMATTERS
from stepscope.advice.messages import FIELD, Text
from stepscope.present import Language
from stepscope.references import as_typed

STEP: Per = "step"

_UNITS = ("noun", "nouns", "each", "time")
"""Formatters whose text depends on the unit of times only."""

_FORMS: dict[Language, dict[str, str]] = {
    "en": {
        "Ranks": "Rank(s) {}",
        "ranks": "rank(s) {}",
        "steps": "step(s) {}",
        "when": "in step(s) {}",
        "windows": "{} steps",
        "whole": "a step of {}",
    },
    "zh": {
        "Ranks": "rank {}",
        "ranks": "rank {}",
        "steps": "第 {} 步",
        "when": "在第 {} 步",
        "windows": "{} 步",
        "whole": "每步 {}",
    },
}
"""What formatters add to a value."""


def shown(text: Text, language: Language = "en") -> str:
    """A text with each parameter as `{its name}`; what stands in square brackets is only said if it is known.

    Examples:
        >>> shown(Text("{ranks:Ranks} {ranks:one waits|wait} {mean_wait_ns:ms} {per:each}[ for {loader}]."))
        'Rank(s) {ranks} waits/wait {mean wait} per step[ for {loader}].'
    """
    template = text.of(language) or text.en
    known: Language = language if text.of(language) else "en"

    def placeholder(found: re.Match[str]) -> str:
        name, formatter, argument = found.groups("")
        return _placeholder(name, formatter, argument, known)

    return as_typed(FIELD.sub(placeholder, template))


def _placeholder(name: str, formatter: str, argument: str, language: Language) -> str:
    if formatter in _UNITS:
        return FORMATTERS[formatter](None, argument, language, STEP)
    words = [word for word in argument.split("|") if word.strip()]
    if formatter == "one":
        return "/".join(dict.fromkeys(words))
    value = "{" + _plain(name) + "}"
    if formatter == "count":
        return f"{value} {words[-1]}" if words else value
    return _FORMS[language].get(formatter, "{}").replace("{}", value)


def _plain(name: str) -> str:
    """The name of a parameter without the unit of its value, which its formatter writes."""
    for unit in ("_ns", "_bytes"):
        name = name.removesuffix(unit)
    return name.replace("_", " ")
