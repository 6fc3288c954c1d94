"""Texts for people in each language. Loads nothing, so that what shows them first need not wait."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.present import Language


@dataclass(frozen=True)
class Text:
    """A text in each language. Without a Chinese one, the English one is shown."""

    en: str
    zh: str = ""

    def __add__(self, other: Text) -> Text:
        return Text(self.en + other.en, self.zh + other.zh)

    def of(self, language: Language) -> str:
        """The template in one language."""
        return self.zh if language == "zh" else self.en

    def filled(self, **values: object) -> Text:
        """The text with its values filled in."""
        return Text(self.en.format(**values), self.zh.format(**values))
