"""How often and how much a manager captures without being asked."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.limits import limit


@dataclass(frozen=True)
class EscalationLimits:
    """Limits of escalation."""

    sureness: float = limit(0.9, "probability", "chosen by us: a capture costs the job about a second")
    most_suspects: int = limit(2, "ranks", "chosen by us: more are listed by the verdict, and likely have one cause")
    steps: int = limit(8, "steps", "fewest that `stepscope compare` can test for some operators at once")
    capture_s: float = limit(180.0, "s", "chosen by us: eight steps of 20 s")
    stacks_s: float = limit(60.0, "s", "as the proxies of a job may take for stacks")
    most_stacks: int = limit(1024, "ranks", "chosen by us: more ranks hang in the same places")
    cool_down_s: float = limit(600.0, "s", "chosen by us: between two captures for one verdict")
    most_an_hour: int = limit(6, "captures", "chosen by us: keeps the cost below 0.5 % of the time")
    communication_on_s: float = limit(60.0, "s", "chosen by us: time for the detector to see who waits for whom")
    communication_most_s: float = limit(600.0, "s", "chosen by us: then it is switched off in any case")
    communication_pause_s: float = limit(1800.0, "s", "chosen by us: until it may be switched on again")
    checks: bool = False
    """Also measure devices or links of suspects between two steps."""


LIMITS = EscalationLimits()
