"""What is wrong with a run of the list, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from stepscope.pages.words import sentence
from stepscope.present import Language
from stepscope.tables.issues import Issue
from stepscope.texts import Text

NOTES: Mapping[str, Text] = {
    "written": Text(
        "Its files are still being written; it is read when they have come to rest.",
        "文件仍在写入，写入停止后开始读取。",
    ),
    "gone": Text("Its files are no longer there.", "文件已不存在。"),
    "no_findings": Text("Its findings are missing, as they could not be computed.", "未能计算出问题，因此没有结论。"),
}
"""Reasons that are no issue of an input."""

_MORE = Text("{} more.", "另有 {} 处。")


def told(issues: Sequence[Issue], notes: Sequence[str], language: Language) -> str:
    """What is wrong: the first issue, how many more there are, and notes; empty if nothing is."""
    parts = []
    if issues:
        first = issues[0]
        name = PurePath(first.file).name
        if language == "zh":
            parts.append(
                f"{name}：{_ended(sentence(first.problem, 'zh'), '。')}{_ended(sentence(first.remedy, 'zh'), '。')}"
            )
        else:
            parts.append(f"{name}: {first.problem}. {_ended(first.remedy, '.')}")
        if len(issues) > 1:
            parts.append(_MORE.of(language).format(len(issues) - 1))
    parts.extend(NOTES[note].of(language) for note in notes)
    return ("" if language == "zh" else " ").join(parts)


def _ended(text: str, mark: str) -> str:
    return text if text.endswith((".", "。")) else text + mark
