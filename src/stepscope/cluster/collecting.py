"""Collecting the profiles of all hosts of a job into one directory; a host that fails costs only its own files."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from stepscope.cluster.copying import Copied, HostCopy, together
from stepscope.cluster.hosts import Host
from stepscope.cluster.landing import Landing
from stepscope.cluster.layout import Layout, Plan, choose, plan_all
from stepscope.cluster.listing import Bounds, Notes
from stepscope.cluster.places import HostFailed
from stepscope.cluster.rank_tables import anonymous_table, read_rank_table, seats, servers
from stepscope.cluster.reaching import Reached, open_connections, reach
from stepscope.errors import StepscopeError
from stepscope.present import plural
from stepscope.sources.rank_tables import TABLE
from stepscope.store.packed import SUFFIX, facts_of_packed, problem_of_packed

State = Literal["complete", "partial", "failed"]


_RANKS_UNKNOWN = (
    "several hosts have files of the same numbers. If these are numbers of devices, the ranks are unknown here: only "
    "the layout of the guide takes them from a rank table. Collect with --rank-table hccl.json, without --layout flat "
    "and without --summaries"
)


@dataclass(frozen=True)
class Order:
    """What to collect.

    Args:
        hosts: The hosts.
        sources: Patterns of directories, for hosts that state none.
        output: The directory to collect into.
        jobs: Hosts at a time.
        resume: Go on with what an earlier call has left.
        layout: How files are placed; None to choose by what is found.
        rank_table: The rank table of the job, if there is one.
        known_hosts: File with the keys of hosts; None for the usual ones.
        bounds: What is taken at most.
        summaries: Have the hosts read the recordings, and copy only what was read.
    """

    hosts: Sequence[Host]
    sources: Sequence[str]
    output: Path
    jobs: int = 8
    resume: bool = False
    layout: Layout | None = None
    rank_table: Path | None = None
    known_hosts: Path | None = None
    bounds: Bounds = field(default_factory=Bounds)
    summaries: bool = False


@dataclass(frozen=True)
class Progress:
    """How far collecting has come."""

    bytes: int = 0
    of_bytes: int = 0
    files: int = 0
    of_files: int = 0
    hosts: int = 0
    of_hosts: int = 0


Watch = Callable[[Progress], None]


@dataclass
class Outcome:
    """What came of one host.

    Args:
        host: Its id.
        name: What the user calls it; in no file but the mapping.
        state: Whether all of its files are there.
        reason: Why not all are; None if they are.
        copied: Its files.
        skipped: Links and devices, which are never copied.
        kept_names: Names of hosts in the names of its files.
    """

    host: int
    name: str
    state: State = "failed"
    reason: str | None = None
    copied: Copied = field(default_factory=Copied)
    skipped: Notes = field(default_factory=Notes)
    kept_names: tuple[str, ...] = ()


@dataclass
class Collected:
    """What was collected.

    Args:
        output: The directory.
        layout: How files were placed.
        outcomes: Of each host, by id.
        warnings: What a user should know.
    """

    output: Path
    layout: str
    outcomes: list[Outcome]
    warnings: list[str] = field(default_factory=list)


def collect(order: Order, watch: Watch | None = None) -> Collected:
    """Collect the profiles of some hosts.

    Args:
        order: What to collect.
        watch: Called a few times a second with how far it has come.

    Raises:
        StepscopeError: If nothing can be begun: the directory, the rank table or a library is the reason.
    """
    table = None if order.rank_table is None else read_rank_table(order.rank_table)
    if table is not None and not servers(table):
        raise StepscopeError(f"{order.rank_table}: lists no servers. Pass the rank table (hccl.json) of the job")
    by_ssh = any(host.address for host in order.hosts)
    connections = open_connections(order.known_hosts) if by_ssh else None
    landing = Landing(order.output, resume=order.resume)
    try:
        return _run_to_end(_Collection(order, landing, connections, table, watch).run())
    finally:
        landing.close()


def _run_to_end(work: Coroutine[Any, Any, Collected]) -> Collected:
    """Run until it ends; what SIGTERM raises would be lost inside of it, so it is raised anew behind it."""
    before = signal.getsignal(signal.SIGTERM)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        return asyncio.run(work)
    came: list[int] = []

    async def run() -> Collected:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        stop = task.cancel

        def end() -> None:
            came.append(signal.SIGTERM)
            stop()

        loop.add_signal_handler(signal.SIGTERM, end)
        return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        if not came:
            raise
        signal.signal(signal.SIGTERM, before)
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


class _Collection:
    """One call of `collect`."""

    def __init__(
        self, order: Order, landing: Landing, connections: Any, table: Mapping[str, Any] | None, watch: Watch | None
    ) -> None:
        self.order = order
        self.landing = landing
        self.connections = connections
        self.table = table
        self.watch = watch
        self.warnings: list[str] = []
        self.mapping = landing.mapping()
        free = max(self.mapping.values(), default=0) + 1
        self.hosts: dict[int, Host] = {}
        for host in order.hosts:
            number = self.mapping.get(host.label)
            if number is None:
                number, free = free, free + 1
                self.mapping[host.label] = number
            self.hosts[number] = host
        self.outcomes = {number: Outcome(number, host.name) for number, host in self.hosts.items()}
        self.reached: dict[int, Reached] = {}
        self.limit = asyncio.Semaphore(order.jobs)
        self.done = Progress()

    async def run(self) -> Collected:
        """Reach all hosts, decide where their files go, and copy them."""
        self.landing.write_mapping(list(self.mapping.items()))
        try:
            await self._for_all(self.hosts, self._reach)
            layout = self._layout()
            listings = {number: reached.listing for number, reached in self.reached.items()}
            names = {number: host.names for number, host in self.hosts.items()}
            plans = plan_all(listings, layout, names | {number: one.own_names for number, one in self.reached.items()})
            self._note_names(plans)
            self._write_table()
            files = [file for made in plans.values() for file, _ in made.targets]
            self.done = Progress(
                of_bytes=sum(file.size for file in files), of_files=len(files), of_hosts=len(self.reached)
            )
            await self._for_all(plans, lambda number: self._copy(number, plans[number]))
            if self.order.summaries and self._ranks_repeat(plans):
                self.warnings.append(_RANKS_UNKNOWN)
        finally:
            await asyncio.gather(*(one.leave() for one in self.reached.values()), return_exceptions=True)
            if self.connections is not None:
                await self.connections.close()
        return Collected(self.order.output, layout, [self.outcomes[n] for n in sorted(self.outcomes)], self.warnings)

    async def _for_all(self, numbers: Mapping[int, Any], work: Callable[[int], Awaitable[None]]) -> None:
        async def limited(number: int) -> None:
            async with self.limit:
                await work(number)

        await together([limited(number) for number in numbers])

    async def _reach(self, number: int) -> None:
        host, order = self.hosts[number], self.order
        try:
            self.reached[number] = await reach(
                host, number, order.sources, self.landing, order.bounds, self.connections, order.summaries
            )
        except HostFailed as error:
            self.outcomes[number].reason = str(error)
        except OSError as error:
            self.outcomes[number].reason = f"cannot be read: {error.strerror or error}"
        except StepscopeError:
            raise
        except Exception as error:  # whatever one host does, the others arrive
            self.outcomes[number].reason = _unforeseen(error)

    def _layout(self) -> Layout:
        listings = {number: reached.listing for number, reached in self.reached.items()}
        chosen = self.order.layout or ("flat" if self.order.summaries else None)
        noted = self.landing.layout
        if noted and chosen and noted != chosen:
            raise StepscopeError(f"{self.order.output}: has the layout {noted}. Resume with --layout {noted}")
        known = {} if self.table is None else seats(self.table, self._ids())
        layout: Layout = "guide" if noted == "guide" else "flat" if noted else chosen or choose(listings, known)
        if listings:
            self.landing.decide(layout)
        if layout == "guide" and self.table is None:
            self.warnings.append(
                "without a rank table it is unknown which rank each device was. Pass the job's hccl.json with "
                "--rank-table"
            )
        elif layout == "flat" and not self.order.summaries and choose(listings, known) == "guide":
            self.warnings.append(_RANKS_UNKNOWN)
        return layout

    def _ids(self) -> dict[str, int]:
        """Ids of hosts by each name that only one of them has."""
        own: dict[str, set[int]] = {}
        for number, host in self.hosts.items():
            reached = self.reached.get(number)
            for name in (*host.names, *(reached.own_names if reached else ())):
                own.setdefault(name, set()).add(number)
        alone = {name: next(iter(numbers)) for name, numbers in own.items() if len(numbers) == 1}
        return {**alone, **self.mapping}

    def _note_names(self, plans: Mapping[int, Plan]) -> None:
        """Note names that were replaced in the mapping, so that they can be found again, and those that were not."""
        ids = self._ids()
        for number, made in plans.items():
            self.outcomes[number].kept_names = tuple(sorted(made.kept_names))
            if made.twin is not None:
                self.warnings.append(
                    f"host {number} has the same files as host {made.twin}, by name, size and time. If they share a "
                    "directory, list only one of them"
                )
            self.mapping |= {name: number for name in sorted(made.replaced_names) if ids.get(name) == number}
        self.landing.write_mapping(list(self.mapping.items()))

    def _write_table(self) -> None:
        if self.table is None:
            return
        if not self.landing.add_file(TABLE, anonymous_table(self.table, self._ids())):
            self.warnings.append(f"{TABLE} differs from the rank table of this call; it is kept")
        strangers = sum(str(server.get("server_id")) not in self._ids() for server in servers(self.table))
        if strangers:
            self.warnings.append(
                f"the rank table has {strangers} servers that are none of the hosts. State their `server_id` in the "
                "hosts file"
            )

    async def _copy(self, number: int, made: Plan) -> None:
        reached, outcome = self.reached[number], self.outcomes[number]
        copying = HostCopy(number, reached.place, self.landing, self.order.bounds, self._advance)
        try:
            copied = await copying.copy(made)
        except Exception as error:  # whatever one host does, the others arrive
            copied = copying.result
            copied.failure = _unforeseen(error)
        for notes in (reached.listing.refused, reached.unread, made.conflicts):
            copied.missing.extend(notes)
        if self.order.summaries:
            self._check_packed(made, copied)
        outcome.copied, outcome.skipped = copied, reached.listing.skipped
        count = copied.missing.count
        outcome.reason = copied.failure or (f"{plural(count, 'file')} not copied" if count else None)
        outcome.state = "complete" if outcome.reason is None else "partial" if copied.files else "failed"
        self._advance(0, 0, hosts=1)

    def _check_packed(self, made: Plan, copied: Copied) -> None:
        """Note packed recordings that this version cannot open."""
        for file, target in made.targets:
            place = self.order.output.joinpath(*target)
            if target[-1].endswith(SUFFIX) and place.is_file() and (problem := problem_of_packed(place)):
                copied.missing.add(file.path, problem)

    def _ranks_repeat(self, plans: Mapping[int, Plan]) -> bool:
        """Whether packed recordings of several hosts have one rank, and only the names of their files state it."""
        hosts: dict[int, set[int]] = {}
        for number, made in plans.items():
            for _, target in made.targets:
                place = self.order.output.joinpath(*target)
                facts = facts_of_packed(place) if target[-1].endswith(SUFFIX) and place.is_file() else {}
                if facts.get("rank_origin") == "file name" and isinstance(facts.get("rank"), int):
                    hosts.setdefault(facts["rank"], set()).add(number)
        return any(len(of_rank) > 1 for of_rank in hosts.values())

    def _advance(self, size: int, files: int, hosts: int = 0) -> None:
        now = self.done
        self.done = Progress(
            now.bytes + size, now.of_bytes, now.files + files, now.of_files, now.hosts + hosts, now.of_hosts
        )
        if self.watch is not None:
            self.watch(self.done)


def _unforeseen(error: Exception) -> str:
    """The reason of an error that nobody expected; with `--debug` its traceback is printed."""
    if os.environ.get("STEPSCOPE_DEBUG"):
        traceback.print_exception(error)
    return f"internal error ({type(error).__name__}). Run the command again with --debug and report the output"
