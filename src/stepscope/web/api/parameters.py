"""What a request may choose: parameters that are declared once, for reading them and for the OpenAPI document."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import QueryParams

from stepscope.pages.base import BASE_RANKS, BASE_STEPS, RANKS, STAGE, STEPS, Kind, Option
from stepscope.present import LANGUAGES, listed
from stepscope.web.api.problems import BadRequest, in_words_of_queries

LONGEST_TEXT = 2_000
"""Characters of a text that a client gives, unless less is said."""

MOST_TIMES = 50
"""How often a parameter may be given that may be given several times."""

_INT64 = 1 << 63
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_TYPES: Mapping[Kind, str] = {"integer": "integer", "number": "number", "text": "string", "flag": "boolean"}
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Parameter:
    """Something that a request may choose in its query.

    Args:
        name: Its name.
        kind: What its value is.
        help: What it does, in a sentence or two.
        default: Its value if it is not given.
        minimum, maximum: Bounds of numbers; integers fit into 64 bits in any case.
        longest: Most characters of a text.
        choices: The only texts that it may be.
        pattern: What a text is, as a regular expression, and how to write it, in words.
        joined: A text that may be given several times: what stands between the texts when they become one.
        required: It must be given.
    """

    name: str
    kind: Kind
    help: str
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    longest: int = LONGEST_TEXT
    choices: Sequence[str] = ()
    pattern: tuple[str, str] = ("", "")
    joined: str = ""
    required: bool = False

    def read(self, texts: Sequence[str]) -> Any:
        """The value that a query gives.

        Raises:
            ValueError: If it is not possible; the text says why.
        """
        if not texts:
            if self.required:
                raise ValueError("it must be given")
            return self.default
        if len(texts) > (MOST_TIMES if self.joined else 1):
            raise ValueError(f"it is given {len(texts)} times; give it {'less often' if self.joined else 'once'}")
        values = [self._value(text) for text in texts]
        return self.joined.join(values) if self.joined else values[0]

    def _value(self, text: str) -> Any:
        if self.kind == "text":
            return self._text(text)
        if self.kind == "flag":
            if text.lower() not in _FLAGS:
                raise ValueError("give true or false")
            return _FLAGS[text.lower()]
        return self._number(text)

    def _text(self, text: str) -> str:
        if len(text) > self.longest:
            raise ValueError(f"it has {len(text)} characters; give at most {self.longest}")
        if "\0" in text:
            raise ValueError("it has a character of code 0; leave that out")
        if self.choices and text not in self.choices:
            raise ValueError(f"give {listed(list(self.choices), 'or')}")
        expression, words = self.pattern
        if expression and not re.fullmatch(expression, text):
            raise ValueError(words)
        return text

    def _number(self, text: str) -> float:
        is_whole = self.kind == "integer"
        if not (_INTEGER if is_whole else _NUMBER).fullmatch(text):
            raise ValueError("give a whole number of at most 19 digits" if is_whole else "give a number")
        value: float = int(text) if is_whole else float(text)
        low = -_INT64 if self.minimum is None else self.minimum
        high = _INT64 - 1 if self.maximum is None else self.maximum
        if is_whole and not low <= value <= high:
            raise ValueError(f"give a number from {low} to {high}")
        if not math.isfinite(value) or (self.minimum is not None and value < self.minimum):
            raise ValueError("give a finite number" + ("" if self.minimum is None else f" of at least {low:g}"))
        if self.maximum is not None and value > self.maximum:
            raise ValueError(f"give a number of at most {high:g}")
        return value

    def schema(self) -> dict[str, Any]:
        """The parameter as OpenAPI describes it."""
        value: dict[str, Any] = {"type": _TYPES[self.kind]}
        if self.kind == "integer":
            value |= {"format": "int64", "minimum": int(-_INT64 if self.minimum is None else self.minimum)}
            value["maximum"] = int(_INT64 - 1 if self.maximum is None else self.maximum)
        elif self.kind == "number":
            value |= {} if self.minimum is None else {"minimum": self.minimum}
            value |= {} if self.maximum is None else {"maximum": self.maximum}
        elif self.kind == "text":
            value |= {"enum": list(self.choices)} if self.choices else {"maxLength": self.longest}
            value |= {"pattern": f"^({self.pattern[0]})$"} if self.pattern[0] else {}
        if self.default is not None:
            value["default"] = self.default
        several = {"type": "array", "items": value, "maxItems": MOST_TIMES}
        return {
            "name": self.name,
            "in": "query",
            "description": in_words_of_queries(self.help),
            "required": self.required,
            "schema": several if self.joined else value,
            **({"style": "form", "explode": True} if self.joined else {}),
        }


def read_all(parameters: Iterable[Parameter], query: QueryParams) -> dict[str, Any]:
    """The values of all parameters.

    Raises:
        BadRequest: If one of them is not possible, or the query has others; all of that at once.
    """
    known = {each.name: each for each in parameters}
    wrong: list[dict[str, str]] = []
    values: dict[str, Any] = {}
    for name, each in known.items():
        try:
            values[name] = each.read(query.getlist(name))
        except ValueError as error:
            wrong.append({"parameter": name, "problem": str(error)})
    unknown = [name for name in dict.fromkeys(query.keys()) if name not in known]
    there = f"there are: {', '.join(known)}" if known else "this address takes none"
    wrong += [{"parameter": name[:100], "problem": f"there is no such parameter; {there}"} for name in unknown[:10]]
    if wrong:
        said = ". ".join(f"{each['parameter']}: {each['problem']}" for each in wrong)
        raise BadRequest(said, parameters=wrong)
    return values


def name_of(option: Option) -> str:
    """The name of a page's option in a query: that on the command line, with underscores."""
    return option.on_command_line.removeprefix("--").replace("-", "_")


_PART = "[0-9]{1,10}(-([0-9]{1,10})?)?"
NUMBERS = (f"all|{_PART}(,{_PART}){{0,500}}", "write numbers like 0,3-5 or 7-")
"""A choice of ranks, steps or stages."""

_CHOICES = {option.name for option in (RANKS, STEPS, STAGE, BASE_RANKS, BASE_STEPS)}


def of_option(option: Option) -> Parameter:
    """An option of a page as a parameter."""
    return Parameter(
        name_of(option),
        option.kind,
        option.help,
        option.default if option.kind != "flag" else bool(option.default),
        option.minimum,
        _INT64 - 1 if option.kind == "integer" else None,
        pattern=NUMBERS if option.name in _CHOICES else ("", ""),
        joined=option.joined,
    )


LANGUAGE = Parameter("lang", "text", "Language of titles and sentences: English or Chinese.", "en", choices=LANGUAGES)

INT64 = Parameter(
    "int64",
    "text",
    "How whole numbers beyond 2^53 are written. JavaScript's numbers are not exact there, and moments in ns since 1970 "
    "are about 2^60. `text` writes such numbers as strings, in JSON.",
    "number",
    choices=("number", "text"),
)
