"""Words for steps in headings, titles and sentences: a job has steps, iterations that were found, or one recording.

Texts are written with a word in braces for each place that differs, e.g. `{Steps} by phase`.
"""

from __future__ import annotations

import re

from stepscope.advice.finding import KINDS, Per

_WORDS: dict[str, tuple[str, str, str]] = {
    "step": ("step", "iteration", "step"),
    "steps": ("steps", "iterations", "steps"),
    "Steps": ("Steps", "Iterations", "Recording"),
    "a_step": ("a step", "an iteration", "the recording"),
    "the_step": ("the step", "the iteration", "the recording"),
    "the_steps": ("the steps", "the iterations", "the recording"),
    "by_step": ("by step", "by iteration", "in the recording"),
    "by_step_and": ("by step and", "by iteration and", "by"),
    "and_steps": (" and steps", " and iterations", ""),
    "all_steps": (", all steps", ", all iterations", ""),
    "step_time": ("step time", "iteration time", "time"),
}
"""Word in braces to what it is for steps, iterations and a recording; nothing is counted in a recording, it is one."""

_BRACES = re.compile(r"\{(\w+)\}")
_BY_KIND = {kind: {word: texts[place] for word, texts in _WORDS.items()} for place, kind in enumerate(KINDS)}


def filled(text: str, per: Per) -> str:
    """A text with its words in braces filled in.

    Args:
        text: The text; other braces in it, e.g. those of an operator's name, stay.
        per: What the windows of the job are.

    Examples:
        >>> filled("Operations of {a_step}", "iteration"), filled("{Steps} by phase", "recording")
        ('Operations of an iteration', 'Recording by phase')
    """
    words = _BY_KIND.get(per, _BY_KIND["step"])
    return _BRACES.sub(lambda found: words.get(found[1], found[0]), text)
