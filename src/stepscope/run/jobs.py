"""Which recordings belong together: ranks of one job, recorded at the same time."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path

from stepscope.paths import natural
from stepscope.present import DATED_NS
from stepscope.run.job import Job, Member
from stepscope.run.job_contradictions import apart
from stepscope.run.job_copies import by_identity, copied_runs
from stepscope.run.job_doubts import doubts, shifted, strays
from stepscope.run.job_folders import common_folders
from stepscope.run.job_pieces import Piece, piece_of
from stepscope.run.job_supplements import captured, completed
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

BARE = frozenset({"ranks", "groups", "steps", "slices", "light_ranges", "rank_figures", "issues"})
"""Tables that hold only marks and information about the rank."""

_LIGHT = "light"
"""Family of light records: all processes of a rank write into one directory."""

SLACK_NS = 10_000_000_000
"""How much host clocks may differ, and recordings may start apart, in one job."""

_WRONG_CLOCK_NS = 86_400_000_000_000
"""How much a clock that shows a date may be wrong, e.g. set in another time zone: from recordings further apart no job
is put together. Chosen by us."""


def group(recordings: Iterable[Recording]) -> list[Job]:
    """Group recordings into jobs: dumps of calls last, before them what repeats another job and captures of a job
    whose light records are there; else largest first, then those with recorded work, then newest.

    A profiler with a repeating schedule may leave a last recording that had just begun, without any work. Recordings
    belong to one job if their windows overlap (within `SLACK_NS`), their formats are of one family and their recorded
    world sizes agree. Successive recordings of each rank become separate runs. A second recording of a rank at the same
    time is a copy, or belongs to another job, or to a copy of this one, if it is in another directory.
    """
    pieces = sorted(map(piece_of, recordings), key=lambda piece: piece.order)
    runs: list[_Pieces] = []
    issues: list[tuple[str, Issue]] = []
    for some in (copied for cluster in _clusters(pieces) for copied in copied_runs(cluster)):
        single, of_copies = _without_copies(some)
        issues.extend(of_copies)
        for part in _split_by_directory(single):
            unique, dropped = _without_rivals(part)
            in_sequence = [_Pieces(run) for run in _in_sequence(unique)]
            in_sequence[0].issues.extend(dropped)
            runs.extend(in_sequence)
    jobs = [_job(run.pieces, run.issues) for run in _of_one_job(_with_other_clocks(runs))]
    _report_strays(jobs)
    for job in jobs:
        paths = {str(member.recording.path) for member in job.members}
        job.issues.extend(issue for kept, issue in issues if kept in paths)
    repeated = set(map(id, [*completed(jobs), *captured(jobs)]))
    jobs.sort(
        key=lambda job: (_is_dump(job), id(job) in repeated, -len(job.members), _is_bare(job), -job.newest, job.name)
    )
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


def _without_copies(pieces: Sequence[Piece]) -> tuple[list[Piece], list[tuple[str, Issue]]]:
    """Of recordings with the same rank and identical window, keep the newest file."""
    kept: list[Piece] = []
    issues: list[tuple[str, Issue]] = []
    for copies in by_identity(pieces):
        best = max(copies, key=lambda piece: piece.written)
        kept.append(best)
        issues.extend((str(best.recording.path), _rival(piece, best)) for piece in copies if piece is not best)
    return kept, issues


def _clusters(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Recordings that may belong to one job, by family, world size and time."""
    classes: dict[tuple[str, int | None, Path | None, bool], list[Piece]] = defaultdict(list)
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
    timed: dict[Hashable, list[list[Piece]]] = defaultdict(list)
    clusters: list[list[Piece]] = []
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


