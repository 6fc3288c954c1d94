"""How a rule is written and registered.

A rule is a function that yields findings. Its parameters are named after tables and analyses, as those of an analysis
are, and `limits` after its own set of limits; one annotated `... | None` may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Messages
from stepscope.analysis import ANALYSES
from stepscope.analysis.parameters import close_matches, parameters_of
from stepscope.errors import StepscopeError
from stepscope.tables import TABLES

Find = Callable[..., Iterable[Finding]]
F = TypeVar("F", bound=Find)

LIMITS = "limits"
"""The parameter that is neither a table nor an analysis."""


class Turn(IntEnum):
    """Whose claims come first."""

    SEEN_LATE = 0
    """A rank was seen to hold the others up."""
    SEEN_IDLE = 1
    """Work was seen to be missing."""
    STOPPED = 2
    """One thing stopped training."""
    HOST_QUEUE = 3
    """The host's queue was empty."""
    DEVICE_QUEUE = 4
    """The device's queue was empty."""
    LOADER = 5
    """Training waited for a loader."""
    STEP_START = 6
    """Steps only were seen to start late, whatever the reason."""


@dataclass(frozen=True)
class Claim:
    """Which time the savings of a rule are of, so that no time is claimed twice.

    Args:
        turn: Rules of lower turns claim first; those of one turn are about different times.
        time: The kind of time, in the words of `idle` and `slow_ranks`.
        time_in: Name of the evidence that has it, where findings of the rule are about different kinds.
        yields: Kinds of time which earlier claims take away from these savings.
    """

    turn: Turn
    time: str = ""
    time_in: str = ""
    yields: tuple[str, ...] = ()

    def time_of(self, finding: Finding) -> str:
        """The kind of time that a finding's saving is of."""
        return str(finding.evidence.get(self.time_in)) if self.time_in else self.time


@dataclass(frozen=True)
class Rule:
    """A registered rule.

    Args:
        name: Its name, e.g. `slow-rank`.
        function: What finds.
        messages: The words of its findings, by `Finding.message`.
        accuses: Its findings accuse a rank, link or group: the verdict names them in any case.
        claim: Which time its savings are of; None if nothing else is about that time.
    """

    name: str
    function: Find
    messages: Messages
    accuses: bool = False
    claim: Claim | None = None


RULES: dict[str, Rule] = {}
"""Rules by name."""


def rule(name: str, messages: Messages, *, accuses: bool = False, claim: Claim | None = None) -> Callable[[F], F]:
    """Register a function as a rule; for the arguments see `Rule`."""

    def register(function: F) -> F:
        _check(name, function, messages, accuses=accuses)
        RULES[name] = Rule(name, function, messages, accuses, claim)
        return function

    return register


def _check(name: str, function: Find, messages: Messages, *, accuses: bool) -> None:
    """Refuse a rule that could never be asked or put into words.

    Raises:
        StepscopeError: With what is wrong.
    """
    for option in parameters_of(f"rule {name}", function, ANALYSES).options:
        if option != LIMITS:
            hint = close_matches(option, [*TABLES, *ANALYSES, LIMITS])
            raise StepscopeError(f"rule {name}: there is no table or analysis `{option}`. {hint}")
    if name in RULES and RULES[name].function.__module__ != function.__module__:
        raise StepscopeError(f"rule {name}: {RULES[name].function.__module__} has a rule of this name. Rename one")
    for key, message in messages.items():
        if accuses and message.short is None:
            raise StepscopeError(f"rule {name}: its message {key!r} needs a `short` text, since the rule accuses")
