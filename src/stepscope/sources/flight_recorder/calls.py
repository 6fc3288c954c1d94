"""Rows of `recorded_calls`, `groups` and `stacks` from the entries of a dump, whose values may be of any type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stepscope.json_values import as_text, small_number, whole_number
from stepscope.present import data_type
from stepscope.recording_format.element_types import element_bytes
from stepscope.selection import describe_numbers

DEFAULT_GROUP = "default_pg"
"""Description of the group of all ranks."""

COALESCED = "coalesced"
"""Operation of the entry that stands for a batch of calls and follows its parts."""

MOST_ENTRIES = 4_000_000
MOST_SHAPES = 20_000_000
"""Dimensions of all tensors. A pickle may hold one list at many places, so that little text stands for much."""
MOST_FRAMES = 20_000_000
MOST_STACK_CHARACTERS = 200_000_000
MOST_TYPES = 20_000_000
LONGEST_NAME = 1000
"""Characters of a name; what is longer is cut, as one text may stand at many places too."""

_MANY = 1 << 63
"""Fits no column: what is as large is unknown."""

_BATCHED = re.compile(r"^_|_base$|_coalesced$|_oop$|_uneven$|_v$|_out$|_tensor(?:_coalesced)?$|_into_tensor\w*$")
_PEER = re.compile(r"^(send|recv) (\d{1,9})(->|<-)(\d{1,9})$")
_NAMES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all",
    "all_to_allv": "all_to_all",
    "all_reduce_barrier": "barrier",
    "all_reduce_sparse": "all_reduce",
    "broadcast_oop": "broadcast",
}


class TooMuch(ValueError):
    """The entries refer to more values than any dump has."""


@dataclass
class Dump:
    """What is in one dump.

    Args:
        rows: Rows of `recorded_calls`, in the order in which the calls were made.
        groups: Members of each group that has calls here; None if not recorded.
        names: Name of each of these groups.
        stacks: Texts of `stacks`.
        world_size: Members of the default group; None if not recorded.
        backends: Libraries that made the calls, e.g. `nccl`.
        lost: Entries that cannot be used.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    groups: dict[str, list[int] | None] = field(default_factory=dict)
    names: dict[str, str | None] = field(default_factory=dict)
    stacks: list[str] = field(default_factory=list)
    world_size: int | None = None
    backends: set[str] = field(default_factory=set)
    lost: int = 0


def dump_of(content: Mapping[str, Any]) -> Dump:
    """The calls of a dump.

    Raises:
        TooMuch: If it refers to more values than any dump has.
    """
    members = _members(content.get("pg_config"))
    dump = Dump(world_size=next((len(ranks) for name, ranks in members.values() if name == DEFAULT_GROUP), None))
    entries = content.get("entries")
    entries = entries if isinstance(entries, (list, tuple)) else []
    if len(entries) > MOST_ENTRIES:
        raise TooMuch(f"has more than {MOST_ENTRIES} entries")
    maker = _Maker(dump, members)
    for entry in entries:
        maker.add(entry)
    dump.rows.sort(key=lambda row: row["record"])
    _finish(dump.rows)
    return dump


def _members(config: Any) -> dict[str, tuple[str | None, list[int]]]:
    """Description and members of each group, by its name, as far as they are recorded."""
    found = {}
    for key, about in config.items() if isinstance(config, dict) else ():
        if not isinstance(about, dict):
            continue
        ranks = about.get("ranks")
        if isinstance(ranks, str):
            try:
                ranks = json.loads(ranks)
            except (ValueError, RecursionError):
                ranks = None
        numbers = [small_number(rank) for rank in ranks] if isinstance(ranks, (list, tuple)) else []
        known = [rank for rank in numbers if rank is not None and rank >= 0]
        if known and len(known) == len(numbers):
            found[_text(about.get("name")) or _text(key) or ""] = (_text(about.get("desc")), known)
    return found


