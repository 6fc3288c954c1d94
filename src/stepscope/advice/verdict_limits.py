"""What the verdict states of a job whatever the rules found."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """From when on the verdict mentions what no finding may hide."""

    much_idle_ratio: float = limit(
        0.50, "of the time, from which the verdict always names idle time", "chosen by us, as for unexplained idle time"
    )
    many_unknown_ratio: float = limit(
        0.20, "of the steps without operators, from which the verdict states how many it is about", "chosen by us"
    )


LIMITS = Limits()
NAME = "verdict"
