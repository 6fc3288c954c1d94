"""The calls between ranks in which a job may hang, and what each member did about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.stuck_calls import DIFFERENT, ROLES, Position, Role, Row, roles_of, unmatched, usual_row
from stepscope.analysis.registry import analysis
from stepscope.tables import GROUPS, RANK_FIGURES, RANKS, RECORDED_CALLS, STACKS
from stepscope.tables.base import Column, schema_of

DEFAULT_GROUP = "default_pg"
"""Description of the group of all ranks."""

_LIBRARY = r"site-packages|dist-packages|/lib/python\d|<frozen|<string>|\(unknown\)"
"""Frames that are not the user's."""

_FRAME = r"^(?:.*[/\\])?([^/\\]+)\((\d+)\): (.*)$"

COLUMNS = columns(
    Column("call", "int64", "Number of the call in this answer, from 0.", nullable=False, importance=1),
    Column("group", "string", "Process group: name and members.", nullable=False, importance=2),
    Column("group_name", "string", "Description of the group, else its number.", title="group"),
    Column("sequence", "int64", "Sequence number of the call; of point-to-point calls, that of the waiting rank."),
    Column("operation", "string", "Operation that most members called.", nullable=False),
    Column("backend", "string", "Library that makes the call, e.g. `nccl`; null if not recorded.", importance=3),
    Column("is_point_to_point", "bool", "True for `send` and `recv`.", nullable=False, importance=3),
    Column("members_known", "bool", "Whether the members of the group were recorded.", nullable=False, importance=3),
    "rank",
    Column("role", "string", "What the rank did about the call.", nullable=False, values=ROLES),
    Column("own_operation", "string", "What it called; of a missing rank, or one whose dump is older, its last call."),
    Column("own_group_name", "string", "Group of that call.", importance=20),
    Column("own_sequence", "int64", "Sequence number of that call.", importance=21),
    Column("own_is_done", "bool", "Whether it has left that call.", importance=22),
    Column(
        "has_started",
        "bool",
        "Whether its device has begun this call; false if work in front of it still runs there, null if not recorded.",
        importance=23,
    ),
    Column("is_inside", "bool", "Whether it waits in this call, or in a later one of the group.", importance=0),
    Column("ended_ns", "int64", "When it was seen to have left this call.", moment=True, importance=0),
    Column("next_operation", "string", "What it called next in the group; null if nothing.", importance=10),
    Column("next_is_done", "bool", "Whether it has left that one.", importance=0),
    Column("size_bytes", "int64", "Bytes that it gives to the call; null if it is missing."),
    Column("element_type", "string", "Data type of that; null if it is missing."),
    Column("since_ns", "int64", "When it made its call.", moment=True),
    Column("timeout_ns", "int64", "Time after which the framework gives the call up.", importance=5),
    Column("written_ns", "int64", "When its dump was written, as the file states.", moment=True, importance=4),
    Column("place", "string", "Where the code made its call: innermost function outside of libraries."),
    Column("stack", "string", "Call stack of its call, innermost first.", importance=0),
    keep="role rank operation sequence group_name own_operation place since_ns",
)

_ROW_COLUMNS = (
    *("rank", "record", "group", "group_name", "sequence", "operation", "backend", "peer", "is_done", "element_type"),
    *("input_elements", "output_elements", "size_bytes", "created_ns", "completed_ns", "timeout_ns", "stack"),
    "has_started",
)


