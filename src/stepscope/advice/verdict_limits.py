"""What the verdict always states about a job, whatever the rules find."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.limits import limit


@dataclass(frozen=True)
class Limits:
    """When the verdict mentions facts regardless of findings."""

    much_idle_ratio: float = limit(
        0.50, "of the time, for the verdict always to name idle time", "chosen by us, as for unexplained idle time"
    )
    many_unknown_ratio: float = limit(
        0.20, "of the steps, without operators, for the verdict to state how many steps it covers", "chosen by us"
    )


LIMITS = Limits()
NAME = "verdict"
