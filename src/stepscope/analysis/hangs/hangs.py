"""Which calls hang, and because of whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.circles import circles
from stepscope.analysis.methods.stuck_calls import ALL_ENTER, DIFFERENT, Row
from stepscope.analysis.rank_lists import rank_list
from stepscope.analysis.registry import analysis
from stepscope.limits import limit
from stepscope.tables.base import Column

MISSING, CROSSED, NO_DUMP, UNFINISHED = "missing", "crossed", "no dump", "unfinished"
NOT_STARTED = "not started"
KINDS = (*DIFFERENT, MISSING, CROSSED, NOT_STARTED, NO_DUMP, UNFINISHED)


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
    Column(
        "held_up_ranks",
        "string",
        "Members that are not in it, or whose device has not begun it, as they wait in another call.",
        title="held up",
    ),
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
    """A call that hangs.

    Args:
        inside: The rows of ranks that wait in it, whatever they called, or in a later call of its group.
        is_likely: Whether it hangs only if another call hangs because of it: how long it has lasted is unknown.
    """

    number: int
    kind: str
    ranks: tuple[int, ...]
    waiting: tuple[int, ...]
    unknown: tuple[int, ...]
    about: Row
    since_ns: int | None
    waited_ns: int | None
    inside: Mapping[int, Row] = field(default_factory=dict)
    is_likely: bool = False
    held_up: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    cause: int | None = None

    @property
    def is_own_cause(self) -> bool:
        """Whether members of it are at fault, or may be."""
        return self.kind in (*DIFFERENT, NO_DUMP, NOT_STARTED) or bool(self.ranks)


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
    inside = {row["rank"]: row for row in rows if row["is_inside"]}
    call = _Call(rows[0]["call"], "", (), waits, unknown, about, since_ns, waited, inside)
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
    if about["operation"] in ALL_ENTER and finished and not _is_left_behind(waiting, finished, limits):
        # all have entered it: dumps of a running job, written one after the other; but a rank that dies throws others
        # out, which gloo (it records no members) does not tell apart
        thrown_out = long and of_role["no dump"] and not about["members_known"]
        if not thrown_out:
            return _likely(call)
        return replace(call, kind=NO_DUMP, unknown=tuple(sorted({*unknown, *missing})))
    if missing or of_role["no dump"] or old:
        return None if known_short else replace(call, kind=MISSING if missing else NO_DUMP, ranks=missing)
    return replace(call, kind=UNFINISHED) if long and waiting else _likely(call)


def _likely(call: _Call) -> _Call | None:
    """A call that all have entered, which may be what others wait for if it is not known to be short."""
    is_known = call.waited_ns is not None or not call.waiting
    return None if is_known else replace(call, kind=UNFINISHED, is_likely=True)


def _is_left_behind(waiting: Sequence[Row], finished: Sequence[Row], limits: Limits) -> bool:
    """Whether ranks are known to have been in a call for long after all others had left it."""
    ends, written = ([row[name] for row in rows] for name, rows in (("ended_ns", finished), ("written_ns", waiting)))
    if not waiting or None in ends or any(_waited(row, limits) is None for row in waiting):
        return False
    return bool(min(written) >= max(ends) + limits.in_call_ns)


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
    waits_in = _waits_in(found)
    held_by: dict[int, dict[int, int]] = {}
    for number, call in sorted(found.items()):
        found[number] = _without_held_up(call, waits_in)
        held_by[number] = {} if found[number].is_own_cause else _held_by(found[number], found, waits_in)
    causes = {number: next(iter(held.values()), None) for number, held in held_by.items()}
    for circle in circles({number: {*held.values()} for number, held in held_by.items()}):
        first, *others = circle
        links = [(rank, other) for one in circle for rank, other in held_by[one].items()]
        ranks = tuple(sorted({rank for rank, other in links if other in circle}))
        found[first] = replace(found[first], kind=CROSSED, ranks=ranks)
        causes |= {first: None, **dict.fromkeys(others, first)}
    kept = {number for number, call in found.items() if not call.is_likely}
    for number in sorted(kept):
        at = causes[number]
        while at is not None and at not in kept:
            kept.add(at)
            at = causes[at]
    return [replace(call, cause=causes[number]) for number, call in found.items() if number in kept]


def _waits_in(calls: Mapping[int, _Call]) -> dict[int, int]:
    """The call in which each rank waits: the first that it made of those that its device has begun, else the first."""
    found: dict[int, tuple[bool, bool, int, int]] = {}
    for number, call in sorted(calls.items()):
        for rank, row in call.inside.items():
            since_ns = row["since_ns"]
            place = (row["has_started"] is False, since_ns is None, since_ns or 0, number)
            found[rank] = min(place, found.get(rank, place))
    return {rank: place[-1] for rank, place in found.items()}


def _without_held_up(call: _Call, waits_in: Mapping[int, int]) -> _Call:
    """A call whose causes are only those of its members that do not wait in another call."""

    def split(ranks: Iterable[int]) -> list[tuple[int, ...]]:
        elsewhere = {rank for rank in ranks if waits_in.get(rank, call.number) != call.number}
        return [tuple(sorted(elsewhere)), tuple(rank for rank in ranks if rank not in elsewhere)]

    if call.kind == MISSING:
        held_up, ranks = split(call.ranks)
        return replace(call, held_up=held_up, ranks=ranks)
    if call.kind == UNFINISHED and (
        behind := [one for one in call.waiting if call.inside[one]["has_started"] is False]
    ):
        held_up, ranks = split(behind)
        waiting = tuple(rank for rank in call.waiting if rank not in behind)
        kind = NOT_STARTED if ranks else UNFINISHED
        return replace(call, kind=kind, held_up=held_up, ranks=ranks, waiting=waiting)
    held_up, missing = split(call.missing)
    return replace(call, held_up=held_up, missing=missing)


def _held_by(call: _Call, calls: Mapping[int, _Call], waits_in: Mapping[int, int]) -> dict[int, int]:
    """The calls that hold up a call without a cause of its own, by the rank that waits in them."""
    held = {rank: waits_in[rank] for rank in call.held_up}
    if call.kind != UNFINISHED:
        return held
    unclear = [rank for rank in call.waiting if call.inside[rank]["has_started"] is None]
    others = {rank: waits_in[rank] for rank in unclear if calls[waits_in[rank]].kind != UNFINISHED}
    return held | {rank: other for rank, other in others.items() if other != call.number}