@analysis("job", COLUMNS, whole_job=True, as_recorded=True)
def unfinished_calls(
    recorded_positions: pl.DataFrame,
    recorded_calls: pl.LazyFrame | None,
    groups: pl.LazyFrame | None,
    ranks: pl.LazyFrame | None,
    rank_figures: pl.LazyFrame | None,
    stacks: pl.LazyFrame | None,
) -> pl.DataFrame:
    """Find the first call of each process group that not all of its members have left, or in which they disagree, and
    what each member did about it: one row per call and member, ranks that may be to blame first.

    Calls with all members in them may still be under way: `hangs` judges that.
    """
    known = _Known(recorded_positions, groups, ranks)
    wanted = {key: sequences for key in known.groups if (sequences := known.candidates(key))}
    calls = _with_starts(RECORDED_CALLS.or_empty(recorded_calls), recorded_positions)
    rows = _rows_of(calls, wanted)
    found: list[dict[str, Any]] = []
    for key, sequences in wanted.items():
        for sequence in sequences:
            if members := list(_members_of(key, sequence, known, rows)):
                found += [{"call": len({row["call"] for row in found}), **row} for row in members]
                break
    open_pairs = calls.filter(pl.col("is_point_to_point") & ~pl.col("is_done")).select(_ROW_COLUMNS).collect()
    number = len({row["call"] for row in found})
    for row, other in unmatched(open_pairs.to_dicts()):
        found += [{"call": number, **one} for one in _pair(row, other, known)]
        number += 1
    return _completed(found, rank_figures, stacks)


class _Known:
    """What the dumps have of each rank and group."""

    def __init__(self, positions: pl.DataFrame, groups: pl.LazyFrame | None, ranks: pl.LazyFrame | None) -> None:
        about = RANKS.or_empty(ranks).select("rank", "world_size").collect()
        self.ranks: list[int] = about["rank"].sort().to_list()
        self.world_size: int | None = about["world_size"].max()  # type: ignore[assignment]
        self.groups: dict[str, dict[int, Row]] = defaultdict(dict)
        self.is_whole: dict[int, bool] = {}
        self.last: dict[int, Row] = {}
        self.names: dict[str, str | None] = {}
        self._first_ns: dict[int, int] = {}
        for row in positions.iter_rows(named=True):
            self.is_whole[row["rank"]] = not row["is_overwritten"]
            self.names[row["group"]] = row["group_name"]
            if row["rank"] not in self.last or self.last[row["rank"]]["last_record"] < row["last_record"]:
                self.last[row["rank"]] = row
            if row["first_created_ns"] is not None:
                first_ns = self._first_ns.get(row["rank"], row["first_created_ns"])
                self._first_ns[row["rank"]] = min(first_ns, row["first_created_ns"])
            if not row["is_point_to_point"]:
                self.groups[row["group"]][row["rank"]] = row
        listed = GROUPS.or_empty(groups).select("group", "members").drop_nulls().unique().sort("group").collect()
        self.stated: dict[str, list[int]] = dict(listed.iter_rows())

    def members(self, group: str) -> tuple[list[int], bool]:
        """The members of a group, and whether they were recorded; otherwise those that have calls of it, which of the
        default group are all ranks up to the highest with a dump."""
        if group in self.stated:
            return self.stated[group], True
        if self.names[group] == DEFAULT_GROUP:
            return list(range(max(self.world_size or 0, max(self.ranks) + 1))), self.world_size is not None
        return sorted(self.groups[group]), False

    def candidates(self, group: str) -> list[int]:
        """Sequence numbers of the calls to look at, the earliest first: the first that someone has not left, else the
        last that all have entered, and the one behind it."""
        rows = self.groups[group].values()
        unfinished = [row["open_sequence"] for row in rows if row["open_sequence"] is not None]
        if unfinished:
            return [min(unfinished)]
        lasts = [row["last_sequence"] for row in rows if row["last_sequence"] is not None]
        return sorted({min(lasts), min(min(lasts) + 1, max(lasts))}) if lasts else []

    def covers(self, rank: int, moment_ns: int | None) -> bool:
        """Whether a rank's dump has all of its calls since a moment."""
        if self.is_whole[rank]:
            return True
        return moment_ns is not None and rank in self._first_ns and self._first_ns[rank] <= moment_ns

    def position(self, group: str, rank: int) -> Position | None:
        """What the dump of a rank has of a group; None if there is no dump with calls."""
        if rank not in self.is_whole:
            return None
        row = self.groups[group].get(rank)
        first, last = (None, None) if row is None else (row["first_sequence"], row["last_sequence"])
        return Position(first, last, self.is_whole[rank])


