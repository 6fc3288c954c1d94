"""Which calls hang, and because of whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.stuck_calls import ALL_ENTER, DIFFERENT, Row
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

MISSING, CROSSED, NO_DUMP, UNFINISHED = "missing", "crossed", "no dump", "unfinished"
KINDS = (*DIFFERENT, MISSING, CROSSED, NO_DUMP, UNFINISHED)


@dataclass(frozen=True)
class Limits:
    """When a call that is not finished counts as a hang."""

    least_wait_ns: int = limit(10**10, "ns", "chosen by us: longer than a busy host takes to write a dump")
    in_call_ns: int = limit(10**10, "ns", "chosen by us: with all members in it, a call rarely takes as long")
    copied_ns: int = limit(
        6 * 10**11, "ns after the timeout", "chosen by us: a file that is newer was copied, so its time means nothing"
    )


COLUMNS = columns(
    Column("call", "int64", "Number of the call in `unfinished_calls`.", nullable=False, importance=1),
    Column("kind", "string", "What is wrong.", nullable=False, values=KINDS),
    Column("ranks", "string", "Ranks that cause it; null if unknown.", title="cause: ranks"),
    Column(
        "missing_ranks",
        "string",
        "Members that did not make it either, where other ranks called something else; null if none.",
        title="also missing",
    ),
    Column(
        "waiting_ranks",
        "string",
        "Ranks that wait in the call, or in the one behind it.",
        title="waiting",
    ),
    Column("held_up_ranks", "string", "Members that are not in it as they wait in another call.", title="held up"),
    Column("unknown_ranks", "string", "Members of which it is unknown whether they are in it.", title="unknown"),
    Column("group", "string", "Process group: name and members.", nullable=False, importance=2),
    Column("group_name", "string", "Description of the group, else its number.", title="group"),
    "operation",
    Column("sequence", "int64", "Sequence number of the call in its group."),
    Column("backend", "string", "Library that makes the call, e.g. `nccl`; null if not recorded.", importance=3),
    Column("is_point_to_point", "bool", "True for `send` and `recv`.", importance=3),
    Column("sender", "int32", "Rank that sends, of a `send` or `recv`; else null.", title="from rank"),
    Column("receiver", "int32", "Rank that receives; likewise null.", title="to rank"),
    Column("members_known", "bool", "Whether the members of the group were recorded.", importance=3),
    Column("since_ns", "int64", "When the first of the waiting ranks made the call.", moment=True),
    Column(
        "waited_ns", "int64", "From then until the dump was written; null if the file was copied later.", title="waited"
    ),
    Column("timeout_ns", "int64", "Time after which the framework gives the call up.", importance=6),
    Column("cause_call", "int64", "Call because of which it hangs; null if it causes itself.", title="because of"),
    keep="kind ranks operation group_name waiting_ranks sequence waited_ns",
)


@dataclass(frozen=True)
class _Call:
    """A call that hangs."""

    number: int
    kind: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    unknown: tuple[int, ...]
    about: Row
    since_ns: int | None
    waited_ns: int | None
    held_up: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    cause: int | None = None


@analysis("job", COLUMNS, whole_job=True, as_recorded=True)
def hangs(unfinished_calls: pl.DataFrame, limits: Limits = Limits()) -> pl.DataFrame:
    """Find the calls that hang, and the ranks that cause it: one row per call, causes before what they hold up.

    A rank is a cause only if its dump shows that it did not make the call, or called something else. A call that was
    made shortly before the dump is under way, not hanging, and a dump that was written before the call or shortly after
    it does not show whether its rank made it.
    """
    by_call: dict[int, list[Row]] = defaultdict(list)
    for row in unfinished_calls.drop("stack").iter_rows(named=True):
        by_call[row["call"]].append(row)
    found = [call for rows in by_call.values() if (call := _judged(rows, limits)) is not None]
    ordered = sorted(_explained(found), key=lambda call: (call.cause is not None, KINDS.index(call.kind), call.number))
    rows = [
        {
            **{name: call.about[name] for name in ("group", "group_name", "operation", "sequence", "backend")},
            **{name: call.about[name] for name in ("is_point_to_point", "members_known", "timeout_ns")},
            **_sides(by_call[call.number]),
            "call": call.number,
            "kind": call.kind,
            "ranks": rank_list(call.ranks) or None,
            "missing_ranks": rank_list(call.missing) or None,
            "waiting_ranks": rank_list(call.waiting) or None,
            "held_up_ranks": rank_list(call.held_up) or None,
            "unknown_ranks": rank_list(call.unknown) or None,
            "since_ns": call.since_ns,
            "waited_ns": call.waited_ns,
            "cause_call": call.cause,
        }
        for call in ordered
    ]
    return (
        pl.DataFrame(rows, schema={column.name: pl.Null for column in COLUMNS})
        if not rows
        else pl.DataFrame(rows, infer_schema_length=None).select(names(COLUMNS))
    )


def _sides(rows: Sequence[Row]) -> dict[str, int | None]:
    """Who sends to whom in a point-to-point call."""
    made = (row for row in rows if row["role"] in ("waits", *DIFFERENT) and row["own_operation"] == row["operation"])
    if not rows[0]["is_point_to_point"] or len(rows) != 2 or (caller := next(made, None)) is None:
        return {"sender": None, "receiver": None}
    other = next(row for row in rows if row is not caller)
    ends = (caller["rank"], other["rank"]) if caller["operation"] == "send" else (other["rank"], caller["rank"])
    return dict(zip(("sender", "receiver"), ends, strict=True))


def _judged(rows: Sequence[Row], limits: Limits) -> _Call | None:
    """What is wrong with a call; None if it may be under way."""
    of_role: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        of_role[row["role"]].append(row["rank"])
    entered = [row for row in rows if row["role"] in ("waits", "left", *DIFFERENT)]
    waiting = [row for row in entered if not row["own_is_done"]]
    different = next((role for role in DIFFERENT if role in of_role), None)
    waits = tuple(row["rank"] for row in waiting if row["role"] == "waits")
    sinces = [row["since_ns"] for row in waiting or entered if row["since_ns"] is not None]
    timeouts = [row["timeout_ns"] for row in entered if row["timeout_ns"] is not None]
    about = {**rows[0], "timeout_ns": min(timeouts, default=None)}
    lengths = [_waited(row, limits) for row in waiting or entered]
    waited = max((one for one in lengths if one is not None), default=None)
    since_ns = min(sinces, default=None)
    old = [row["rank"] for row in rows if row["role"] in ("missing", "unknown") and _is_old(row, since_ns, limits)]
    if old and not rows[0]["members_known"]:
        old += of_role["missing"]  # gloo records no sends and receives: these may wait for the others in one
    missing = tuple(sorted({*of_role["missing"]} - {*old}))
    unknown = tuple(sorted({*of_role["no dump"], *of_role["unknown"], *old}))
    call = _Call(rows[0]["call"], "", (), waits, unknown, about, since_ns, waited)
    known_short = waited is not None and waited < limits.least_wait_ns
    if different is not None:
        culprits = [rank for role in DIFFERENT for rank in of_role[role]]
        behind = [row["rank"] for row in rows if row["role"] == "left" and row["next_is_done"] is False]
        call = replace(call, ranks=tuple(sorted(culprits)), waiting=tuple(sorted([*waits, *behind])))
        return replace(call, kind=different, missing=() if known_short else missing)
    given_up = [row for row in entered if row["role"] == "left" and _is_given_up(row, limits)]
    finished = [row for row in entered if row["role"] == "left" and row not in given_up]
    if not waiting and not given_up:
        return None
    long = waited is not None and waited >= limits.in_call_ns
    if about["operation"] in ALL_ENTER and finished:
        # all have entered it: dumps of a running job, written one after the other; but a rank that dies throws others
        # out, which gloo (it records no members) does not tell apart
        thrown_out = long and of_role["no dump"] and not about["members_known"]
        return replace(call, kind=NO_DUMP, unknown=tuple(sorted({*unknown, *missing}))) if thrown_out else None
    if missing:
        return None if known_short else replace(call, kind=MISSING, ranks=missing)
    if of_role["no dump"] or old:
        return None if known_short else replace(call, kind=NO_DUMP)
    return replace(call, kind=UNFINISHED) if long and waiting else None


def _waited(row: Row, limits: Limits) -> int | None:
    """How long a rank had waited when its dump was written; None if the file's time cannot be that."""
    if row["since_ns"] is None or row["written_ns"] is None:
        return None
    waited: int = row["written_ns"] - row["since_ns"]
    latest = (row["timeout_ns"] or 0) + limits.copied_ns
    return waited if 0 <= waited <= latest else None


