"""How a rule is written and registered.

A rule is a function that yields findings. Its parameters are named after tables and analyses, as those of an analysis
are, and `limits` after its own set of limits; one annotated `... | None` may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, TypeVar, get_args

from stepscope.advice.finding import Finding
from stepscope.advice.messages import Messages, Text, flaw
from stepscope.analysis import ANALYSES
from stepscope.analysis.parameters import LIMITS, RULE_OPTIONS, parameters_of
from stepscope.errors import StepscopeError, close_matches
from stepscope.tables import TABLES

Find = Callable[..., Iterable[Finding]]
F = TypeVar("F", bound=Find)

Dimension = Literal["overall", "computation", "schedule", "communication", "memory", "dataloader"]
"""What part of training a rule is about, in the words of the Ascend advisor's report: `schedule` is all that keeps the
host from giving the device work in time."""
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


class Turn(IntEnum):
    """The order in which rules claim time."""

    SEEN_LATE = 0
    """A rank holds the others up."""
    KNOWN_CALLS = 1
    """Calls of the host that are known by name keep the device idle."""
    SEEN_IDLE = 2
    """The device or framework is idle."""
    STOPPED = 3
    """A single known event stops training."""
    LONG_STEP = 4
    """A single step is far longer than the others."""
    HOST_QUEUE = 5
    """The host's queue is empty."""
    DEVICE_QUEUE = 6
    """The device's queue is empty."""
    LOADER = 7
    """Training waits for a loader."""
    STEP_START = 8
    """Steps start late for an unknown reason."""
    OPERATORS = 9
    """Operators could use the device better."""


@dataclass(frozen=True)
class Claim:
    """The time that a rule's savings refer to, so that no time is claimed twice.

    Args:
        turn: Rules of lower turns claim first; those of one turn are about different times.
        time: The kind of time, in the words of `idle` and `slow_ranks`.
        time_in: Name of the evidence that has the kind, if it differs between the rule's findings.
        yields: Kinds of time that earlier claims subtract from these savings.
        own: Earlier claims of a finding's own kind are subtracted as well, and a finding of which nearly nothing is
            left is dropped: another finding reports the same.
        after: The same for earlier claims of these rules only.
        also: Further kinds of time that its savings may contain: later claims of these yield to it as to its own kind.
    """

    turn: Turn
    time: str = ""
    time_in: str = ""
    yields: tuple[str, ...] = ()
    own: bool = False
    after: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    def time_of(self, finding: Finding) -> str:
        """The kind of time that a finding's saving refers to."""
        return str(finding.evidence.get(self.time_in)) if self.time_in else self.time


@dataclass(frozen=True)
class Rule:
    """A registered rule.

    Args:
        name: Its name, e.g. `slow-rank`.
        function: The function that yields findings.
        messages: The words of its findings, by `Finding.message`.
        accuses: Its findings blame a rank, link or group: the verdict always names them.
        whole_job: Its findings compare ranks or are about all of them: it is asked about the whole job even if the user
            selects ranks.
        claim: The time that its savings refer to; None if no other rule is about that time.
        urgent: Its findings come before all others: they are about what stops the job.
        dimension: What part of training it is about.
        computed: How it decides, and what its saving is computed from, for people: one to three sentences.
        shows: Analyses whose rows are its evidence: a report shows them below the finding, a workbook as a sheet.
        explains: What follows from its findings on the same ranks: a rule, or `rule:kind` where the rule's findings are
            about several kinds of time (`idle-time:data_loading`), or have several messages. See `joined_findings`.
    """

    name: str
    function: Find
    messages: Messages
    accuses: bool = False
    claim: Claim | None = None
    whole_job: bool = False
    urgent: bool = False
    dimension: Dimension = "overall"
    computed: Text | None = None
    shows: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()

    @property
    def knows_platforms(self) -> bool:
        """Whether any of its words depend on framework or device."""
        texts = (text for message in self.messages.values() for text in vars(message).values())
        return any(isinstance(text, Mapping) for text in texts)


RULES: dict[str, Rule] = {}
"""Rules by name."""


def rule(
    name: str,
    messages: Messages,
    *,
    accuses: bool = False,
    claim: Claim | None = None,
    whole_job: bool = False,
    urgent: bool = False,
    dimension: Dimension = "overall",
    computed: Text | None = None,
    shows: tuple[str, ...] = (),
    explains: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Register a function as a rule; for the arguments see `Rule`."""

    def register(function: F) -> F:
        _check(name, function, messages, shows, accuses=accuses)
        RULES[name] = Rule(
            name, function, messages, accuses, claim, whole_job, urgent, dimension, computed, shows, explains
        )
        return function

    return register


def _check(name: str, function: Find, messages: Messages, shows: tuple[str, ...], *, accuses: bool) -> None:
    """Check that a rule can be run, that its messages are complete, and their texts as far as no finding is needed.

    Raises:
        StepscopeError: If not; the message names the problem.
    """
    options = parameters_of(f"rule {name}", function, ANALYSES).options
    for option in options:
        if option != LIMITS:
            hint = close_matches(option, [*TABLES, *ANALYSES, LIMITS])
            raise StepscopeError(f"rule {name}: there is no table or analysis `{option}`. {hint}")
    for shown in shows:
        if shown not in ANALYSES:
            raise StepscopeError(
                f"rule {name}: it shows `{shown}`, which is no analysis. {close_matches(shown, ANALYSES)}"
            )
    if name in RULES and RULES[name].function.__module__ != function.__module__:
        raise StepscopeError(f"rule {name}: {RULES[name].function.__module__} has a rule of this name. Rename one")
    if not function.__module__.startswith(_OURS):
        check_messages(name, messages, accuses=accuses)
    RULE_OPTIONS[name] = options


_OURS = "stepscope.advice.rules."
"""Rules of this package, whose hundreds of texts the tests check, not each command when it starts."""


def check_messages(name: str, messages: Messages, *, accuses: bool) -> None:
    """Check the texts of a rule, as far as no finding is needed.

    Raises:
        StepscopeError: If one is wrong; the message names it.
    """
    for key, message in messages.items():
        if accuses and message.short is None:
            raise StepscopeError(f"rule {name}: its message {key!r} needs a `short` text, since the rule accuses")
        for part, text in vars(message).items():
            if problem := flaw(text):
                raise StepscopeError(f"rule {name}: its message {key!r}: `{part}`: {problem}")