def _with_starts(calls: pl.LazyFrame, positions: pl.DataFrame) -> pl.LazyFrame:
    """The calls with whether the device has begun them.

    That a call is only scheduled means nothing on ranks that record no starts (gloo, or NCCL without timing), nor where
    an open call may have been overwritten. Of a batch only the entry behind its parts is watched.
    """
    seen = (pl.col("state") == "started").fill_null(value=False) | pl.col("started_ns").is_not_null()
    oldest_is_done = pl.col("is_done").sort_by("record").first()
    whole = positions.group_by("rank").agg(is_whole=~pl.col("is_overwritten").any())
    tells = calls.group_by("rank").agg(oldest_is_done=oldest_is_done).join(whole.lazy(), on="rank")
    tells = tells.select("rank", keeps_open=pl.col("is_whole") | pl.col("oldest_is_done"))
    starts = calls.group_by("rank", "backend").agg(records_starts=seen.any())
    batch = ("rank", "group", "is_point_to_point", "sequence")
    of_batch = calls.filter(~pl.col("is_done")).group_by(batch).agg(batch_seen=seen.any())
    has_begun = seen | pl.col("is_done") | (pl.col("batch_seen") & pl.col("sequence").is_not_null())
    is_known = pl.col("records_starts") & pl.col("keeps_open") & (pl.col("state") == "scheduled")
    has_started = pl.when(has_begun).then(True).when(is_known).then(False)
    return (
        calls.join(of_batch, on=batch, how="left")
        .join(starts, on=["rank", "backend"], how="left", nulls_equal=True)
        .join(tells, on="rank", how="left")
        .with_columns(has_started=has_started)
    )


def _rows_of(calls: pl.LazyFrame, wanted: Mapping[str, list[int]]) -> dict[tuple[str, int], dict[int, Row]]:
    """The rows of some collectives and of those behind them, by group and sequence number, then rank."""
    pairs = {
        (group, sequence + more) for group, sequences in wanted.items() for sequence in sequences for more in (0, 1)
    }
    keys = pl.DataFrame(sorted(pairs), schema={"group": pl.String, "sequence": pl.Int64}, orient="row")
    of_groups = calls.filter(~pl.col("is_point_to_point")).join(keys.lazy(), on=["group", "sequence"], how="semi")
    found: dict[tuple[str, int], dict[int, Row]] = defaultdict(dict)
    for row in of_groups.select(_ROW_COLUMNS).collect().sort("rank", "record").iter_rows(named=True):
        found[row["group"], row["sequence"]][row["rank"]] = row  # the last of a batch stands for it
    return found


def _members_of(
    group: str, sequence: int, known: _Known, rows: Mapping[tuple[str, int], dict[int, Row]]
) -> Iterator[dict[str, Any]]:
    """What each member did about a collective; nothing if all have left it and called the same."""
    entered, after = rows.get((group, sequence), {}), rows.get((group, sequence + 1), {})
    members, members_known = known.members(group)
    positions = {rank: place for rank in members if (place := known.position(group, rank)) is not None}
    roles = roles_of(sequence, members, entered, positions)
    disagree = any(role in DIFFERENT for role in roles.values())
    is_open = "waits" in roles.values() or any(not row["is_done"] for row in entered.values())
    if not entered or not (disagree or is_open or "missing" in roles.values()):
        return
    usual = usual_row(entered, roles)
    for rank, role in roles.items():
        own = _own(entered[rank]) if rank in entered else _last(known, rank) if role == "missing" else {}
        yield {
            **{name: usual[name] for name in ("group", "group_name", "sequence", "operation", "backend")},
            "is_point_to_point": False,
            "members_known": members_known,
            "rank": rank,
            "role": role,
            **own,
            "is_inside": (known.groups[group].get(rank) or {}).get("open_sequence") is not None,
            "next_operation": after[rank]["operation"] if rank in after else None,
            "next_is_done": after[rank]["is_done"] if rank in after else None,
        }


