"""What the server and the process that reads and analyses for it send each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from stepscope.errors import StepscopeError
from stepscope.processes import decoder
from stepscope.run import Run, run_of
from stepscope.run.job import Job, Member
from stepscope.run.supplements import Supplement
from stepscope.sources.base import Input
from stepscope.store import Store, StoredRecording
from stepscope.tables.issues import Issue


class MemberOrder(msgspec.Struct, frozen=True):
    """A rank: its number and where that comes from, the entry of the store with its rows, and what another supplies."""

    rank: int
    origin: str
    entry: str
    supplement: str | None = None
    tables: tuple[str, ...] = ()


class RunOrder(msgspec.Struct, frozen=True, tag=True):
    """A run to analyse; see `Run`."""

    store: Path
    name: str
    path: Path
    members: list[MemberOrder]
    own_issues: list[Issue]
    unread: list[Issue]


class ReadOrder(msgspec.Struct, frozen=True, tag=True):
    """Inputs to read into a store."""

    store: Path
    inputs: list[Input]


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The process has started."""


class Progressed(msgspec.Struct, frozen=True, tag=True):
    """How much of an order is done, 0 to 1."""

    ratio: float


class Read(msgspec.Struct, frozen=True, tag=True):
    """Inputs were read: why some were not, by their place in the order, and problems of the store."""

    refused: dict[int, Issue]
    problems: list[str]


class Summarised(msgspec.Struct, frozen=True, tag=True):
    """The summary of a run, as `run.encoding` writes it; more of its answers are still computed."""

    content: bytes


class Analysed(msgspec.Struct, frozen=True, tag=True):
    """A run is analysed; why its findings are missing, if they are."""

    problem: str = ""


Order = RunOrder | ReadOrder
Answer = Ready | Progressed | Read | Summarised | Analysed

ORDERS: msgspec.msgpack.Decoder[Order] = decoder(Order)
ANSWERS: msgspec.msgpack.Decoder[Answer] = decoder(Answer)


def order_of(job: Job, unread: Sequence[Issue], store: Path) -> RunOrder:
    """The order to analyse a job, all of whose rows are in a store."""
    members = []
    for one in job.members:
        supplement: str | None = None
        tables: tuple[str, ...] = ()
        if one.supplement is not None:
            supplement, tables = _entry(one.supplement.recording), one.supplement.tables
        members.append(MemberOrder(one.rank, one.origin, _entry(one.recording), supplement, tables))
    return RunOrder(store, job.name, job.path, members, job.issues, list(unread))


def ordered_run(order: RunOrder) -> Run:
    """The run that an order is about.

    Raises:
        StepscopeError: If the store has lost a part of it.
    """
    store = Store(order.store)

    def found(entry: str) -> StoredRecording:
        recording = store.find(entry)
        if recording is None:
            raise StepscopeError(f"{order.name}: the store has lost some of its rows. It is read again")
        return recording

    members = []
    for one in order.members:
        supplement = None if one.supplement is None else Supplement(found(one.supplement), one.tables)
        members.append(Member(one.rank, one.origin, found(one.entry), supplement))
    job = Job(members, order.name, order.path, 0, order.own_issues)
    return run_of(job, unread=order.unread, store=order.store)


def _entry(recording: object) -> str:
    assert isinstance(recording, StoredRecording)  # the catalogue reads into a store only
    return recording.directory.name