class _Maker:
    """Turns entries into rows of a dump."""

    def __init__(self, dump: Dump, members: Mapping[str, tuple[str | None, list[int]]]) -> None:
        self._dump = dump
        self._members = members
        self._left = {
            **{"shapes": MOST_SHAPES, "frames": MOST_FRAMES, "types": MOST_TYPES},
            "characters of call stacks": MOST_STACK_CHARACTERS,
        }
        self._frames: dict[int, str] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._numbers: dict[str, int] = {}

    def add(self, entry: Any) -> None:
        """Add an entry; one without number, group or name counts as lost."""
        group = entry.get("process_group") if isinstance(entry, dict) else None
        record = whole_number(entry.get("record_id")) if isinstance(entry, dict) else None
        name = _text(entry.get("profiling_name")) if isinstance(entry, dict) else None
        group = _list(group)
        number = _text(group[0]) if group else None
        if record is None or record < 0 or name is None or number is None:
            self._dump.lost += 1
            return
        key, members = self._group(number, _text(group[1]) if len(group) > 1 else None)
        backend, _, plain = name.rpartition(":")
        if backend:
            self._dump.backends.add(backend)
        peer = _PEER.match(plain)
        stated = entry.get("is_p2p")  # early versions do not state it
        is_point_to_point = stated is True or (stated is None and peer is not None)
        kind = "p2p_seq_id" if is_point_to_point else "collective_seq_id"
        inputs, outputs = (self._shapes(entry.get(f"{side}_sizes")) for side in ("input", "output"))
        types = self._types(entry.get("input_dtypes"))
        self._dump.rows.append(
            {
                "record": record,
                "group": key,
                "group_name": self._dump.names[key],
                "sequence": whole_number(entry.get(kind)),
                "is_point_to_point": is_point_to_point,
                "operation": peer[1] if peer else _operation(plain),
                "name": name,
                "backend": backend or None,
                "peer": _global(members, int(peer[4])) if peer else None,
                "input_shapes": json.dumps(inputs) if inputs else None,
                "output_shapes": json.dumps(outputs) if outputs else None,
                "input_elements": _elements(inputs),
                "output_elements": _elements(outputs),
                "element_type": ",".join(dict.fromkeys(map(data_type, types))) or None,
                "size_bytes": _bytes(inputs, types),
                "state": _text(entry.get("state")),
                "is_done": _is_done(entry),
                "is_retired": entry.get("retired") if isinstance(entry.get("retired"), bool) else None,
                "created_ns": _moment(entry.get("time_created_ns")),
                "started_ns": _moment(entry.get("time_discovered_started_ns")),
                "completed_ns": _moment(entry.get("time_discovered_completed_ns")),
                "timeout_ns": _milliseconds(entry.get("timeout_ms")),
                "thread": _text(entry.get("thread_name")) or _text(entry.get("thread_id")),
                "stack": self._stack(entry.get("frames")),
            }
        )

    def _group(self, name: str, description: str | None) -> tuple[str, list[int] | None]:
        """Key and members of a group. Groups that were split off together share a name, so members are in the key."""
        known = self._members.get(name)
        described = description if description not in (None, "undefined") else known[0] if known else None
        shown = described if described not in (None, "undefined") else None
        members = known[1] if known else None
        key = " ".join(filter(None, [name, shown, f"({describe_numbers(sorted(set(members)))})" if members else ""]))
        self._dump.groups[key] = members
        self._dump.names[key] = shown or f"group {name}"
        if described == DEFAULT_GROUP and members and self._dump.world_size is None:
            self._dump.world_size = len(members)
        return key, members

    def _shapes(self, value: Any) -> list[list[int]]:
        """Shapes of tensors; those that are no lists of numbers are left out."""
        found = []
        for shape in _list(value):
            dimensions = _list(shape)
            self._take("shapes", len(dimensions) + 1)
            numbers = [whole_number(one) for one in dimensions]
            found.append([one for one in numbers if one is not None and one >= 0])
        return found

    def _types(self, value: Any) -> list[str]:
        """Names of data types; what is no text is an unknown one."""
        types = _list(value)
        self._take("types", len(types))
        return [as_text(one) or "unknown" for one in types]

    def _stack(self, value: Any) -> int | None:
        """Number of a call stack. Frames are the same objects in many entries, so each becomes a text once."""
        frames = _list(value)
        self._take("frames", len(frames))
        place = tuple(map(id, frames))
        if not place:
            return None
        if place not in self._stacks:
            lines = [self._frames.setdefault(id(frame), _frame(frame)) for frame in frames]
            self._take("characters of call stacks", sum(map(len, lines)))
            text = "\n".join(lines)
            number = self._numbers.setdefault(text, len(self._numbers))
            if number == len(self._dump.stacks):
                self._dump.stacks.append(text)
            self._stacks[place] = number
        return self._stacks[place]

    def _take(self, what: str, count: int) -> None:
        self._left[what] -= count
        if self._left[what] < 0:
            raise TooMuch(f"refers to more {what} than any dump has")


