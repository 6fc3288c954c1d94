"""Where the ranks of a job are and which of them run the same program, from what they said of themselves."""

from __future__ import annotations

import re
from itertools import pairwise

from stepscope.live.messages import Hello

_PIPELINE = re.compile(r"(^|[^a-z])(pp|pipe(line)?|pipeline_model_parallel)([^a-z]|$)", re.IGNORECASE)
_DATA = re.compile(r"(^|[^a-z])(dp|ddp|fsdp|hsdp|data(_parallel)?|replicate|shard)([^a-z]|$)", re.IGNORECASE)
Members = tuple[int, ...]


class Layout:
    """Hosts, groups and programs of the ranks that are known.

    A program is a pipeline stage: the ranks at one position of their pipeline groups. Groups are pipelines if they are
    named so or are used to send. If no group has such a name, but the job has several ways to divide its ranks, those
    that reach farthest may be pipelines; then ranks are only compared within what would be a stage, and with their own
    history. In jobs with one group, all ranks run one program.
    """

    def __init__(self) -> None:
        self.hosts: dict[int, str] = {}
        self.world = 0
        """Number of ranks that the job has or that were seen."""
        self._groups: dict[str, tuple[Members, str]] = {}
        self._sending: set[Members] = set()
        self._stages: dict[int, int] = {}
        self._units: dict[int, list[tuple[str, Members]]] = {}
        self._stale = False
        self.is_sure = True
        """Whether programs are known, not guessed."""

    def hello(self, hello: Hello) -> None:
        """A rank registers."""
        self.hosts[hello.rank] = hello.host
        self.world = max(self.world, min(hello.world_size or 0, 10 * len(self.hosts) + 65_536), len(self.hosts))
        for group in hello.groups[:256]:
            members = tuple(sorted(set(group.members)))
            if len(members) > 1:
                self._groups[group.key] = (members, group.name)
        self._stale = True

    def left(self, rank: int) -> None:
        """A rank no longer takes part. Its place in groups stays, as it may return."""
        self.hosts.pop(rank, None)
        self._stale = True

    def sends_in(self, group: str) -> None:
        """Ranks of a group send to each other."""
        known = self._groups.get(group)
        if known is not None and known[0] not in self._sending:
            self._sending.add(known[0])
            self._stale = True

    def members(self, group: str) -> Members:
        """The members of a group; empty if unknown."""
        return self._groups.get(group, ((), ""))[0]

    def program(self, rank: int) -> int:
        """What identifies the program of a rank."""
        self._refresh()
        return self._stages.get(rank, 0)

    def on_host(self, host: str) -> list[int]:
        """The ranks of a host, sorted."""
        return sorted(rank for rank, of in self.hosts.items() if of == host)

    def parts(self, rank: int) -> list[tuple[str, Members]]:
        """Groups of a rank that are neither all ranks nor data parallel, smallest first: key and members."""
        self._refresh()
        return self._units.get(rank, [])

    def _refresh(self) -> None:
        if not self._stale:
            return
        self._stale = False
        ranks = set(self.hosts)
        partial = {m: name for m, name in self._groups.values() if len(m) < max(len(ranks), 2)}
        pipelines = [m for m, name in self._groups.values() if _PIPELINE.search(name)] or sorted(self._sending)
        self.is_sure = True
        if not pipelines:
            pipelines = self._farthest(partial)
            self.is_sure = not pipelines
        stages: dict[int, int] = {}
        for members in sorted(pipelines):
            for position, rank in enumerate(members):
                stages[rank] = max(position, stages.get(rank, 0))
        self._stages = stages
        self._units = {}
        for key, (members, name) in sorted(self._groups.items(), key=lambda item: (len(item[1][0]), item[0])):
            if len(members) < len(ranks) and not _DATA.search(name) and members not in pipelines:
                for rank in members:
                    self._units.setdefault(rank, []).append((key, members))

    @staticmethod
    def _farthest(partial: dict[Members, str]) -> list[Members]:
        """The groups that may be pipelines: those whose members are farthest apart, without names."""
        if any(_DATA.search(name) for name in partial.values()):
            return []
        strides: dict[int, list[Members]] = {}
        for members in partial:
            strides.setdefault(_stride(members), []).append(members)
        return strides[max(strides)] if len(strides) > 1 else []


def _stride(members: Members) -> int:
    return min((b - a for a, b in pairwise(members)), default=0)
