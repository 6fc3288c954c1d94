"""Numbers for call stacks, each text once."""

from __future__ import annotations

import polars as pl

from stepscope.sources.own_frames import without_own_frames
from stepscope.tables import STACKS


class Stacks:
    """Collects call stacks and numbers them in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, texts: pl.Series) -> pl.Series:
        """The number of each stack; null where there is none."""
        if texts.null_count() == len(texts):
            return pl.repeat(None, len(texts), dtype=pl.Int64, eager=True)
        met = texts.unique(maintain_order=True)
        pairs = zip(met.to_list(), without_own_frames(met).to_list(), strict=True)
        numbers = {text: self._numbers.setdefault(own, len(self._numbers)) for text, own in pairs if own}
        known: pl.Series = texts.replace_strict(numbers, default=None, return_dtype=pl.Int64)
        return known

    def frame(self, separator: str) -> pl.DataFrame:
        """Rows of `stacks`, one frame of a stack a line; `separator` stands between frames in the texts."""
        lines = [text.replace(separator, "\n") for text in self._numbers]
        return STACKS.frame(stack=list(self._numbers.values()), text=pl.Series(lines, dtype=pl.String))