def _is_old(row: Row, since_ns: int | None, limits: Limits) -> bool:
    """Whether a dump is too old to show whether its rank made a call that others made at a moment."""
    if since_ns is None or row["written_ns"] is None:
        return False
    return bool(row["written_ns"] < since_ns + limits.least_wait_ns)


def _is_given_up(row: Row, limits: Limits) -> bool:
    """Whether a rank seems to have left a call because its time was over: gloo records no more than that it left."""
    waited = _waited(row, limits)
    return waited is not None and row["timeout_ns"] is not None and waited >= row["timeout_ns"]


def _explained(calls: Iterable[_Call]) -> list[_Call]:
    """The calls with those of their causes that wait in another call taken out, and which call holds each one up."""
    found = {call.number: call for call in calls}
    waits_in: dict[int, list[int]] = defaultdict(list)
    for number, call in sorted(found.items()):
        for rank in call.waiting:
            waits_in[rank].append(number)
    for number, call in list(found.items()):
        absent = call.ranks if call.kind == MISSING else call.missing
        held_up = tuple(rank for rank in absent if any(other != number for other in waits_in[rank]))
        left = tuple(rank for rank in absent if rank not in held_up)
        if call.kind == MISSING:
            found[number] = replace(call, held_up=held_up, ranks=left)
        elif held_up:
            found[number] = replace(call, held_up=held_up, missing=left)
    causes = {number: _cause_of(call, found, waits_in) for number, call in found.items()}
    for number in sorted(found):
        if causes[number] is not None and (crossed := _circle(number, causes)):
            first, *others = sorted(crossed)
            ranks = tuple(sorted({rank for one in crossed for rank in found[one].waiting}))
            found[first] = replace(found[first], kind=CROSSED, ranks=ranks)
            causes[first] = None
            causes |= dict.fromkeys(others, first)
    return [replace(call, cause=causes[number]) for number, call in found.items()]


def _cause_of(call: _Call, calls: Mapping[int, _Call], waits_in: Mapping[int, Sequence[int]]) -> int | None:
    """The call that holds another one up: one in which a rank waits that should be in it, or without anybody missing,
    one in which its own members wait for another rank."""
    if call.kind == MISSING and not call.ranks:
        return next(other for rank in call.held_up for other in waits_in[rank] if other != call.number)
    if call.kind == UNFINISHED:
        others = sorted({other for rank in call.waiting for other in waits_in.get(rank, ())} - {call.number})
        return next((other for other in others if calls[other].kind != UNFINISHED), None)
    return None


def _circle(start: int, causes: Mapping[int, int | None]) -> list[int]:
    """The calls that hold each other up in a circle through `start`; none if it leads to a cause."""
    path: list[int] = []
    at: int | None = start
    while at is not None and at not in path:
        path.append(at)
        at = causes[at]
    return path if at == start else []
