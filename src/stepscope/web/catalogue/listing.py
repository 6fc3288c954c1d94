"""From the inputs below a root to entries: what is read is grouped into jobs, the rest stands for itself."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from stepscope.paths import shown
from stepscope.plugins import FAILURES
from stepscope.run.job import Job
from stepscope.run.jobs import group, name_of
from stepscope.store import Recording, StoredRecording
from stepscope.tables.issues import Issue
from stepscope.web.catalogue.entry import Entry, digest, identity
from stepscope.web.catalogue.finding import Below, Name

_MOST_ALONE = 5
"""So many unreadable files of one directory are listed by themselves, more of them as one; chosen by us."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listed:
    """An entry with what it is made of.

    Args:
        entry: Without what an analysis found.
        job: Its recordings; None if none is read.
        unread: Its inputs that could not be read.
        names: Its inputs that are still to be read, or read again.
    """

    entry: Entry
    job: Job | None = None
    unread: Sequence[Issue] = ()
    names: frozenset[Name] = frozenset()

    @cached_property
    def directories(self) -> list[Path]:
        """Where the store has its rows."""
        members = [] if self.job is None else self.job.members
        recordings = [one.recording for one in members]
        recordings += [one.supplement.recording for one in members if one.supplement is not None]
        return [recording.directory for recording in recordings if isinstance(recording, StoredRecording)]


def grouped(below: Below) -> list[Job]:
    """The jobs of all that is read below a root; what cannot be sorted together is sorted by directory."""
    recordings = [slot.recording for slot in below.slots.values() if slot.recording is not None]
    try:
        return group(recordings)
    except FAILURES:
        _LOG.exception("the recordings below %s cannot be sorted into jobs together", below.root)
    homes: dict[Path, list[Recording]] = defaultdict(list)
    for recording in recordings:
        homes[recording.path.parent].append(recording)
    jobs = []
    for some in homes.values():
        try:
            jobs.extend(group(some))
        except FAILURES:
            _LOG.exception("recordings in %s cannot be sorted into jobs", some[0].path.parent)
    return jobs


def listed(below: Below, jobs: Sequence[Job]) -> list[Listed]:
    """All entries below a root."""
    return list(_Listing(below, jobs).all())


@dataclass
class _Place:
    """A job, and what else belongs to it."""

    job: Job
    unread: list[Issue] = field(default_factory=list)
    names: set[Name] = field(default_factory=set)

    @cached_property
    def members(self) -> frozenset[Path]:
        return frozenset(one.recording.path for one in self.job.members)

    @cached_property
    def homes(self) -> frozenset[Path]:
        """Directories in which another input would belong to the job."""
        if len(self.members) == 1:
            return frozenset()
        return frozenset([self.job.path, *(path.parent for path in self.members)])


