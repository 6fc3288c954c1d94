"""The words of findings, in English and Chinese: a catalogue of messages per rule, and how their texts are filled in.

In a text, `{name}` is a parameter, and `{name:formatter}` or `{name:formatter words}` is one with a formatter
(`formatters.py`): `{excess_ns:ms}`, `{ranks:Ranks}`, `{ranks:one waits|wait}`. Text in square brackets is left out if
one of its parameters is unknown (None) or empty. Each text has the parameter `per`, the unit of times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepscope.advice.finding import Finding, Per, Platform
from stepscope.advice.formatters import FORMATTERS
from stepscope.errors import StepscopeError
from stepscope.present import Language
from stepscope.texts import Text as Text  # noqa: PLC0414 - catalogues of words take it from here

OPTIONAL = re.compile(r"\[([^\]]*)\]")
FIELD = re.compile(r"\{(\w+)(?::(\w+)(?: ([^}]*))?)?\}")
_STRAY = re.compile(r"[{}\[\]]")


Choices = Mapping[tuple[str | None, str | None], Text]
"""Texts by framework and device, see `Platform.pick`; each has a general one."""


NOTHING = Text("", "")


def framed(before: Text, texts: Text | Choices, after: Text = NOTHING) -> Choices:
    """Texts by platform between words that all of them share."""
    choices = {(None, None): texts} if isinstance(texts, Text) else texts
    return {place: before + text + after for place, text in choices.items()}


class Field(NamedTuple):
    """A parameter in a text."""

    name: str
    formatter: str
    argument: str


def fields_of(template: str) -> list[Field]:
    """The parameters of a template, with repetitions."""
    return [Field(*found) for found in FIELD.findall(template)]


def fill(text: Text, parameters: Mapping[str, Any], language: Language = "en", per: Per = "step") -> str:
    """The text in one language with its parameters.

    Examples:
        >>> text = Text("Rank {rank} waits {wait_ns:ms}[ for {loader}].", "")
        >>> fill(text, {"rank": 2, "wait_ns": 62_000_000, "loader": None})
        'Rank 2 waits 62.0 ms.'

    Raises:
        StepscopeError: If a parameter is missing.
    """
    language = language if text.zh else "en"
    known, template = {"per": per, **parameters}, text.of(language)
    for field in fields_of(template):
        if field.name not in known:
            raise StepscopeError(f"the text {template!r}: the parameter {field.name} is not given")

    def kept(part: re.Match[str]) -> str:
        return "" if any(known[field.name] in (None, "", [], {}) for field in fields_of(part[1])) else part[1]

    def formatted(field: re.Match[str]) -> str:
        name, formatter, argument = field.groups("")
        return FORMATTERS[formatter](known[name], argument, language, per) if formatter else str(known[name])

    return FIELD.sub(formatted, OPTIONAL.sub(kept, template))


MEASURED = Text("measured in this recording", "本次记录中的实测值")
OVERLAPS = Text(
    "other findings claim part of the same time; how much of it overlaps is unknown",
    "其他结论也计入了其中一部分时间，重叠多少未知",
)
REPLAYED = Text(
    "at most what a replay of the job without this time saves",
    "不超过去掉这部分时间后重放作业所得的节省",
)
HIDDEN = Text(
    "Saves nothing: other work takes as long meanwhile, as a replay of the job without this time shows",
    "无节省：重放作业（去掉这部分时间）表明，其间其他工作同样耗时",
)
SAVES = Text(
    "Saves about {saving_ns:duration} {per:each}[{on_average}] ({saving_ratio:percent})"
    "[; between {low_ns:duration} and {high_ns:duration}: {basis}]",
    "{per:each}约可节省 {saving_ns:duration}（{saving_ratio:percent}）[{on_average}]"
    "[；介于 {low_ns:duration} 与 {high_ns:duration} 之间：{basis}]",
)
COSTS = Text(
    "Costs about {saving_ns:duration} {per:each}[{on_average}] ({saving_ratio:percent}); how much of that could be "
    "saved is unknown",
    "{per:each}约耗费 {saving_ns:duration}（{saving_ratio:percent}）[{on_average}]；其中可节省多少未知",
)
"""Without a replay of the job, which alone shows what other work takes meanwhile."""
WHILE_SLOW = Text("down to what it saves while slow ranks stay as slow", "下限为慢 rank 未改善时所得的节省")
LAST = Text("up to what it saves once the others are mended", "上限为其他问题解决之后所得的节省")
TOGETHER = Text(
    ". Mended together with {together_with:list}, all of it saves up to {together_ns:duration} {per:each} "
    "({together_ratio:percent}), as each hides the other",
    "。与 {together_with:list} 一起解决，{per:each}最多可节省 {together_ns:duration}（{together_ratio:percent}）："
    "它们相互掩盖",
)
ON_AVERAGE = Text(" on average", "，按平均计")
COUNTED_ELSEWHERE = Text(
    "Its time is counted in the saving of {claimants:list}", "这段时间已计入 {claimants:list} 的节省"
)
STOPPED = Text("The job does not go on until this is mended", "解决之前作业无法继续")
UNKNOWN_SAVING = Text("How much it would save is unknown", "可节省多少未知")


@dataclass(frozen=True)
class Message:
    """The texts of one kind of finding; each is general or by framework and device.

    Args:
        summary: Who, what, how much: one sentence.
        cause: Why, as far as the data shows: the evidence in one sentence.
        action: What to do, as an imperative, the most likely fix first.
        short: Who is slow at what, in half a sentence; for rules that accuse.
        basis: Why the saving has a range, as a phrase; None if it is as measured.
    """

    summary: Text | Choices
    cause: Text | Choices
    action: Text | Choices
    short: Text | Choices | None = None
    basis: Text | None = None


Messages = Mapping[str, Message]


def flaw(text: Text | Choices | None) -> str:
    """What is wrong with a text of a message, whatever its parameters will be; empty if nothing is."""
    if text is None:
        return ""
    if not isinstance(text, Text):
        general = "" if (None, None) in text else "there is no general text, `(None, None)`"
        return next(filter(None, map(flaw, text.values())), general)
    for template in (text.en, text.zh):
        for field in fields_of(template):
            if field.formatter not in ("", *FORMATTERS):
                return f"{template!r}: there is no formatter `{field.formatter}`"
        if _STRAY.search(FIELD.sub("", OPTIONAL.sub(r"\1", template))):
            return f"{template!r}: each brace or bracket must be part of `{{name}}`, `{{name:formatter}}` or `[...]`"
    return "" if text.en.strip() else "it is empty in English"


@dataclass(frozen=True)
class Words:
    """The texts of a finding in one language, see `Message`."""

    summary: str
    cause: str
    action: str
    saving: str
    saving_basis: str


def pick(text: Text | Choices, platform: Platform) -> Text:
    """The text for a platform."""
    return text if isinstance(text, Text) else platform.pick(text)


def written(finding: Finding, text: Text | Choices | None, language: Language = "en") -> str:
    """One text of a finding's message; empty if there is none."""
    return "" if text is None else fill(pick(text, finding.platform), finding.parameters, language, finding.per)


