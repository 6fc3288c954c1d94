"""Texts with named parameters, in English and Chinese.

In a text, `{name}` is a parameter, and `{name:formatter}` or `{name:formatter words}` is one with a formatter
(`formatters.py`): `{excess_ns:ms}`, `{ranks:Ranks}`, `{ranks:one waits|wait}`. Text in square brackets is left out if
one of its parameters is unknown (None) or empty. Each text has the parameter `per`, the unit of times.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.advice.finding import Per
from stepscope.advice.formatters import FORMATTERS, Language
from stepscope.errors import StepscopeError

_PARTS = re.compile(r"\[([^\]]*)\]|([^\[\]]+)")


@dataclass(frozen=True)
class Text:
    """A text in each language."""

    en: str
    zh: str

    def __add__(self, other: Text) -> Text:
        return Text(self.en + other.en, self.zh + other.zh)

    def of(self, language: Language) -> str:
        """The template in one language."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True)
class Field:
    """A piece of a template: words, and the parameter after them, if any."""

    words: str
    name: str = ""
    formatter: str = ""
    argument: str = ""


@dataclass(frozen=True)
class Part:
    """Fields that are kept or left out together."""

    fields: tuple[Field, ...]
    optional: bool


@functools.cache
def parts_of(template: str) -> tuple[Part, ...]:
    """A template split at its square brackets."""
    return tuple(Part(tuple(_fields(inside or outside)), bool(inside)) for inside, outside in _PARTS.findall(template))


def _fields(text: str) -> list[Field]:
    found = []
    for words, name, spec, _ in string.Formatter().parse(text):
        formatter, _, argument = (spec or "").partition(" ")
        found.append(Field(words, name or "", formatter, argument))
    return found


def fields_of(template: str) -> list[Field]:
    """The parameters of a template, with repetitions."""
    return [field for part in parts_of(template) for field in part.fields if field.name]


def fill(text: Text, parameters: Mapping[str, Any], language: Language = "en", per: Per = "step") -> str:
    """The text in one language with its parameters.

    Examples:
        >>> text = Text("Rank {rank} waits {wait_ns:ms}[ for {loader}].", "")
        >>> fill(text, {"rank": 2, "wait_ns": 62_000_000, "loader": None})
        'Rank 2 waits 62.0 ms.'

    Raises:
        StepscopeError: If a parameter is missing, or a formatter is unknown.
    """
    known = {"per": per, **parameters}
    for field in fields_of(text.of(language)):
        if field.name not in known or field.formatter not in ("", *FORMATTERS):
            problem = "the parameter is not given" if field.name not in known else "there is no such formatter"
            raise StepscopeError(f"the text {text.of(language)!r}: {field.name}:{field.formatter}: {problem}")
    shown = (
        part
        for part in parts_of(text.of(language))
        if not (part.optional and any(_is_unknown(known[field.name]) for field in part.fields if field.name))
    )
    return "".join(_written(field, known, language, per) for part in shown for field in part.fields)


def _is_unknown(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, (list, dict)) and not value)


def _written(field: Field, parameters: Mapping[str, Any], language: Language, per: Per) -> str:
    if not field.name:
        return field.words
    value = parameters[field.name]
    if not field.formatter:
        return f"{field.words}{value}"
    return field.words + FORMATTERS[field.formatter](value, field.argument, language, per)