class _Listing:
    def __init__(self, below: Below, jobs: Sequence[Job]) -> None:
        self._below = below
        self._places = [_Place(job) for job in jobs]
        self._of_home: dict[Path, int] = {}
        """The first job to which other inputs of a directory belong, and..."""
        self._of_member: dict[Path, int] = {}
        """... the first that has a recording; both by number."""
        for number, place in enumerate(self._places):
            self._of_home.update((home, number) for home in place.homes if home not in self._of_home)
            self._of_member.update((path, number) for path in place.members if path not in self._of_member)

    def all(self) -> Iterator[Listed]:
        alone: dict[Path, list[Name]] = defaultdict(list)
        failed: list[tuple[Path, Issue]] = []
        for name, slot in self._below.slots.items():
            if slot.state != "done":
                place = self._place(slot.item.path)
                if place is not None:
                    place.names.add(name)
                elif slot.recording is None:
                    alone[slot.home].append(name)
            elif slot.refused is not None:
                failed.append((slot.item.path, slot.refused))
        failed.extend((Path(issue.file), issue) for issue in self._below.problems if Path(issue.file).is_absolute())
        left = []
        for path, issue in failed:
            place = self._place(path)
            if place is None:
                left.append((path, issue))
            else:
                place.unread.append(issue)
        for number, place in self._numbered():
            yield self._of_job(place, number)
        for home, names in alone.items():
            yield self._waiting(home, names)
        yield from self._failed(left)

    def _place(self, path: Path) -> _Place | None:
        """The job to which a file or directory belongs; looked up, as there may be a thousand of both."""
        found = [self._of_home.get(path.parent), *(self._of_member.get(above) for above in (path, *path.parents))]
        first = min((number for number in found if number is not None), default=None)
        return None if first is None else self._places[first]

    def _numbered(self) -> Iterator[tuple[int, _Place]]:
        """Each job with its number among those of the same path, by time: later ones leave the numbers as they are."""
        same: dict[Path, list[_Place]] = defaultdict(list)
        for place in self._places:
            same[place.job.path].append(place)
        for places in same.values():
            yield from enumerate(sorted(places, key=lambda place: (_start(place.job) or 0, place.job.name)))

    def _entry(self, path: Path, files: Iterable[Path], name: str, number: int = 0) -> Entry:
        root, files = self._below.root, list(files)
        relative = shown(path.relative_to(root)) if path.is_relative_to(root) else shown(path)
        return Entry(
            id=identity(name_of(path), relative, *([number] if number else [])),
            name=shown(name),
            path=path,
            root=root,
            relative=relative,
            state="waiting",
            changed_ns=self._below.seen.changed_ns(files),
            input_bytes=self._below.seen.size_bytes(files),
        )

    def _of_job(self, place: _Place, number: int) -> Listed:
        job = place.job
        recordings = [one.recording for one in job.members]
        facts = [recording.facts for recording in recordings]
        files = {file for recording in recordings for file in recording.files}
        entry = replace(
            self._entry(job.path, files, job.name, number),
            formats=_kinds(facts, "format"),
            frameworks=_kinds(facts, "framework"),
            devices=_kinds(facts, "device_kind"),
            ranks=len(recordings),
            world_size=max((one["world_size"] for one in facts if one.get("world_size") is not None), default=None),
            steps=_steps(recordings),
            start_ns=_start(job),
            unread=sum(issue.inputs or 1 for issue in place.unread),
            stamp=_stamp(job, place.unread),
        ).with_problem(place.unread)
        return Listed(entry, job, tuple(place.unread), frozenset(place.names))

    def _waiting(self, home: Path, names: Sequence[Name]) -> Listed:
        slots = [self._below.slots[name] for name in names]
        path = slots[0].item.path if len({slot.item.path for slot in slots}) == 1 else home
        files = {file for slot in slots for file in slot.item.files}
        entry = self._entry(path, files, name_of(path))
        if all(slot.state == "written" for slot in slots):
            entry = entry.with_problem(notes=["written"])
        formats = tuple(sorted({slot.item.source for slot in slots}))
        return Listed(replace(entry, formats=formats, stamp=digest(*names)), names=frozenset(names))

    def _failed(self, failed: Sequence[tuple[Path, Issue]]) -> Iterator[Listed]:
        homes: dict[Path, dict[Path, list[Issue]]] = defaultdict(lambda: defaultdict(list))
        for path, issue in failed:
            homes[path.parent][path].append(issue)
        for home, paths in homes.items():
            groups = list(paths.items())
            if len(groups) > _MOST_ALONE and home != self._below.root:
                groups = [(home, [issue for some in paths.values() for issue in some])]
            for path, issues in groups:
                entry = self._entry(path, [path], name_of(path))
                stamp = digest(*issues)
                failing = replace(entry, state="failed", unread=len(issues), stamp=stamp)
                yield Listed(failing.with_problem(issues))


def _steps(recordings: Sequence[Recording]) -> int | None:
    """How many steps a rank has, until the run says how many there are; a single row may be of the whole recording."""
    rows = max((recording.rows.get("steps", 0) for recording in recordings), default=0)
    return rows if rows > 1 else None


def _start(job: Job) -> int | None:
    starts = (one.recording.facts.get("start_ns") for one in job.members)
    return min((start for start in starts if start is not None), default=None)


def _kinds(facts: Sequence[Mapping[str, object]], name: str) -> tuple[str, ...]:
    return tuple(sorted({str(one[name]) for one in facts if one.get(name) is not None}))


def _stamp(job: Job, unread: Sequence[Issue]) -> str:
    """Identifies the data of a run."""
    parts: list[object] = [job.path, job.name, *job.issues, *unread]
    for one in job.members:
        recordings = [one.recording, *([one.supplement.recording] if one.supplement else [])]
        parts.append((one.rank, one.origin))
        for recording in recordings:
            if isinstance(recording, StoredRecording):
                parts.append((recording.directory.name, recording.manifest.created_ns))
    return digest(*parts)
