"""Where collected files go: the layout of the cluster guide, or a flat one.

Guide: `cluster_profiler/<id>/profiler/` has the classic files of all devices of a host, told apart by the number of the
device in their names; a rank table says which rank each is. Flat: `<id>/` has what matched, under its own names; but
classic files numbered by rank, which the hosts of a job have in directories of one name, are put together in one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from stepscope.cluster.listing import Listing, Notes, Wanted
from stepscope.cluster.names import HostNames, anonymous, host_in
from stepscope.sources.classic.files import kind_of
from stepscope.sources.classic.legacy import FOLDER

Layout = Literal["guide", "flat"]
Names = tuple[str, ...]
_PROFILER = "profiler"
_SECOND = 1_000_000_000


@dataclass
class Plan:
    """Where the files of one host go.

    Args:
        targets: Each file and its place, as names below our directory.
        conflicts: Files for which a place is taken by another file of the host.
        twin: Another host with the same files by name, size and time; None if there is none.
        kept_names: Names of hosts that stay in the names of files and directories.
        replaced_names: Names of the host in whose place its id is.
    """

    targets: list[tuple[Wanted, Names]] = field(default_factory=list)
    conflicts: Notes = field(default_factory=Notes)
    twin: int | None = None
    kept_names: set[str] = field(default_factory=set)
    replaced_names: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seats:
    """The devices and the ranks of a host, by a rank table."""

    devices: frozenset[int]
    ranks: frozenset[int]


def choose(listings: Mapping[int, Listing], seats: Mapping[int, Seats]) -> Layout:
    """The layout for what was found on the hosts, by id.

    The guide's layout is for classic files numbered by device; files numbered by rank need no table, and stay apart.
    They are numbered by device if the rank table says so, or if several hosts have different files of one number. Since
    there is `profiler_info`, they are numbered by rank: what several hosts have then are copies.
    """
    profiles = {host: found for host, listing in listings.items() if (found := _profiles(listing))}
    numbers = {host: _numbers(found) for host, found in profiles.items()}
    if not numbers:
        return "flat"
    if all(host in seats for host in numbers):
        return "guide" if all(found <= seats[host].devices for host, found in numbers.items()) else "flat"
    if any(_has_info(listing) for listing in listings.values()):
        return "flat"
    every = [number for _, number in {one for host in profiles for one in _signatures(listings[host])}]
    return "guide" if len(every) > len(set(every)) else "flat"


def plan_all(
    listings: Mapping[int, Listing], layout: Layout, own_names: Mapping[int, Sequence[str]]
) -> dict[int, Plan]:
    """Where each file of each host goes.

    Args:
        listings: The files, by the id of the host.
        layout: The layout.
        own_names: Names of each host; where a profiler put one into the name of a directory, the id takes its place.
    """
    taken: dict[Names, tuple[int, Wanted]] = {}
    hosts = HostNames(own_names)
    replaced: dict[str, int] = {}
    plans: dict[int, Plan] = {}
    for host in sorted(listings):
        listing = _without_hosts(listings[host], host, hosts, replaced)
        plans[host] = _plan(listing, host, layout, own_names[host], taken)
    for name, host in replaced.items():
        if host in plans:
            plans[host].replaced_names.add(name)
    seen: dict[frozenset[tuple[Names, int, int]], int] = {}
    for host, made in plans.items():
        facts = frozenset((file.names, file.size, file.changed_ns // _SECOND) for file in listings[host].files)
        twin = seen.setdefault(facts, host)
        made.twin = None if twin == host else twin
    return plans


def _without_hosts(listing: Listing, host: int, hosts: HostNames, replaced: dict[str, int]) -> Listing:
    """A listing with ids in the place of names of hosts; these are added to `replaced`."""
    known: dict[str, str] = {}
    files: list[Wanted] = []
    for file in listing.files:
        for name in file.names:
            if name not in known:
                known[name], found = hosts.without(name, host)
                replaced |= found
        match, below = (tuple(known[name] for name in names) for names in (file.match, file.below))
        changed = (match, below) != (file.match, file.below)
        files.append(replace(file, match=match, below=below) if changed else file)
    return replace(listing, files=files)


def _plan(
    listing: Listing, host: int, layout: Layout, own_names: Sequence[str], taken: dict[Names, tuple[int, Wanted]]
) -> Plan:
    made = Plan()
    known = frozenset(own_names)
    roots = _roots(listing, host, layout, taken)
    for file in listing.files:
        alone = (str(host), *(anonymous(name, known, host) for name in file.names))
        names = _in_profile(file, roots) or alone
        if names != alone and names in taken and taken[names][0] != host:
            names = alone
        owner, other = taken.setdefault(names, (host, file))
        if other is file:
            made.targets.append((file, names))
        else:
            made.conflicts.add(file.path, f"has the place of {other.path} of host {owner}, which is kept")
        stated = {found for name in file.names if (found := host_in(name))}
        made.kept_names |= stated & {found for name in names if (found := host_in(name))}
        made.replaced_names |= stated - made.kept_names
    return made


def _roots(listing: Listing, host: int, layout: Layout, taken: Mapping[Names, object]) -> dict[Names, Names]:
    """The directories with classic profiles that are put together, and the place of each.

    In the flat layout, one that has a rank of another host's stays apart: it is of another job, or a copy.
    """
    roots: dict[Names, Names] = {}
    for root in _profiles(listing):
        if layout == "guide":
            roots[root] = (FOLDER, str(host), _PROFILER)
        elif not root or not (root[0].isdecimal() or root[0].startswith(".") or root[0] == FOLDER):
            roots[root] = root or (_PROFILER,)
    for file in listing.files if layout == "flat" else ():
        kind = kind_of(file.names[-1])
        if kind is not None and kind[1] is not None and _in_profile(file, roots) in taken:
            roots.pop(file.names[:-1], None)
    return roots


def _in_profile(file: Wanted, roots: Mapping[Names, Names]) -> Names | None:
    """The place of a file in the classic profile that it belongs to; None if it belongs to none."""
    for depth in range(len(file.names) - 1, -1, -1):
        if (place := roots.get(file.names[:depth])) is not None:
            return (*place, *file.names[depth:])
    return None


def _profiles(listing: Listing) -> dict[Names, set[int]]:
    """Directories with files of a classic profile, and the numbers in the names of these."""
    found: dict[Names, set[int]] = defaultdict(set)
    for file in listing.files:
        kind = kind_of(file.names[-1])
        if kind is not None and kind[1] is not None and kind[0] != "profiler_info":  # which others write as well
            found[file.names[:-1]].add(kind[1])
    return found


def _numbers(profiles: Mapping[Names, set[int]]) -> frozenset[int]:
    return frozenset[int]().union(*profiles.values())


def _has_info(listing: Listing) -> bool:
    return any((kind := kind_of(file.names[-1])) is not None and kind[0] == "profiler_info" for file in listing.files)


def _signatures(listing: Listing) -> set[tuple[frozenset[tuple[str, int, int]], int]]:
    """The files of each number: the same ones on two hosts are one shared directory."""
    found: dict[int, set[tuple[str, int, int]]] = defaultdict(set)
    for file in listing.files:
        kind = kind_of(file.names[-1])
        if kind is not None and kind[1] is not None:
            found[kind[1]].add((file.names[-1], file.size, file.changed_ns // _SECOND))
    return {(frozenset(files), number) for number, files in found.items()}
