"""Which recordings belong together: ranks of one job, recorded at the same time."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from stepscope.paths import natural
from stepscope.run.job_folders import common_folders
from stepscope.sources.registry import family_of
from stepscope.store.recording import Recording
from stepscope.tables.issues import Issue

_WHOLE = 0.9
"""A recording with less than this share of a rival's rows was cut short."""

_NAMELESS = ("recording", "profiler", "cluster_profiler")
"""Directories that a recorder creates in every output path, whose names do not identify the job."""

_MADE = re.compile(r".*_\d{14,}_ascend_(?:pt|ms)|rank[_-]?\d+")
"""Names of rank directories created by profilers: host, process and time, or the rank."""

_CALLS_ONLY = frozenset({"ranks", "groups", "stacks", "rank_figures", "recorded_calls", "issues"})
"""Tables of dumps of a flight recorder, which say of a job no more than why it hangs."""

BARE = frozenset({"ranks", "groups", "steps", "slices", "rank_figures", "issues"})
"""Tables that hold only marks and information about the rank."""

SLACK_NS = 10_000_000_000
"""How much host clocks may differ, and recordings may start apart, in one job."""


@dataclass(frozen=True)
class Member:
    """A recording and its rank in the job."""

    rank: int
    origin: str
    recording: Recording


@dataclass
class Job:
    """Recordings that form one run; `newest` orders jobs (ns since the epoch)."""

    members: list[Member]
    name: str
    path: Path
    newest: int
    issues: list[Issue]


@dataclass(frozen=True)
class _Piece:
    """A recording with the data needed to group it; times are ns since the epoch.

    Args:
        recording: The recording.
        rank: Its rank; None if not recorded.
        world_size: Recorded number of ranks; None if not recorded.
        window: Its start and end; None unless both are known.
        written: When its newest file was written; 0 if unknown.
    """

    recording: Recording
    rank: int | None
    world_size: int | None
    window: tuple[int, int] | None
    written: int

    @property
    def size(self) -> int:
        """The number of rows of all tables."""
        return sum(self.recording.rows.values())

    @property
    def directory(self) -> Path:
        return self.recording.path.parent

    @property
    def family(self) -> str:
        """Family of its format, also if it was packed; only recordings of one family can be ranks of one job."""
        return family_of(str(self.recording.facts.get("format") or self.recording.source))

    @property
    def who(self) -> Hashable:
        """A key that two recordings of one rank have in common, as far as known."""
        facts = self.recording.facts
        if self.rank is not None:
            return self.rank
        if facts.get("process") is not None:
            return (facts.get("host"), facts["process"])
        return str(self.recording.path)

    @property
    def is_anonymous(self) -> bool:
        """Whether only its path distinguishes it from others."""
        return isinstance(self.who, str)

    @property
    def start(self) -> int:
        """Its start; far in the past if unknown."""
        return 0 if self.window is None else self.window[0]

    @property
    def end(self) -> int:
        """Its end; far in the past if unknown."""
        return 0 if self.window is None else self.window[1]

    @property
    def order(self) -> tuple[int, list[tuple[int, str]]]:
        """Sort key: by time, then by name in natural order."""
        return (self.start, natural(str(self.recording.path)))


def group(recordings: Iterable[Recording]) -> list[Job]:
    """Group recordings into jobs: dumps of calls last, else largest first, then those with recorded work, then newest.

    A profiler with a repeating schedule may leave a last recording that had just begun, without any work. Recordings
    belong to one job if their windows overlap (within `SLACK_NS`), their formats are of one family and their recorded
    world sizes agree. Successive recordings of each rank become separate runs. A second recording of a rank at the same
    time is a copy, or belongs to another job if it is in another directory.
    """
    pieces, issues = _without_copies(sorted(map(_piece, recordings), key=lambda piece: piece.order))
    jobs: list[Job] = []
    for cluster in _clusters(pieces):
        for part in _split_by_directory(cluster):
            unique, dropped = _without_rivals(part)
            runs = [_job(run) for run in _in_sequence(unique)]
            for issue in dropped:
                runs[0].issues.append(issue)
            jobs.extend(runs)
    for job in jobs:
        paths = {str(member.recording.path) for member in job.members}
        job.issues.extend(issue for kept, issue in issues if kept in paths)
    jobs.sort(key=lambda job: (_is_dump(job), -len(job.members), _is_bare(job), -job.newest, job.name))
    _tell_apart(jobs)
    return jobs


