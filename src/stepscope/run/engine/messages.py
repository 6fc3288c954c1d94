"""Messages between a worker process and the process that started it: msgpack, with frames as Arrow IPC."""

from __future__ import annotations

import io
from dataclasses import dataclass

import msgspec
import polars as pl

from stepscope.errors import Unavailable

MOST_RUNS = 8
"""How many runs and selections a worker keeps; beyond that it drops the oldest."""


class RankData(msgspec.Struct, frozen=True):
    """A rank whose rows are in the store: its number, where that comes from, and its entry."""

    rank: int
    origin: str
    directory: str


class RunData(msgspec.Struct, frozen=True):
    """A run, or a selection of one.

    Args:
        id: Identifies it among the runs of the calling process.
        name: Its name.
        path: The directory or file that holds it.
        ranks: Its ranks.
        steps: The steps to which it is narrowed, as closed ranges; None for all.
        defaults: Options of analyses that replace the defaults, see `data.py`.
        issues: The issues of the run, as rows.
        iterations: Its iterations, if it marks no steps: rows, number, operators in each.
        answers_bytes: Size of the answers that a worker may keep.
    """

    id: int
    name: str
    path: str
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


class Given(msgspec.Struct, frozen=True):
    """An answer about the whole job that a question about ranks needs: its rows, or why there are none."""

    question: str
    rows: bytes | None
    reason: Reason | None


class Opened(msgspec.Struct, frozen=True, tag=True):
    """A run, sent before questions about it."""

    run: RunData


class Ask(msgspec.Struct, frozen=True, tag=True):
    """A question about some ranks of a run that was sent before.

    Args:
        run: Id of the run.
        question: Name of the analysis.
        module: The module that registers it.
        options: Its options, see `data.py`.
        ranks: The ranks.
        given: The answers about the whole job that it needs.
    """

    run: int
    question: str
    module: str
    options: bytes
    ranks: tuple[int, ...]
    given: list[Given]


@dataclass(frozen=True)
class Order:
    """A question, and the run to send before it to a worker that does not have it."""

    run: RunData
    ask: Ask


class Answered(msgspec.Struct, frozen=True, tag=True):
    """The rows of each group of ranks computed together, and why the others have no answer."""

    frames: list[tuple[tuple[int, ...], bytes]]
    silent: dict[int, Reason]


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The question failed.

    Args:
        problem: Message for the user.
        trace: Traceback, if it is a bug in the analysis.
    """

    problem: str
    trace: str = ""


Request = Opened | Ask
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
    return Reason(str(error), error.question, error.table, error.ranks, error.why, causes)


def error_of(reason: Reason) -> Unavailable:
    """The error with these fields."""
    causes = [error_of(cause) for cause in reason.causes]
    return Unavailable(
        reason.text,
        question=reason.question,
        table=reason.table,
        ranks=reason.ranks,
        why=reason.why,
        causes=causes,
    )
