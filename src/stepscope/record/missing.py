"""Steps whose operators were not recorded, for the report at the end."""

from __future__ import annotations

from collections.abc import Iterator

_MOST_RANGES = 5
"""Number of ranges to list; the rest are counted."""

_SPARED = (
    "so that recording takes at most about half of the time. The phases of these steps are still marked. To record "
    "operators in every step of a range, give steps=(first, last)"
)
_REFUSED = "because they could not be recorded there (another message gives the reason)"


class Missing:
    """Collects steps that were recorded without operators although operators were requested."""

    def __init__(self) -> None:
        self._ranges: dict[bool, list[list[int]]] = {True: [], False: []}

    def add(self, step: int, *, spared: bool) -> None:
        """Note that step `step` has no operators. Steps come in order.

        Args:
            step: Its number.
            spared: They were left out to save time; otherwise they could not be recorded.
        """
        ranges = self._ranges[spared]
        if ranges and ranges[-1][1] + 1 == step:
            ranges[-1][1] = step
        else:
            ranges.append([step, step])

    def told(self, steps: int) -> Iterator[str]:
        """Messages about what is missing in `steps` steps, why, and what to do."""
        for spared, ranges in self._ranges.items():
            if ranges:
                count = sum(last - first + 1 for first, last in ranges)
                why = _SPARED if spared else _REFUSED
                yield f"operators are missing in {count} of {steps} steps ({_named(ranges)}), {why}"


def _named(ranges: list[list[int]]) -> str:
    named = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES]]
    more = len(ranges) - _MOST_RANGES
    return ", ".join(named) + (f" and {more} more ranges" if more > 0 else "")
