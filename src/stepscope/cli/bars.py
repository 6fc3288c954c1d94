"""Bars of characters, for a column of a table."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉"


def bars(values: Sequence[float | None], width: int, *, blocks: bool = True) -> list[str]:
    """A bar for each value, the longest `width` cells long; nothing for what is unknown.

    Args:
        values: Lengths, not negative.
        width: Cells of the longest.
        blocks: Draw eighths of a cell; else whole ones, in ASCII.

    Examples:
        >>> bars([4, 2, None, 0.1], 4, blocks=False)
        ['####', '##', '', '#']
    """
    longest = max((value for value in values if value is not None), default=0)
    return [_bar(value / longest * width, blocks=blocks) if value and longest > 0 else "" for value in values]


def _bar(cells: float, *, blocks: bool) -> str:
    if not blocks:
        return "#" * max(round(cells), 1)
    eighths = max(round(cells * 8), 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
