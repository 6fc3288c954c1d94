"""Decoding a chunk that is not clean JSON: event by event, so that only broken events are lost."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stepscope.sources.trace_events.base import Problem

BROKEN = "not valid JSON"
WRONG = "a value of the wrong type"
TOO_DEEP = "nested too deeply"
CUT_OFF = "cut off where the file ends"
BETWEEN = "text between events"
"""Not an event that is lost, but a comment, a log line or a stray bracket."""
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

EVENT_KEYS = rb"ph|name|cat|pid|tid|ts|dur|args|id|s|bp"
_KEY = re.compile(rb"\"(?:" + EVENT_KEYS + rb")\"\s*:")
BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{\s*\"(?:" + EVENT_KEYS + rb")\"\s*:)")
"""The text between two events. It also occurs between other objects, so a cut there must be checked."""

TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
"""A string or a bracket."""
_DIRT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|nan|Infinity|Inf|inf)\b|,(?=\s*[}\]])', re.DOTALL)
_SPECIAL = re.compile(
    rb"[\x00-\x1f]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
    rb'|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})?'
)
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]..", re.DOTALL)
_SPACE = re.compile(rb"\s*")
_SCAN_BYTES = 1 << 20


@dataclass
class Salvaged:
    """The events of a damaged chunk; `ended` and `rest` as in `decode.Decoded`."""

    events: list[Any] = field(default_factory=list)
    problems: dict[str, Problem] = field(default_factory=dict)
    ended: bool = False
    rest: bytes = b""


def salvage(text: bytes, decode: Callable[[bytes], Any], *, last: bool, offset: int) -> Salvaged:
    """Decode a chunk event by event. `offset` is where `text` begins in the file, to report places.

    An object that starts where an event starts and is valid JSON up to a boundary is that event, whatever it
    contains. Only when that fails is the end searched by counting brackets, and only when that fails too is the event
    given up and reading goes on at the next boundary.
    """
    out = Salvaged()
    cuts = [(m.start() + 1, m.end()) for m in BOUNDARY.finditer(text)]
    cuts.append((len(text), len(text)))
    budget = 4 * len(text)  # hostile text must not make the scan quadratic
    position, cut = _skip_space(text, 0), 0
    while position < len(text):
        while cuts[cut][1] <= position:
            cut += 1
        stop, following = cuts[cut]
        final = cut == len(cuts) - 1
        if text[position] == 0x5D:  # ]
            out.ended, out.rest = True, text[position + 1 :]
            return out
        event, _ = _try(decode, text[position:stop])
        if event is not None:
            out.events.append(event)
            position = following
            continue
        if text[position] != 0x7B:  # not an object: a log line, or the inside of a broken event
            brace = text.find(b"{", position, stop)
            resume = brace if brace >= 0 else following
            _lost(out, offset + position, BROKEN if _KEY.search(text, position, resume) else BETWEEN)
            position = resume
            continue
        limit = len(text) if final else max(stop, min(len(text), position + min(_SCAN_BYTES, budget)))
        end = object_end(text, position, limit)
        budget = max(0, budget - ((end or limit) - position))
        if end is None and final:
            if last:
                out.problems[CUT_OFF] = Problem(1, f"byte {offset + position}")
            else:
                out.rest = text[position:]
            return out
        error = None
        if end is not None:
            event, error = _try(decode, cleaned(text[position:end]))
            if event is not None:
                out.events.append(event)
                position = _after(text, end)
                continue
        _lost(out, offset + position, BROKEN, error)
        # if brackets or quotes do not match, an end after the next boundary is not to be trusted
        position = _after(text, end) if end is not None and end <= stop else following
    return out


def _after(text: bytes, end: int) -> int:
    """Where the next event (or the bracket) should start, after an event that ends at `end`."""
    position = _skip_space(text, end)
    return _skip_space(text, position + 1) if text[position : position + 1] == b"," else position


def _lost(out: Salvaged, position: int, problem: str, error: Exception | None = None) -> None:
    place = f"byte {position}"
    if isinstance(error, msgspec.ValidationError):  # valid JSON, but not an event
        problem, place = WRONG, f"{place}: {error}"
    elif isinstance(error, RecursionError):
        problem = TOO_DEEP
    out.problems.setdefault(problem, Problem(place=place)).count += 1


def _try(decode: Callable[[bytes], Any], text: bytes) -> tuple[Any, Exception | None]:
    """The decoded event, or why there is none."""
    try:
        return decode(text), None
    except DECODE_ERRORS as error:
        return None, error


def _skip_space(text: bytes, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def object_end(text: bytes, start: int, limit: int) -> int | None:
    """Position after the object or array that starts at `start`; None if it is not closed before `limit`."""
    depth = 0
    for match in TOKEN.finditer(text, start, limit):
        token = text[match.start()]
        if token in b"{[":
            depth += 1
        elif token in b"}]":
            depth -= 1
            if depth <= 0:
                return match.end()
    return None


def cleaned(text: bytes, not_a_number: bytes = b"null") -> bytes:
    """JSON text with the usual dirt of hand-written writers repaired.

    NaN and infinities become `not_a_number`, trailing commas go, raw control characters and bad escapes in strings are
    escaped, bytes that are not UTF-8 and halves of surrogate pairs become the replacement character.
    """

    def clean(match: re.Match[bytes]) -> bytes:
        token = match[0]
        if token.startswith(b'"'):
            return _SPECIAL.sub(_clean_character, token)
        return b"" if token == b"," else not_a_number

    return _DIRT.sub(clean, text.decode("utf-8", "replace").encode())


def _clean_character(match: re.Match[bytes]) -> bytes:
    found = match[0]
    if found == b"\\":
        return b"\\\\"
    if _HALF_PAIR.fullmatch(found):
        return rb"\ufffd"
    return found if found.startswith(b"\\") else b"\\u%04x" % found[0]
