"""Events of a job as JSON: one object each, told apart by `event`; the contract with log collectors and webhooks.

Every event has `schema` (`stepscope.live/1`), `event`, `job`, `at_ns` (when the manager noticed, since the epoch) and
`number` (counts the events of this manager, from 1). New fields and new events do not change the schema; its number
grows when a field changes its meaning.
"""

from __future__ import annotations

import msgspec

from stepscope.live.verdicts import Verdict

SCHEMA = "stepscope.live/1"


class Event(msgspec.Struct, frozen=True, tag_field="event", kw_only=True):
    """What all events have."""

    job: str
    at_ns: int
    number: int
    schema: str = SCHEMA


class _OfVerdict(Event, frozen=True, kw_only=True):
    """A verdict (`live/verdicts.py`) with its words in English: who is slow at what, and what to do next."""

    verdict: Verdict
    headline: str
    circumstances: str
    action: str


class VerdictOpened(_OfVerdict, frozen=True, tag="verdict_opened"):
    """Something has begun to cost time."""


class VerdictChanged(_OfVerdict, frozen=True, tag="verdict_changed"):
    """More is known of it: its cost, its ranks, how sure."""


class VerdictOver(_OfVerdict, frozen=True, tag="verdict_over"):
    """The job has recovered from it."""


class SwitchRequested(Event, frozen=True, tag="switch_requested", kw_only=True):
    """Somebody has switched; `on` are the kinds that are recorded from now on."""

    revision: int
    on: list[str]
    by: str


class SwitchApplied(Event, frozen=True, tag="switch_applied", kw_only=True):
    """All ranks that take part have applied it; `took_ns` after the request, as seen by the manager."""

    revision: int
    ranks: int
    took_ns: int


class SwitchFailed(Event, frozen=True, tag="switch_failed", kw_only=True):
    """A rank could not apply it."""

    revision: int
    rank: int
    error: str


class _OfRank(Event, frozen=True, kw_only=True):
    """A rank came or went."""

    rank: int
    host: str


class RankJoined(_OfRank, frozen=True, tag="rank_joined"):
    """For the first time."""


class RankLost(_OfRank, frozen=True, tag="rank_lost"):
    """Nothing is heard of it any more, although it has not said that it ends."""


class RankLeft(_OfRank, frozen=True, tag="rank_left"):
    """Its process has ended."""


class RankReturned(_OfRank, frozen=True, tag="rank_returned", kw_only=True):
    """After it was lost or had left; `restarted` if as another process."""

    restarted: bool


class CaptureBegun(Event, frozen=True, tag="capture_begun", kw_only=True):
    """Some ranks were asked for a profile."""

    capture: str
    ranks: list[int]


class CaptureEnded(Event, frozen=True, tag="capture_ended", kw_only=True):
    """A rank has finished its part of a capture: files on its host, or why there are none."""

    capture: str
    rank: int
    files: list[str]
    error: str


class StorageProblem(Event, frozen=True, tag="storage_problem", kw_only=True):
    """A rank cannot write its records; training goes on. An empty `problem`: it writes them again."""

    rank: int
    host: str
    problem: str
    dropped: int


AnyEvent = (
    VerdictOpened
    | VerdictChanged
    | VerdictOver
    | SwitchRequested
    | SwitchApplied
    | SwitchFailed
    | RankJoined
    | RankLost
    | RankLeft
    | RankReturned
    | CaptureBegun
    | CaptureEnded
    | StorageProblem
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def name_of(event: AnyEvent) -> str:
    """Its name, e.g. `verdict_opened`."""
    return str(event.__struct_config__.tag)


def to_json(event: AnyEvent) -> bytes:
    """An event as one line of JSON, without the newline."""
    return _encoder.encode(event)


def from_json(line: bytes) -> AnyEvent | None:
    """An event from a line; None if it is none that this release knows."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