def words_of(finding: Finding, message: Message, language: Language = "en") -> Words:
    """A finding in words."""
    basis = _basis(finding, message, language)
    return Words(
        written(finding, message.summary, language),
        written(finding, message.cause, language),
        written(finding, message.action, language),
        _saving(finding, basis, language),
        basis,
    )


def _basis(finding: Finding, message: Message, language: Language) -> str:
    """The basis of the saving's range."""
    own = written(finding, message.basis, language)
    overlaps = OVERLAPS.of(language) if "claimed_by" in finding.evidence else ""
    replayed = REPLAYED.of(language) if "replayed_ns" in finding.evidence else ""
    while_slow = WHILE_SLOW.of(language) if "while_slow_ns" in finding.evidence else ""
    last = LAST.of(language) if "last_ns" in finding.evidence else ""
    phrases = [phrase for phrase in (own, overlaps, replayed, while_slow, last) if phrase]
    return ("；" if language == "zh" else "; ").join(phrases) or MEASURED.of(language)


def _saving(finding: Finding, basis: str, language: Language) -> str:
    """The saving, or what the problem costs, or why neither is given."""
    if finding.saving_ns <= 0:
        claimants = finding.evidence.get("claimed_by")
        if "replayed_ns" in finding.evidence and not claimants:
            return HIDDEN.of(language)
        if finding.evidence.get("stops_job"):
            return STOPPED.of(language)
        return fill(COUNTED_ELSEWHERE if claimants else UNKNOWN_SAVING, {"claimants": claimants}, language)
    ranged = finding.saving_low_ns < finding.saving_high_ns
    stalls = bool(finding.evidence.get("stalled_steps"))
    parameters = {
        "saving_ns": finding.saving_ns,
        "saving_ratio": finding.saving_ratio,
        "on_average": ON_AVERAGE.of(language) if stalls else None,
        "low_ns": finding.saving_low_ns if ranged else None,
        "high_ns": finding.saving_high_ns,
        "basis": basis,
    }
    if not finding.replayed:
        return fill(COSTS, parameters, language, finding.per)
    together = {name: value for name, value in finding.evidence.items() if name.startswith("together_")}
    joint = fill(TOGETHER, together, language, finding.per) if together else ""
    return fill(SAVES, parameters, language, finding.per) + joint