def _finish(rows: list[dict[str, Any]]) -> None:
    """Number the calls that share a sequence number. Only their batch, the entry behind them, is watched while it runs:
    they are done when that is."""
    parts: dict[tuple[str, bool, int | None], list[dict[str, Any]]] = {}
    for row in rows:
        alike = parts.setdefault((row["group"], row["is_point_to_point"], row["sequence"]), [])
        row["part"] = len(alike)
        alike.append(row)
        if row["operation"] == COALESCED and row["sequence"] is not None:
            for part in alike[:-1]:
                part["is_done"] = row["is_done"]


def _is_done(entry: Mapping[str, Any]) -> bool:
    """Whether the rank has left a call. Gloo states no more than that it is retired; a call of NCCL that is retired
    although it had started was given up."""
    if entry.get("state") == "completed" or _moment(entry.get("time_discovered_completed_ns")) is not None:
        return True
    return entry.get("retired") is True and entry.get("state") == "scheduled"


def _operation(plain: str) -> str:
    """The usual name of an operation, e.g. `all_gather` for `_all_gather_base`."""
    name = plain.lower()
    while (shorter := _BATCHED.sub("", name)) not in ("", name):
        name = shorter
    return _NAMES.get(plain.lower(), _NAMES.get(name, name))


def _global(members: list[int] | None, index: int) -> int | None:
    """The global rank of a member of a group."""
    return members[index] if members and index < len(members) else None


def _list(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, (list, tuple)) else []


def _frame(frame: Any) -> str:
    if not isinstance(frame, dict):
        return "(unknown)"
    return f"{_text(frame.get('filename'))}({_text(frame.get('line'))}): {_text(frame.get('name'))}"


def _text(value: Any) -> str | None:
    """A text or a number as text, cut to a length that names have; None for what is neither.

    Only these: the text of a list whose parts stand in it many times could be without end.
    """
    if isinstance(value, str):
        return value[:LONGEST_NAME] or None
    number = whole_number(value)
    return None if number is None else str(number)


def _product(shape: Iterable[int]) -> int:
    """Elements of a tensor; the numbers of a file may be such that multiplying all of them takes for ever."""
    product = 1
    for one in shape:
        product = min(product * one, _MANY)
        if product == 0:
            break
    return product


def _elements(shapes: Iterable[Iterable[int]]) -> int | None:
    counts = [_product(shape) for shape in shapes]
    return whole_number(sum(counts)) if counts else None


def _bytes(shapes: list[list[int]], types: list[str]) -> int | None:
    """Bytes of some tensors; types of one kind may be listed once for all."""
    if types and len(types) < len(shapes):
        types = types * len(shapes) if len(types) == 1 else []
    widths = [element_bytes(one) for one in types]
    if not shapes or len(widths) < len(shapes):
        return None
    sizes = [None if width is None else _product(shape) * width for shape, width in zip(shapes, widths, strict=False)]
    known = [size for size in sizes if size is not None]
    return whole_number(sum(known)) if len(known) == len(sizes) else None


def _moment(value: Any) -> int | None:
    """A time; 0 stands for none in JSON."""
    number = whole_number(value)
    return number if number is not None and number > 0 else None


def _milliseconds(value: Any) -> int | None:
    number = whole_number(value)
    return whole_number(number * 1_000_000) if number is not None and number > 0 else None
