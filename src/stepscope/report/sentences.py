"""The sentences of the verdict as data, and how they are put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepscope.advice import Language
from stepscope.advice.advise import message_of
from stepscope.advice.messages import Text, fields_of, fill, written
from stepscope.report.verdict_words import SENTENCES

if TYPE_CHECKING:
    from stepscope.advice.finding import Finding, Per
    from stepscope.run import Run


@dataclass(frozen=True)
class Sentence:
    """A sentence, or a part of one.

    Args:
        key: Which of `SENTENCES`.
        parameters: What its text names; of a tuple of sentences, the texts in a row, and of a text, its language.
        per: What its times are of.
        finding: What it states; its text may name the finding's `summary` and `short` words.
    """

    key: str
    parameters: dict[str, Any] = field(default_factory=dict)
    per: Per = "step"
    finding: Finding | None = None


Line = Sentence | Sequence[Sentence]
"""A sentence, or its parts."""


def counted(run: Run) -> Sentence | None:
    """What the times of a run without marked steps are of: iterations that were found, or all of it; else None."""
    if (found := run.iterations) is not None:
        return Sentence("iterations", {"count": found.count, "operators": found.operators}, "iteration")
    return Sentence("whole_recording", per="recording") if run.marks_no_steps else None


def spoken(line: Line, language: Language = "en") -> str:
    """A sentence in one language; parts are joined by semicolons."""
    if isinstance(line, Sentence):
        return _text(line, language)
    stop, between = ("。", "；") if language == "zh" else (".", "; ")
    text = between.join(_text(part, language) for part in line)
    return text[:1].upper() + text[1:] + stop if language == "en" else text + stop


def joined(lines: Sequence[Line], language: Language = "en") -> str:
    """Sentences one after the other."""
    return ("" if language == "zh" else " ").join(spoken(line, language) for line in lines)


def _text(sentence: Sentence, language: Language) -> str:
    known = {name: _listed(value, language) for name, value in sentence.parameters.items()}
    text, finding = SENTENCES[sentence.key], sentence.finding
    if finding is not None:
        named = {field.name for field in fields_of(text.of(language))}
        message = message_of(finding)
        texts = {"summary": message.summary, "short": message.short}
        known |= {part: written(finding, words, language) for part, words in texts.items() if part in named}
    return fill(text, known, language, sentence.per)


def _listed(value: Any, language: Language) -> Any:
    if isinstance(value, Text):
        return value.of(language)
    if not isinstance(value, tuple):
        return value
    return ("、" if language == "zh" else ", ").join(_text(part, language) for part in value)
