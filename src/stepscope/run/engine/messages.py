"""Messages between a worker process and the process that started it: msgpack, with frames as Arrow IPC."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import msgspec
import polars as pl

from stepscope.errors import Unavailable

MOST_RUNS = 8
"""How many runs and selections a worker keeps; beyond that it drops the oldest."""


class RankData(msgspec.Struct, frozen=True):
    """A rank whose rows are in the store: its number, where that comes from, and its entry; and the entry that supplies
    other tables, with their names."""

    rank: int
    origin: str
    directory: Path
    supplement: tuple[Path, tuple[str, ...]] | None = None


class RunData(msgspec.Struct, frozen=True, tag=True):
    """A run, or a selection of one, sent before questions about it.

    Args:
        id: Identifies it among the runs of the calling process.
        steps: The steps to which it is narrowed, as closed ranges; None for all.
        defaults: Options of analyses that replace the defaults, see `orders.encoded`.
        issues: The issues of the run, as rows.
        iterations: Its iterations, if it marks no steps: rows, number, operators in each.
        answers_bytes: Size of the answers that a worker may keep.
    """

    id: int
    ranks: list[RankData]
    steps: list[tuple[int, int | None]] | None
    defaults: bytes
    issues: bytes
    iterations: tuple[bytes, int, int] | None
    answers_bytes: int


class Reason(msgspec.Struct, frozen=True):
    """Why there is no answer; see `Unavailable`."""

    text: str
    question: str
    table: str | None
    ranks: tuple[int, ...]
    why: str
    causes: list[Reason]


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A question about some ranks of a run that was sent before.

    Args:
        run: Id of the run.
        modules: The modules that register it and the analyses that it needs, in the order in which to import them.
        options: Its options, see `orders.encoded`.
        given: The answers about the whole job that it needs, by analysis: the rows, or why there are none.
    """

    run: int
    question: str
    modules: list[str]
    options: bytes
    ranks: tuple[int, ...]
    given: dict[str, bytes | Reason]


@dataclass(frozen=True)
class Order:
    """A question, and the run to send before it to a worker that does not have it."""

    run: RunData
    ask: Ask


class Answered(msgspec.Struct, frozen=True, tag=True):
    """The ranks that have an answer, their rows, and why the others have none; see `PartAnswer`."""

    ranks: tuple[int, ...]
    rows: bytes | None
    silent: dict[int, Reason]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The question failed.

    Args:
        problem: Message for the user.
        trace: Traceback, if it is a bug in the analysis.
    """

    problem: str
    trace: str = ""


Request = RunData | Ask
Reply = Answered | Failed


def rows_of(frame: pl.DataFrame) -> bytes:
    """A frame as Arrow IPC."""
    stream = io.BytesIO()
    frame.write_ipc(stream)
    return stream.getvalue()


def frame_of(rows: bytes) -> pl.DataFrame:
    """A frame from Arrow IPC."""
    return pl.read_ipc(io.BytesIO(rows))


def reason_of(error: Unavailable) -> Reason:
    """The fields of an error."""
    causes = [reason_of(cause) for cause in error.causes]
    return Reason(error.marked, error.question, error.table, error.ranks, error.why, causes)


def error_of(reason: Reason) -> Unavailable:
    """The error with these fields."""
    fields = msgspec.structs.asdict(reason) | {"causes": [error_of(cause) for cause in reason.causes]}
    return Unavailable(fields.pop("text"), **fields)
