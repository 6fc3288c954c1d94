"""Formatters for the parameters of texts, in English and Chinese."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stepscope.advice.finding import Per
from stepscope.present import Language, duration, listed, size
from stepscope.selection import describe_numbers

Formatter = Callable[[Any, str, Language, Per], str]
"""Formats a value, given the words after the formatter's name, the language and the unit of times (`per`)."""

NOUNS: Mapping[Language, Mapping[Per, str]] = {
    "en": {"step": "step", "iteration": "iteration", "recording": "recording", "batch": "batch"},
    "zh": {"step": "步", "iteration": "次迭代", "recording": "段记录", "batch": "批"},
}
EACH: Mapping[Language, Mapping[Per, str]] = {
    "en": {"step": "per step", "iteration": "per iteration", "recording": "in the recording", "batch": "per batch"},
    "zh": {"step": "每步", "iteration": "每次迭代", "recording": "整段记录中", "batch": "每批"},
}
""""Each" for the unit of times."""

TIME: Mapping[Language, Mapping[Per, str]] = {
    "en": {"step": "step time", "iteration": "iteration time", "recording": "the recording", "batch": "batch time"},
    "zh": {"step": "步时间", "iteration": "迭代时间", "recording": "整段记录", "batch": "批次间隔"},
}
"""What a share refers to."""

STAGES_ZH = {"data processing": "数据处理", "data transmission": "数据传输", "data obtaining": "数据获取"}
"""Stages of the input (`input_stages`)."""

NAMED = 6
"""Up to this number, steps are listed; above it, they are counted."""


def ms(ns: float) -> str:
    """A duration in a sentence: as `duration`, but with three digits from 1 ms on.

    Examples:
        >>> ms(0), ms(50_000), ms(12_340_000), ms(540e6), ms(1.5e9)
        ('0 us', '50.0 us', '12.3 ms', '540 ms', '1.50 s')
    """
    value = ns / 1e6
    if abs(value) >= 999.5:
        return f"{value / 1e3:.2f} s"
    if abs(value) < 0.99995:
        return duration(ns)
    return f"{value:.{0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2}f} ms"


def ordinal(number: int) -> str:
    """An ordinal number.

    Examples:
        >>> [ordinal(number) for number in (2, 3, 4, 11, 21)]
        ['2nd', '3rd', '4th', '11th', '21st']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def _of_ranks(value: int | Sequence[int], _: str, language: Language, __: Per) -> str:
    """E.g. `rank 3`, `ranks 0-2,5`."""
    numbers = sorted({value} if isinstance(value, int) else set(value))
    return f"rank{'s' if len(numbers) > 1 and language == 'en' else ''} {describe_numbers(numbers)}"


def _at_the_start(value: int | Sequence[int], words: str, language: Language, per: Per) -> str:
    """The same at the start of a sentence."""
    text = _of_ranks(value, words, language, per)
    return text.capitalize() if language == "en" else text


def _one(value: Any, words: str, _: Language, __: Per) -> str:
    """The first word if it is one, the next if they are two..., else the last: `{ranks:one waits|wait}`."""
    choices = words.split("|")
    return choices[min(len(value) if isinstance(value, list) else value, len(choices)) - 1]


def _windows(value: int, _: str, language: Language, per: Per) -> str:
    """A number of steps (or iterations, batches...): `3 steps`."""
    return f"{value} {NOUNS[language][per]}{_plural(value, language, per)}"


def _plural(count: int, language: Language, per: Per) -> str:
    return "" if count == 1 or language != "en" else "es" if per == "batch" else "s"


def _steps(value: Sequence[int], _: str, language: Language, per: Per) -> str:
    """Which steps: `step 3`, `steps 3-5,9`."""
    noun, numbers = NOUNS[language][per], describe_numbers(value)
    return f"第 {numbers} {noun}" if language == "zh" else f"{noun}{_plural(len(value), language, per)} {numbers}"


def _when(value: Mapping[str, Any], _: str, language: Language, per: Per) -> str:
    """In which steps something occurs (`occurrence`): `in every 4th step`, `in step 21`, `in 7 of 40 steps`."""
    noun, steps = NOUNS[language][per], value["steps"]
    if value["period"] is not None:
        return f"in every {ordinal(value['period'])} {noun}" if language == "en" else f"每 {value['period']} {noun}"
    if len(steps) <= NAMED:
        named = _steps(steps, "", language, per)
        return f"in {named}" if language == "en" else f"在{named}"
    every = _windows(value["of"], "", language, per)
    return f"in {len(steps)} of {every}" if language == "en" else f"在 {every}中的 {len(steps)} {noun}"


def _whole(value: float, _: str, language: Language, per: Per) -> str:
    """The whole to which a time belongs: `a 20.0 ms step`, `the 20.0 ms recording`."""
    if language == "zh":
        return f"{'整段记录' if per == 'recording' else EACH['zh'][per]} {ms(value)}"
    return f"{'the' if per == 'recording' else 'a'} {ms(value)} {per}"


def _function(one: Mapping[str, Any], language: Language) -> str:
    """A function with its time: `time.sleep for 540 ms (called by write_log, log.py:26)`."""
    where = "" if one["line"] is None else f"{one['file']}:{one['line']}"
    if one["called_by"]:
        by = "called by " if language == "en" else "调用者 "
        where = f"{by}{one['called_by']}, {where}" if where else f"{by}{one['called_by']}"
    name = one["name"] or ("a C++ function" if language == "en" else "某个 C++ 函数")
    spent = f"{name} for {ms(one['idle_ns'])}" if language == "en" else f"{name} {ms(one['idle_ns'])}"
    if not where:
        return spent
    return f"{spent} ({where})" if language == "en" else f"{spent}（{where}）"


def _list(value: Sequence[str], words: str, language: Language, _: Per) -> str:
    """Names as a sentence lists them: `a, b and c`."""
    if language == "zh":
        return " 和 ".join(["、".join(value[:-1]), value[-1]]) if len(value) > 1 else "".join(value)
    return listed(list(value), words or "and")


FORMATTERS: dict[str, Formatter] = {
    "ms": lambda value, *_: ms(value),
    "duration": lambda value, *_: duration(value),
    "percent": lambda value, *_: f"{value:.0%}",
    "size": lambda value, *_: size(value),
    "number": lambda value, digits, *_: format(value, digits),
    "giga": lambda value, *_: f"{value / 1e9:.1f}",
    "names": lambda value, separator, *_: (separator or ", ").join(value),
    "list": _list,
    "stage": lambda value, _, language, __: STAGES_ZH[value] if language == "zh" else value,
    "ranks": _of_ranks,
    "Ranks": _at_the_start,
    "one": _one,
    "count": lambda value, words, language, per: f"{value} {_one(value, words, language, per)}",
    "noun": lambda _, __, language, per: NOUNS[language][per],
    "nouns": lambda _, __, language, per: NOUNS[language][per] + _plural(2, language, per),
    "each": lambda _, __, language, per: EACH[language][per],
    "time": lambda _, __, language, per: TIME[language][per],
    "windows": _windows,
    "steps": _steps,
    "when": _when,
    "whole": _whole,
    "functions": lambda value, _, language, per: _list([_function(f, language) for f in value], "", language, per),
}
"""Formatters by the name used in texts."""
