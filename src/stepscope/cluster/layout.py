"""Where collected files go: the layout of the cluster guide, or one directory for each host.

Guide: `cluster_profiler/<id>/profiler/` has the classic files of all devices of a host, told apart by the number of the
device in their names; a rank table says which rank each is. Flat: `<id>/` has what matched, under its own names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stepscope.cluster.listing import Listing, Notes, Wanted
from stepscope.cluster.names import anonymous, host_in
from stepscope.sources.classic.files import kind_of
from stepscope.sources.classic.legacy import FOLDER

Layout = Literal["guide", "flat"]
_PROFILER = "profiler"


@dataclass
class Plan:
    """Where the files of one host go.

    Args:
        targets: Each file and its place, as names below our directory.
        conflicts: Files for which a place is taken by another file of the host.
        kept_names: Names of hosts that stay in the names of files and directories.
        replaced_names: Names of the host in whose place its id is.
    """

    targets: list[tuple[Wanted, tuple[str, ...]]] = field(default_factory=list)
    conflicts: Notes = field(default_factory=Notes)
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
    They are numbered by device if the rank table says so, or if several hosts have the same numbers.
    """
    numbers = {host: _numbers(listing) for host, listing in listings.items()}
    numbers = {host: found for host, found in numbers.items() if found}
    if not numbers:
        return "flat"
    if all(host in seats for host in numbers):
        return "guide" if all(found <= seats[host].devices for host, found in numbers.items()) else "flat"
    every = [number for found in numbers.values() for number in found]
    return "guide" if len(every) > len(set(every)) else "flat"


def plan(listing: Listing, host: int, layout: Layout, own_names: Sequence[str]) -> Plan:
    """Where each file of a host goes.

    Args:
        listing: The files.
        host: Id of the host.
        layout: The layout.
        own_names: Names of the host; where a profiler put one into the name of a directory, the id takes its place.
    """
    made = Plan()
    taken: dict[tuple[str, ...], Wanted] = {}
    roots = set(_profiles(listing)) if layout == "guide" else set()
    for file in listing.files:
        names = _placed(file, roots, host, own_names)
        stated = {found for name in file.names if (found := host_in(name))}
        made.kept_names |= stated & {found for name in names if (found := host_in(name))}
        made.replaced_names |= stated - made.kept_names
        other = taken.setdefault(names, file)
        if other is file:
            made.targets.append((file, names))
        else:
            made.conflicts.add(file.path, f"has the place of {other.path}, which is kept")
    return made


def _placed(file: Wanted, roots: set[tuple[str, ...]], host: int, own_names: Sequence[str]) -> tuple[str, ...]:
    for depth in range(len(file.names) - 1, -1, -1):
        if file.names[:depth] in roots:
            return (FOLDER, str(host), _PROFILER, *file.names[depth:])
    known = frozenset(own_names)
    return (str(host), *(anonymous(name, known, host) for name in file.names))


def _profiles(listing: Listing) -> dict[tuple[str, ...], set[int]]:
    """Directories with files of a classic profile, and the numbers in the names of these."""
    found: dict[tuple[str, ...], set[int]] = defaultdict(set)
    for file in listing.files:
        kind = kind_of(file.names[-1])
        if kind is not None and kind[1] is not None and kind[0] != "profiler_info":  # which others write as well
            found[file.names[:-1]].add(kind[1])
    return found


def _numbers(listing: Listing) -> frozenset[int]:
    return frozenset[int]().union(*_profiles(listing).values())
