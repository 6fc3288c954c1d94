"""What the detector finds out about a running job, as data."""

from __future__ import annotations

from enum import Enum

import msgspec


class Cause(str, Enum):
    """Classes of slowness."""

    COMPUTE = "slow_compute"
    HOST = "slow_host"
    DATA = "slow_data"
    CHECKPOINT = "slow_checkpoint"
    LINK = "slow_link"
    SEND = "slow_send"
    JOB = "slow_job"
    """All ranks are slower than before, and none can be blamed."""
    HANG = "hang"


class Verdict(msgspec.Struct, omit_defaults=True, frozen=True):
    """One thing that costs a job time, or did. The same `key` is reported again when it changes and when it is over.

    Args:
        key: Identifies it, e.g. `slow_compute:3`.
        cause: Its class.
        ranks: Ranks to blame, sorted; of a link, both ends. Empty if none can be blamed.
        hosts: Hosts to blame if whole hosts are.
        group: Key of the group in which it shows, of communication.
        since_step: First step that it affects, as far as known.
        since_at_ns: About when that was, on the clock of the manager's host.
        until_step: Last step that it affected; None while it lasts.
        until_at_ns: When it was over.
        ratio: Its time relative to that of comparable ranks, or to before: 1.3 is 30 % longer.
        cost_ns: How much longer a step of the job takes because of it.
        sureness: Probability that this is not chance, 0 to 1.
        intermittent: Whether it comes and goes instead of lasting.
        evidence: Figures behind it, by name; names end in their units.
        explanation: More about the cause, e.g. names of kernels from a capture. Empty until known.
    """

    key: str
    cause: Cause
    ranks: list[int]
    since_step: int
    since_at_ns: int
    ratio: float | None
    cost_ns: int | None
    sureness: float
    hosts: list[str] = []
    group: str = ""
    until_step: int | None = None
    until_at_ns: int | None = None
    intermittent: bool = False
    evidence: dict[str, float] = {}
    explanation: str = ""

    @property
    def is_over(self) -> bool:
        """Whether the job has recovered from it."""
        return self.until_at_ns is not None
