"""Times of a timeline as a user types them: `12.5s`, `340ms-350ms`."""

from __future__ import annotations

import re
from decimal import Decimal

from stepscope.errors import StepscopeError

UNITS_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|ms|us|µs|ns)?", re.ASCII)


def parse_moments(text: str) -> tuple[int, int | None]:
    """A time, or two with a hyphen between them, in nanoseconds from the start of the timeline.

    The unit is s (the default), ms, us or ns; the first of two times takes the unit of the second if it has none.

    Raises:
        StepscopeError: If it is neither, or ends before it starts.

    Examples:
        >>> parse_moments("1.5"), parse_moments("340-350.5ms")
        ((1500000000, None), (340000000, 350500000))
    """
    found = [_TIME.fullmatch(part.strip()) for part in text.split("-")]
    if len(found) > 2 or None in found:
        raise StepscopeError(f"{text!r} is no time of a timeline: give e.g. 12.5s, 340ms or 340ms-350ms")
    parts = [each.groups() for each in found if each is not None]
    unit = parts[-1][1] or "s"
    start, *end = (int(Decimal(number) * UNITS_NS[own or unit]) for number, own in parts)
    if end and end[0] < start:
        raise StepscopeError(f"{text!r}: the end is before the start")
    return start, end[0] if end else None
