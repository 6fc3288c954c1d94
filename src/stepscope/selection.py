"""Choosing ranks and steps: `0,3-5,12-` as people type it, or any numbers from Python."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    import polars as pl

_PART = re.compile(r"(\d{1,10})(?:\s*-\s*(\d{1,10})?)?")
_ALL = ("all", ":", "*")


@dataclass(frozen=True)
class Selection:
    """Numbers chosen by closed ranges; a range whose end is None has no upper bound."""

    ranges: tuple[tuple[int, int | None], ...]

    def __contains__(self, number: int) -> bool:
        return any(first <= number and (last is None or number <= last) for first, last in self.ranges)

    def __str__(self) -> str:
        return describe_ranges(self.ranges)

    def named(self, noun: str) -> str:
        """The numbers behind what they count, e.g. `rank 2`, `steps 7-`."""
        is_one = len(self.ranges) == 1 and self.ranges[0][0] == self.ranges[0][1]
        return f"{noun if is_one else noun + 's'} {self}"

    def __and__(self, other: Selection) -> Selection:
        """The numbers that both choose."""
        both = (
            (max(first, start), min((bound for bound in (last, end) if bound is not None), default=None))
            for first, last in self.ranges
            for start, end in other.ranges
        )
        return Selection(_merge((first, last) for first, last in both if last is None or first <= last))

    def expression(self, column: str) -> pl.Expr:
        """A filter for the rows whose `column` is chosen; rows without a number are not."""
        import polars as pl  # noqa: PLC0415 - parsing a command line needs no Polars

        value = pl.col(column)
        return pl.any_horizontal(
            pl.lit(False),  # of no ranges
            *(value >= first if last is None else value.is_between(first, last) for first, last in self.ranges),
        )


Choice = str | int | Iterable[int] | Selection | None
"""How a caller chooses ranks or steps; None means all."""


def parse_selection(chosen: Choice, what: str) -> Selection | None:
    """Parse a choice of ranks or steps.

    Args:
        chosen: `0,3-5`, `7-` (7 and all above), `all`, a number, numbers, or None for all.
        what: `ranks` or `steps`, for the error.

    Returns:
        The selection, or None if everything is chosen.

    Raises:
        StepscopeError: If it is not a selection.

    Examples:
        >>> str(parse_selection("3-5, 0", "ranks"))
        '0,3-5'
        >>> 7 in parse_selection("6-", "steps")
        True
    """
    if chosen is None or isinstance(chosen, Selection):
        return chosen
    if not isinstance(chosen, str):
        numbers = list(chosen) if isinstance(chosen, Iterable) else [chosen]
        wrong = [number for number in numbers if not isinstance(number, Integral)]
        if wrong:
            raise StepscopeError(f"{what}: {wrong[0]!r} is not a whole number. Choose them like '0,3-5' or [0, 3]")
        return Selection(_merge((int(number), int(number)) for number in numbers))
    if chosen.strip().lower() in _ALL:
        return None
    return Selection(_merge(_parse_part(part, chosen, what) for part in chosen.split(",")))


def _parse_part(part: str, whole: str, what: str) -> tuple[int, int | None]:
    match = _PART.fullmatch(part.strip())
    if match is None:
        raise StepscopeError(f"{what} {whole!r}: {part.strip()!r} is not a number. Write them like 0,3-5 or 7-")
    first = int(match[1])
    if "-" not in part:
        return first, first
    last = int(match[2]) if match[2] else None
    if last is not None and last < first:
        raise StepscopeError(f"{what} {whole!r}: {first}-{last} runs backwards. Write {last}-{first}")
    return first, last


def _merge(ranges: Iterable[tuple[int, int | None]]) -> tuple[tuple[int, int | None], ...]:
    """Sort ranges and join adjacent ones, so that equal selections have the same text."""
    merged: list[tuple[int, int | None]] = []
    for first, last in sorted(ranges, key=lambda r: r[0]):
        if merged:
            start, end = merged[-1]
            if end is None:
                continue
            if first <= end + 1:
                merged[-1] = (start, None if last is None else max(end, last))
                continue
        merged.append((first, last))
    return tuple(merged)


def describe_ranges(ranges: Iterable[tuple[int, int | None]]) -> str:
    """Ranges as people write them: `0,3-5,7-`."""
    return ",".join(
        f"{first}-" if last is None else str(first) if first == last else f"{first}-{last}" for first, last in ranges
    )


def describe_numbers(numbers: Iterable[int]) -> str:
    """Numbers as compact text: `0-3,7`.

    Examples:
        >>> describe_numbers([7, 0, 1, 2, 3])
        '0-3,7'
    """
    return describe_ranges(_merge((number, number) for number in numbers))


def named_numbers(noun: str, numbers: Iterable[int]) -> str:
    """Numbers behind what they count.

    Examples:
        >>> named_numbers("rank", [2]), named_numbers("step", [4, 5, 6])
        ('rank 2', 'steps 4-6')
    """
    return Selection(_merge((number, number) for number in numbers)).named(noun)
