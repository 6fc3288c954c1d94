"""Questions about texts, asked once for each distinct one: events have few names."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.sources.native import distinct as compiled
from stepscope.sources.native.library import Refused


class Distinct:
    """A column of texts."""

    def __init__(self, texts: pl.Series) -> None:
        self._texts = texts
        self._numbers: pl.Series | None = None
        try:
            self._numbers, firsts = compiled.distinct(texts)
        except Refused:
            return
        self._texts = texts.gather(firsts)

    def judged(self, judge: Callable[[pl.Series], pl.Series]) -> pl.Series:
        """What `judge` says of each text; null for null.

        Args:
            judge: Takes some texts without regard to their rows.
        """
        found = judge(self._texts)
        return found if self._numbers is None else found.gather(self._numbers)

    def matching(self, pattern: str) -> pl.Series:
        """Whether a pattern is found in each text.

        Examples:
            >>> Distinct(pl.Series(["a", "b", None, "a"])).matching("^a").to_list()
            [True, False, None, True]
        """
        return self.judged(lambda texts: texts.str.contains(pattern))
