"""Call stacks: numbers for them, each text once, without the frames of stepscope's own recorder, which is not the
user's code and stands in no table."""

from __future__ import annotations

import polars as pl

from stepscope.tables import STACKS

_FILE = r"(?:^|[/\\])stepscope[/\\]record[/\\][^;\n]*\.py"

OWN_FRAME = _FILE + r"\(\d+\)"
"""A function of the recorder, e.g. `stepscope/record/torch/hook.py(59): wrapper`: what it calls is the user's."""

OWN_THREAD = r"(?:^|[/\\])stepscope[/\\]record[/\\](?:session|windows|torch[/\\]clock)\.py\(\d+\): _(?:run|work)$"
"""The functions in which the recorder's threads run; nothing that these call is the user's."""

_IN_STACK = r"(?:^|[;\n])[^;\n]*\bstepscope[/\\]record[/\\][^;\n]*"


def without_own_frames(stacks: pl.Series) -> pl.Series:
    """Call stacks, frames parted by `;` or line ends, without the recorder's frames.

    Examples:
        >>> without_own_frames(pl.Series(["a.py(1): f;/x/stepscope/record/hooks.py(7): wrapper;b.py(2): g"])).to_list()
        ['a.py(1): f;b.py(2): g']
    """
    return stacks.str.replace_all(_IN_STACK, "").str.strip_prefix(";").str.strip_prefix("\n")


class Stacks:
    """Collects call stacks and numbers them in the order in which they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbers(self, texts: pl.Series) -> pl.Series:
        """The number of each stack; null if there is none."""
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
