"""Frames of stepscope's own recorder in Python stacks, which are not the user's code and stand in no table."""

from __future__ import annotations

import polars as pl

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
