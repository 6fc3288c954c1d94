"""What a job is doing, as data: the answer of `stepscope live status`, and what the live screen is drawn from.

Times are int64 ns; None is unknown. `to_json` and `from_json` are what travels between manager and terminal.
"""

from __future__ import annotations

import msgspec

from stepscope.errors import StepscopeError
from stepscope.live.verdicts import Verdict

IDLE_NS = 10_000_000_000
"""A rank in whose training nothing has happened for longer is shown as idle."""
VERSION = 1
"""Of this structure. A new field does not change it; a field with another meaning does."""


class FailedSwitch(msgspec.Struct, frozen=True):
    """A rank that could not apply the switches, and why."""

    rank: int
    error: str


class SwitchStatus(msgspec.Struct, frozen=True):
    """State of the switches.

    Args:
        on: Names of the kinds that are requested to be recorded.
        off: The others.
        revision: Counts requests; 0 if nobody has switched yet, so each worker keeps its initial state.
        by: Who asked.
        at_ns: When, since the epoch; 0 if nobody has.
        applied: How many ranks that take part have applied it.
        pending: Ranks that have not yet.
        failed: Ranks that could not.
    """

    on: list[str]
    off: list[str]
    revision: int
    by: str
    at_ns: int
    applied: int
    pending: list[int]
    failed: list[FailedSwitch]


class RankStatus(msgspec.Struct, frozen=True):
    """One rank.

    Args:
        state: `alive`; `late` if nothing was heard for some seconds; `lost` if it does not take part any more.
        seen_ns: How long ago it was last heard.
        step: Steps that have ended.
        step_ns: Like the times that follow, the median of the last steps.
        own_ns: What it spent without waiting for others, as far as measured.
        own_ratio: `own_ns` relative to the median over ranks.
        data_ns: Waits for batches; None also if it never waited for one.
        checkpoint_ns: The longest of the last steps.
        idle_ns: Since when nothing has happened in its training.
        inside: What it is in now, e.g. `forward 0.20 s`.
        dropped: Records that could not be written.
        problem: Why it writes no records; empty if it does.
        recent: Of its last steps number, step time, data wait and forward time; only of the ranks worth a look.
    """

    rank: int
    host: str
    state: str
    pid: int
    framework: str
    device: str
    seen_ns: int
    step: int
    step_ns: int | None = None
    data_ns: int | None = None
    forward_ns: int | None = None
    communication_ns: int | None = None
    checkpoint_ns: int | None = None
    own_ns: int | None = None
    own_ratio: float | None = None
    idle_ns: int = 0
    inside: str = ""
    dropped: int = 0
    problem: str = ""
    recent: list[tuple[int, int, int | None, int | None]] = []

    @property
    def is_idle(self) -> bool:
        """Whether it is alive, but nothing has happened in its training for some time."""
        return self.state == "alive" and self.idle_ns > IDLE_NS


class NodeStatus(msgspec.Struct, frozen=True):
    """One host: its ranks by state."""

    host: str
    alive: list[int]
    late: list[int]
    lost: list[int]


class VerdictStatus(msgspec.Struct, frozen=True):
    """A verdict with its words in English, and the platform of the ranks to blame for those in other languages."""

    verdict: Verdict
    headline: str
    circumstances: str
    action: str
    framework: str = ""
    device: str = ""


class StorageProblem(msgspec.Struct, frozen=True):
    """Why a rank writes no records."""

    rank: int
    host: str
    problem: str


class StorageStatus(msgspec.Struct, frozen=True):
    """Where records are written.

    Args:
        directories: Those of the job, on whatever host; each once.
        used_bytes: Size of what is below the base directory, which several jobs may share; None if it is on other
            hosts, or not measured yet.
        dropped: Records that could not be written, of all ranks.
    """

    directories: list[str]
    used_bytes: int | None
    dropped: int
    problems: list[StorageProblem]


class CaptureStatus(msgspec.Struct, frozen=True):
    """A profile that was asked for.

    Args:
        state: `running`, `ended` or `failed`.
        files: What it left, on the hosts of the ranks.
        error: Why a rank has none.
    """

    capture: str
    ranks: list[int]
    state: str
    at_ns: int
    files: list[str] = []
    error: str = ""


class Status(msgspec.Struct, frozen=True):
    """What a job is doing.

    Args:
        at_ns: When this was put together, since the epoch.
        step: The most frequent number of ended steps among ranks that take part.
        step_ns: Median of the ranks' step times.
        lag_ns: How far the detector is behind the records that came; None if unknown.
        open: Verdicts that last, the costliest first.
        over: The last ones that are over, the latest first.
    """

    job: str
    at_ns: int
    world_size: int | None
    step: int | None
    step_ns: int | None
    switches: SwitchStatus
    ranks: list[RankStatus]
    nodes: list[NodeStatus]
    open: list[VerdictStatus]
    over: list[VerdictStatus]
    storage: StorageStatus
    captures: list[CaptureStatus] = []
    lag_ns: int | None = None
    version: int = VERSION

    @property
    def blamed(self) -> set[int]:
        """Ranks that a verdict which lasts blames."""
        return {rank for one in self.open for rank in one.verdict.ranks}

    def count(self, state: str) -> int:
        """Number of ranks in a state."""
        return sum(rank.state == state for rank in self.ranks)


_decoder = msgspec.json.Decoder(Status)
_encoder = msgspec.json.Encoder()


def to_json(status: Status) -> bytes:
    """A status as JSON."""
    return _encoder.encode(status)


def from_json(text: bytes) -> Status:
    """A status from JSON.

    Raises:
        StepscopeError: If it is none, e.g. because the manager is of another release.
    """
    try:
        return _decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StepscopeError(
            f"the manager's answer is not a status ({error}). Run the same release of stepscope on both sides"
        ) from error