def _pair(row: Row, other: Row | None, known: _Known) -> Iterator[dict[str, Any]]:
    """Both sides of a point-to-point call: the rank that waits, and the one that should have called."""
    peer = row["peer"]
    common = {name: row[name] for name in ("group", "group_name", "sequence", "operation", "backend")}
    common |= {"is_point_to_point": True, "members_known": True}
    role: Role = "waits"
    if other is not None:
        if other["element_type"] != row["element_type"]:
            role = "other type"
        elif other["input_elements"] != row["input_elements"]:
            role = "other size"
    yield {**common, "rank": row["rank"], "role": role, "is_inside": True, **_own(row)}
    if other is not None:  # which of the two is wrong is unknown
        yield {**common, "rank": peer, "role": role, "is_inside": True, **_own(other)}
        return
    role = (
        "no dump" if peer not in known.is_whole else "missing" if known.covers(peer, row["created_ns"]) else "unknown"
    )
    last = _last(known, peer) if role == "missing" else {}
    yield {**common, "rank": peer, "role": role, "is_inside": False, **last}


def _own(row: Row) -> dict[str, Any]:
    """What a rank called."""
    same = {name: row[name] for name in ("size_bytes", "element_type", "timeout_ns", "has_started")}
    about = {f"own_{name}": row[name] for name in ("operation", "group_name", "sequence", "is_done")}
    return {
        **same,
        **about,
        "since_ns": row["created_ns"],
        "ended_ns": row["completed_ns"],
        "stack_number": row["stack"],
    }


def _last(known: _Known, rank: int) -> dict[str, Any]:
    """The last call that a rank made in any group."""
    last = known.last[rank]
    return {
        "own_operation": last["last_operation"],
        "own_group_name": last["group_name"],
        "own_sequence": last["last_sequence"],
        "own_is_done": last["last_is_done"],
        "since_ns": last["last_created_ns"],
        "stack_number": last["last_stack"],
    }


def _completed(found: list[dict[str, Any]], figures: pl.LazyFrame | None, stacks: pl.LazyFrame | None) -> pl.DataFrame:
    """The rows with their stacks, and the times at which the dumps were written."""
    schema = {**schema_of(COLUMNS), "stack_number": pl.Int64()}
    rows = pl.DataFrame(
        found, schema={name: kind for name, kind in schema.items() if name not in ("place", "stack", "written_ns")}
    )
    is_time = pl.col("name") == "dump_written_ns"
    written = (
        RANK_FIGURES.or_empty(figures)
        .filter(is_time)
        .group_by("rank")
        .agg(written_ns=pl.col("value").max().cast(pl.Int64))
    )
    keys = rows.select("rank", stack_number="stack_number").drop_nulls().unique().lazy()
    texts = (
        STACKS.or_empty(stacks).rename({"stack": "stack_number"}).join(keys, on=["rank", "stack_number"], how="semi")
    )
    lines = pl.col("text").str.split("\n")
    own = lines.list.eval(pl.element().filter(~pl.element().str.contains(_LIBRARY))).list.first()
    place = pl.coalesce(own, lines.list.first()).str.replace(_FRAME, "$3 ($1:$2)")
    placed = texts.select("rank", "stack_number", stack="text", place=place).collect()
    made_ns = pl.col("since_ns").filter(~pl.col("role").is_in(["missing", "no dump", "unknown"])).min().over("call")
    is_older = (pl.col("role") == "missing") & (pl.col("written_ns") < made_ns)
    order = pl.col("role").replace_strict({role: at for at, role in enumerate(ROLES)}, return_dtype=pl.Int32)
    return (
        rows.join(written.collect(), on="rank", how="left")
        .join(placed, on=["rank", "stack_number"], how="left")
        .with_columns(role=pl.when(is_older).then(pl.lit("unknown")).otherwise("role"))
        .sort("call", order, "rank")
        .select(names(COLUMNS))
    )