def _is_bare(job: Job) -> bool:
    """Whether a job holds only marks of steps."""
    return all(BARE.issuperset(member.recording.rows) for member in job.members)


def _is_dump(job: Job) -> bool:
    """Whether a job is dumps of a flight recorder, which may lie beside its recordings."""
    return all(_CALLS_ONLY.issuperset(member.recording.rows) for member in job.members) and any(
        "recorded_calls" in member.recording.rows for member in job.members
    )


def _piece(recording: Recording) -> _Piece:
    facts = recording.facts
    written = 0
    for file in recording.files:
        with suppress(OSError):
            written = max(written, file.stat().st_mtime_ns)
    start, end = facts.get("start_ns"), facts.get("end_ns")
    window = None if start is None or end is None else (start, end)
    return _Piece(recording, facts.get("rank"), facts.get("world_size"), window, written)


def _without_copies(pieces: Sequence[_Piece]) -> tuple[list[_Piece], list[tuple[str, Issue]]]:
    """Of recordings with the same rank and identical window, keep the newest file."""
    alike: dict[Hashable, list[_Piece]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        same = (piece.family, piece.world_size, piece.who, piece.window)
        alike[number if piece.window is None else same].append(piece)
    kept: list[_Piece] = []
    issues: list[tuple[str, Issue]] = []
    for copies in alike.values():
        best = max(copies, key=lambda piece: piece.written)
        kept.append(best)
        issues.extend((str(best.recording.path), _rival(piece, best)) for piece in copies if piece is not best)
    return kept, issues


def _clusters(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Recordings that may belong to one job, by family, world size and time."""
    classes: dict[tuple[str, int | None, Path | None, bool], list[_Piece]] = defaultdict(list)
    stated: dict[Hashable, set[int]] = defaultdict(set)
    for piece in pieces:
        if piece.world_size is not None:
            stated[piece.family, piece.directory].add(piece.world_size)
    timeless = [piece for piece in pieces if piece.window is None]
    homes = common_folders((piece.directory, piece.family, piece.world_size, piece.rank) for piece in timeless)
    for piece in pieces:
        sizes = stated[piece.family, piece.directory]
        # A recording without a world size joins those in the same folder, if they agree.
        world_size = next(iter(sizes)) if len(sizes) == 1 else piece.world_size
        # Without any name, only recordings in one folder can be ranks of one job.
        here = homes.get(piece.directory, piece.directory)
        folder = here if piece.window is None or piece.is_anonymous else None
        classes[piece.family, world_size, folder, piece.window is None].append(piece)
    timed: dict[Hashable, list[list[_Piece]]] = defaultdict(list)
    clusters: list[list[_Piece]] = []
    for (family, world_size, folder, has_no_times), members in sorted(classes.items(), key=lambda c: c[0][-1]):
        for cluster in _overlapping(members):
            same_folder = timed[family, world_size, folder] if has_no_times else []
            if len(same_folder) == 1:  # recordings without times join the only job in their folder
                same_folder[0].extend(cluster)
                continue
            clusters.append(cluster)
            for directory in {piece.directory for piece in cluster}:
                timed[family, world_size, directory].append(cluster)
    return clusters


def _overlapping(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Chains of recordings that overlap in time; those without times form one chain."""
    clusters: list[list[_Piece]] = []
    latest = 0
    for piece in pieces:
        if clusters and piece.start <= latest + (0 if piece.is_anonymous else SLACK_NS):
            clusters[-1].append(piece)
        else:
            clusters.append([piece])
        latest = max(latest, piece.end)
    return clusters


def _rivals(same: Iterable[_Piece]) -> list[tuple[_Piece, _Piece]]:
    """Pairs of recordings at the same time, of those of one rank."""
    return [(a, b) for a, b in combinations(same, 2) if _at_once(a, b)]


def _by_rank(pieces: Iterable[_Piece]) -> list[list[_Piece]]:
    of_rank: dict[Hashable, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        of_rank[piece.who].append(piece)
    return list(of_rank.values())


def _at_once(a: _Piece, b: _Piece) -> bool:
    if a.window is None or b.window is None:
        return True
    return a.start < b.end and b.start < a.end


def _split_by_directory(pieces: list[_Piece]) -> list[list[_Piece]]:
    """Two jobs that ran at the same time are in two directories: split there if that separates rivals."""
    root = os.path.commonpath([str(piece.directory) for piece in pieces])

    def branch_of(piece: _Piece) -> str:
        return next(iter(piece.directory.relative_to(root).parts), "")

    if all(branch_of(a) == branch_of(b) for same in _by_rank(pieces) for a, b in _rivals(same)):
        return [pieces]
    branches: dict[str, list[_Piece]] = defaultdict(list)
    for piece in pieces:
        branches[branch_of(piece)].append(piece)
    return [part for branch in branches.values() for part in _split_by_directory(branch)]


def _without_rivals(pieces: Sequence[_Piece]) -> tuple[list[_Piece], list[Issue]]:
    """Of recordings of one rank at the same time, keep the newest file that was not cut short.

    A recording gives way only to one that is used.
    """
    dropped: dict[int, Issue] = {}
    for recordings in _by_rank(pieces):
        left = recordings
        while pairs := _rivals(left):
            cut_short = {id(a) for pair in pairs for a, b in (pair, pair[::-1]) if a.size < b.size * _WHOLE}
            whole = (piece for pair in reversed(pairs) for piece in reversed(pair) if id(piece) not in cut_short)
            best = max(whole, key=lambda piece: piece.written)
            losers = [b if a is best else a for a, b in pairs if a is best or b is best]
            dropped.update((id(loser), _rival(loser, best)) for loser in losers)
            left = [piece for piece in left if id(piece) not in dropped]
    return [piece for piece in pieces if id(piece) not in dropped], list(dropped.values())


def _rival(dropped: _Piece, kept: _Piece) -> Issue:
    return Issue(
        "warning",
        str(dropped.recording.path),
        f"records the same rank and time as {kept.recording.path}, which is newer or more complete and was used",
        "Move one of the two elsewhere, or open each by itself",
        rank=kept.rank,
    )


def _in_sequence(pieces: Sequence[_Piece]) -> list[list[_Piece]]:
    """Split successive recordings into runs: the k-th recording of each rank goes into the k-th run.

    If a rank has fewer, its recordings go to the runs nearest in time.
    """
    sequences = _by_rank(pieces)
    longest = max(sequences, key=len)
    runs: list[list[_Piece]] = [[] for _ in longest]
    for sequence in sequences:
        free = list(range(len(longest)))
        for k, piece in enumerate(sequence):
            best = k if len(sequence) == len(longest) else min(free, key=lambda i: abs(piece.start - longest[i].start))
            free.remove(best)
            runs[best].append(piece)
    return runs


def _job(pieces: Sequence[_Piece]) -> Job:
    """Number the ranks without a recorded number, and name the job."""
    issues: list[Issue] = []
    taken = {piece.rank for piece in pieces}
    members = [
        Member(piece.rank, piece.recording.facts.get("rank_origin") or "content", piece.recording)
        for piece in pieces
        if piece.rank is not None
    ]
    free = (number for number in range(len(pieces)) if number not in taken)
    nameless = [piece for piece in pieces if piece.rank is None]
    for piece in sorted(nameless, key=lambda p: natural(str(p.recording.path))):
        number = next(free)
        members.append(Member(number, "numbered", piece.recording))
        if len(pieces) > 1:
            problem = f"states no rank; it is called {number} by the order of file names"
            remedy = "Record after torch.distributed is initialised, or name the file like rank-0.json"
            issues.append(Issue("note", str(piece.recording.path), problem, remedy, rank=number))
    if len(members) == 1:
        path = pieces[0].recording.path
        name = _directory_name(path) if path.is_dir() else path.name.partition(".")[0] or path.name
    else:
        path = Path(os.path.commonpath([str(piece.directory) for piece in pieces]))
        name = _directory_name(path)
    sizes = [piece.world_size for piece in pieces if piece.world_size is not None]  # all the same
    if sizes and sizes[0] > len(members):
        problem = f"{len(members)} of the job's {sizes[0]} ranks {'is' if len(members) == 1 else 'are'} here"
        issues.append(Issue("note", str(path), problem, "Open the recordings of all ranks together to compare them"))
    newest = max(piece.written if piece.window is None else piece.end for piece in pieces)
    return Job(members, name, path, newest, issues)


def _directory_name(path: Path) -> str:
    """The last directory of a path that was named by a person."""
    named = (part for part in reversed(path.parts) if part not in _NAMELESS and not _MADE.fullmatch(part))
    return next((part for part in named if part != path.anchor), path.name)


def _tell_apart(jobs: Sequence[Job]) -> None:
    """Number jobs of the same name as they are listed."""
    named: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        named[job.name].append(job)
    for same in (same for same in named.values() if len(same) > 1):
        for k, job in enumerate(same, start=1):
            job.name = f"{job.name} ({k} of {len(same)})"
