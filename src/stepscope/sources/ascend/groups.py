"""Process groups: the key that both export formats agree on, and who is in a group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import polars as pl

from stepscope.tables import GROUPS

_PLACE = re.compile(r"^(?:.*/)?(?P<word>[^/]+?)-op\d+(?:_\d+)*$")
"""A call of MindSpore by its place in the model: `Default/AllReduce-op534_0`."""
_OP_NAME = re.compile(r"^(?P<operation>.+?)__(?P<tag>\d+)_(?P<sequence>\d{1,18})_\d+$")


def group_key(communicator: str) -> str:
    """The key of a communicator, as the text export writes it behind `@` in the name of a call.

    Two 32-bit polynomial hashes of the communicator's text, one after the other as a 64-bit decimal.

    Examples:
        >>> group_key("10.170.22.10%enp67s0f5_60000_0_1760000000000000")
        '11517043351967950690'
    """
    high = low = 0
    for letter in communicator:
        high = (high * 29 + ord(letter)) & 0xFFFFFFFF
        low = (low * 131 + ord(letter)) & 0xFFFFFFFF
    return str(high << 32 | low)


@dataclass
class Groups:
    """The groups of one rank by key."""

    names: dict[str, str | None] = field(default_factory=dict)
    members: dict[str, list[int] | None] = field(default_factory=dict)
    _by_tag: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)
    _tagged: int = field(default=0, repr=False, compare=False)
    """How many groups `_by_tag` was made of; groups are only ever added."""

    @classmethod
    def from_metadata(cls, info: object) -> Groups:
        """Read `parallel_group_info`: communicator to name and global ranks. Damaged entries stay unknown."""
        groups = cls()
        for communicator, entry in info.items() if isinstance(info, Mapping) else ():
            if isinstance(communicator, str) and isinstance(entry, Mapping):
                name, ranks = entry.get("group_name"), entry.get("global_ranks")
                key = group_key(communicator)
                groups.names[key] = name if isinstance(name, str) else None
                whole = isinstance(ranks, list) and all(type(rank) is int and 0 <= rank < 2**31 for rank in ranks)
                groups.members[key] = ranks if whole else None
        return groups

    def mention(self, keys: pl.Series) -> None:
        """Take in groups that only the calls know."""
        for key in keys.drop_nulls().unique().to_list():
            self.names.setdefault(key, None)
            self.members.setdefault(key, None)

    def take(self, others: Groups) -> None:
        """Add those of another recording; known groups are kept."""
        for key, name in others.names.items():
            self.names[key] = self.names.get(key) or name
            self.members[key] = self.members.get(key) or others.members.get(key)

    def of_tag(self, tag: str) -> str | None:
        """The group whose key ends in the digits that names of calls carry, if it is the only one."""
        if self._tagged < len(self.names):
            self._by_tag.clear()
            for key in self.names:
                self._by_tag.setdefault(str(int(key[-3:])), []).append(key)
            self._tagged = len(self.names)
        fitting = self._by_tag.get(tag, ())
        return fitting[0] if len(fitting) == 1 else None

    def frame(self) -> pl.DataFrame:
        """All groups as rows of `groups`, by key."""
        keys = sorted(self.names)
        rows = {
            "group": pl.Series(keys, dtype=pl.String),
            "name": pl.Series([self.names[key] for key in keys], dtype=pl.String),
            "members": pl.Series([self.members[key] for key in keys], dtype=pl.List(pl.Int32)),
        }
        return GROUPS.shaped(pl.DataFrame(rows))


OPERATIONS = {
    "allreduce": "all_reduce",
    **dict.fromkeys(("allgather", "allgatherv"), "all_gather"),
    **dict.fromkeys(("reducescatter", "reducescatterv"), "reduce_scatter"),
    **dict.fromkeys(("alltoall", "alltoallv", "alltoallvc"), "all_to_all"),
    **{word: word for word in ("broadcast", "reduce", "gather", "scatter", "barrier", "send")},
    **dict.fromkeys(("receive", "recv"), "recv"),
    "batchsendrecv": "send_recv",
}
"""Recorded word in lower case to ours; other words stay as recorded."""


@dataclass(frozen=True)
class CallName:
    """What the name of a call encodes: `hcom_allReduce__690_12_1` is call 12 of the group whose key ends in 690."""

    operation: str
    tag: str | None
    sequence: int | None


@lru_cache(1 << 13)
def read_call_name(name: str) -> CallName:
    """Take the name of a call apart."""
    match = _OP_NAME.match(name)
    place = _PLACE.match(name)
    word = match["operation"] if match else place["word"] if place else name
    word = word.removeprefix("hcom_").removeprefix("Hccl").strip("_")
    operation = OPERATIONS.get(word.replace("_", "").lower(), word or name)
    if match is None:
        return CallName(operation, None, None)
    return CallName(operation, str(int(match["tag"][-9:])), int(match["sequence"]))