def _overlapping(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Chains of recordings that overlap in time; those without times form one chain.

    Only of ranks with numbers some may start after the others end: without, these are as well jobs after one another.
    """
    clusters: list[list[Piece]] = []
    latest = 0
    for piece in pieces:
        if clusters and piece.start <= latest + (0 if piece.rank is None else SLACK_NS):
            clusters[-1].append(piece)
        else:
            clusters.append([piece])
        latest = max(latest, piece.end)
    return clusters


def _rivals(same: Iterable[Piece]) -> list[tuple[Piece, Piece]]:
    """Pairs of recordings at the same time, of those of one rank."""
    return [(a, b) for a, b in combinations(same, 2) if _at_once(a, b)]


def _by_rank(pieces: Iterable[Piece]) -> list[list[Piece]]:
    of_rank: dict[Hashable, list[Piece]] = defaultdict(list)
    for piece in pieces:
        of_rank[piece.who].append(piece)
    return list(of_rank.values())


def _at_once(a: Piece, b: Piece) -> bool:
    if a.window is None or b.window is None:
        return True
    return a.start < b.end and b.start < a.end


def _split_by_directory(pieces: list[Piece]) -> list[list[Piece]]:
    """Two jobs that ran at the same time are in two directories: split there if that separates rivals."""
    root = os.path.commonpath([str(piece.directory) for piece in pieces])

    def branch_of(piece: Piece) -> str:
        return next(iter(piece.directory.relative_to(root).parts), "")

    rivals = [pair for same in _by_rank(pieces) for pair in _rivals(same)]
    if all(branch_of(a) == branch_of(b) for a, b in rivals):
        return _split_by_profile(pieces, rivals)
    branches: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        branches[branch_of(piece)].append(piece)
    return [part for branch in branches.values() for part in _split_by_directory(branch)]


def _split_by_profile(pieces: list[Piece], rivals: Sequence[tuple[Piece, Piece]]) -> list[list[Piece]]:
    """Two directories that hold several ranks each are two jobs if they have ranks in common."""
    by_path: dict[Path, list[Piece]] = defaultdict(list)
    for piece in pieces:
        by_path[piece.recording.path].append(piece)
    are_apart = all(a.recording.path != b.recording.path for a, b in rivals)
    if rivals and are_apart and all(len(ranks) > 1 for ranks in by_path.values()):
        return list(by_path.values())
    return [pieces]


def _without_rivals(pieces: Sequence[Piece]) -> tuple[list[Piece], list[Issue]]:
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


def _rival(dropped: Piece, kept: Piece) -> Issue:
    if dropped.family == _LIGHT and dropped.recording.path == kept.recording.path:
        return Issue(
            "warning",
            str(dropped.recording.path),
            "two processes have written there at the same time; that with newer or more complete records was used",
            "If they are of two jobs, give one of these another MINDX_TASK_ID or STEPSCOPE_LIVE_DIR",
            rank=kept.rank,
        )
    return Issue(
        "warning",
        str(dropped.recording.path),
        f"records the same rank and time as {kept.recording.path}, which is newer or more complete and was used",
        "Move one of the two elsewhere, or open each by itself",
        rank=kept.rank,
    )


def _in_sequence(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Split successive recordings into runs: the k-th recording of each rank goes into the k-th run.

    If a rank has fewer, its recordings go to the runs nearest in time.
    """
    sequences = _by_rank(pieces)
    longest = max(sequences, key=len)
    runs: list[list[Piece]] = [[] for _ in longest]
    for sequence in sequences:
        free = list(range(len(longest)))
        for k, piece in enumerate(sequence):
            best = k if len(sequence) == len(longest) else min(free, key=lambda i: abs(piece.start - longest[i].start))
            free.remove(best)
            runs[best].append(piece)
    return runs


@dataclass
class _Pieces:
    """The recordings of a run, and what to say of them."""

    pieces: list[Piece]
    issues: list[Issue] = field(default_factory=list)

    @property
    def by_rank(self) -> dict[int, Recording]:
        """Recordings by recorded rank."""
        return {piece.rank: piece.recording for piece in self.pieces if piece.rank is not None}


def _with_other_clocks(runs: Sequence[_Pieces]) -> list[_Pieces]:
    """Runs put together that are parts of one job on hosts whose clocks are far apart.

    Nothing shows that but their ranks: parts of one world size that share no rank and together are all of it. If each
    part has several runs, the k-th runs belong together.
    """
    parts: dict[tuple[str, int], dict[tuple[int, ...], list[_Pieces]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        size = next((piece.world_size for piece in run.pieces if piece.world_size is not None), None)
        is_known = all(piece.rank is not None and piece.window is not None for piece in run.pieces)
        if size is not None and is_known and len(run.pieces) < size:
            parts[run.pieces[0].family, size][tuple(sorted(run.by_rank))].append(run)
    joined: dict[int, _Pieces | None] = {}
    for (_, size), by_ranks in parts.items():
        ranks = sorted(rank for own in by_ranks for rank in own)
        if ranks != list(range(size)) or len({len(own) for own in by_ranks.values()}) != 1:
            continue
        for same in zip(*(sorted(own, key=lambda run: run.pieces[0].start) for own in by_ranks.values()), strict=True):
            dated = [run.pieces[0].start for run in same if run.pieces[0].start >= DATED_NS]
            if dated and max(dated) - min(dated) > _WRONG_CLOCK_NS:
                continue
            whole = _Pieces([piece for run in same for piece in run.pieces], [i for run in same for i in run.issues])
            whole.issues.extend(shifted([run.by_rank for run in same]))
            joined |= {id(run): None for run in same} | {id(same[0]): whole}
    found = (joined.get(id(run), run) for run in runs)
    return [run for run in found if run is not None]


def _of_one_job(runs: Iterable[_Pieces]) -> Iterator[_Pieces]:
    """Runs parted where their groups show two jobs of one size; each part has the warning."""
    for run in runs:
        parts, issues = apart(run.pieces)
        yield _Pieces(parts[0], [*run.issues, *issues])
        yield from (_Pieces(part, list(issues)) for part in parts[1:])


def _report_strays(jobs: Sequence[Job]) -> None:
    """Report recordings in a job's folder that seem to be its missing ranks but state another number of ranks."""
    sized = [(job, job.world_size) for job in jobs]
    for job, size in sized:
        for other, other_size in sized:
            if size is None or other_size is None or size == other_size or len(job.members) <= len(other.members):
                continue
            if job.path not in (other.path, *other.path.parents) or job.family != other.family:
                continue
            recordings = ({member.rank: member.recording for member in each.members} for each in (job, other))
            if (issue := strays(next(recordings), size, next(recordings), other_size)) is not None:
                job.issues.append(issue)


def _job(pieces: Sequence[Piece], issues: list[Issue]) -> Job:
    """Number the ranks without a recorded number, and name the job."""
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
        name = name_of(path)
    else:
        path = Path(os.path.commonpath([str(piece.directory) for piece in pieces]))
        name = _directory_name(path)
    sizes = [piece.world_size for piece in pieces if piece.world_size is not None]  # all the same
    world_size = sizes[0] if sizes else None
    issues.extend(doubts({member.rank: member.recording for member in members}, world_size, path))
    newest = max(piece.written if piece.window is None else piece.end for piece in pieces)
    return Job(members, name, path, newest, issues, world_size)


def name_of(path: Path) -> str:
    """What a job is called whose only recording is a file or directory."""
    return _directory_name(path) if path.is_dir() else path.name.partition(".")[0] or path.name


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
