"""Recordings at one time that are of two jobs of one size, by the process groups that their ranks list."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from stepscope.run.job_pieces import Piece
from stepscope.selection import named_numbers
from stepscope.store.recording import Recording, StoredRecording, read_together
from stepscope.tables import STEPS
from stepscope.tables.issues import Issue

_OTHER_STEPS = 1.2
"""From this factor on, steps of ranks that share a group are too different for one job, chosen by us."""

Members = tuple[int, ...]


@dataclass(frozen=True)
class Contradiction:
    """A group that a rank lists, and a member of it that lists other groups but not this one."""

    rank: int
    name: str | None
    members: Members
    member: int

    @property
    def ranks(self) -> tuple[int, int]:
        """The two ranks, the lower one first."""
        return min(self.rank, self.member), max(self.rank, self.member)


def apart(pieces: Sequence[Piece]) -> tuple[list[list[Piece]], list[Issue]]:
    """Recordings parted into jobs, the largest first, and what to say of it; all as they are if nothing is against it.

    A job's ranks agree on the members of each group. Groups that only calls name may lack on a rank that was cut
    short, so one that a member does not list is not enough: each of two ranks lists one with the other, or the group's
    key has other members there, or their steps are too different for ranks that share a group.
    """
    own = {piece.rank: piece for piece in pieces if piece.rank is not None and "groups" in piece.recording.rows}
    if len(own) < 2 or len(own) < len([piece for piece in pieces if "groups" in piece.recording.rows]):
        return [list(pieces)], []
    known = {rank: piece.recording for rank, piece in sorted(own.items())}
    listed = _listed(known, max((piece.world_size or 0 for piece in pieces), default=0))
    against = _contradictions(listed)
    hard = _hard(against, listed, known)
    if not hard:
        return [list(pieces)], []
    jobs = _parted(listed, hard, against)
    main, *others = jobs
    if not others:
        return [list(pieces)], [_undecided(hard, known)]
    left_out = {rank: number for number, job in enumerate(others, start=1) for rank in job}
    parts: list[list[Piece]] = [[] for _ in jobs]
    for piece in pieces:
        parts[left_out.get(-1 if piece.rank is None else piece.rank, 0)].append(piece)
    return parts, [_other_job(job, main, hard, known) for job in others]


_Listed = Mapping[int, Mapping[Members, tuple[str, str | None]]]
"""Key and name of each group that a rank lists, by its members."""


def _listed(recordings: Mapping[int, Recording], world: int) -> _Listed:
    """The groups of several ranks, but not of all, that each rank lists."""
    stored = [(rank, one) for rank, one in recordings.items() if isinstance(one, StoredRecording)]
    together = read_together(stored, "groups") if len(stored) == len(recordings) else None
    frames = (
        [(None, together)]
        if together is not None
        else [(rank, one.scan("groups").collect()) for rank, one in recordings.items()]
    )
    listed: dict[int, dict[Members, tuple[str, str | None]]] = defaultdict(dict)
    for number, frame in frames:
        count = frame["members"].list.len()
        rows = frame.filter(((count > 1) & (count != world)).fill_null(False))
        ranks = rows["rank"].to_list() if number is None else [number] * rows.height
        for rank, group, name, members in zip(
            ranks, rows["group"], rows["name"], rows["members"].list.sort().to_list(), strict=True
        ):
            if rank in members:
                listed[rank].setdefault(tuple(members), (group, name))
    return listed


def _contradictions(listed: _Listed) -> list[Contradiction]:
    """Groups that a member does not list which lists others."""
    by_members: dict[Members, list[int]] = defaultdict(list)
    for rank, groups in listed.items():
        for members in groups:
            by_members[members].append(rank)
    return [
        Contradiction(rank, listed[rank][members][1], members, member)
        for members, ranks in sorted(by_members.items())
        if len(ranks) < len(members)
        for member in sorted(set(members).intersection(listed).difference(ranks))
        for rank in ranks
    ]


def _hard(
    against: Sequence[Contradiction], listed: _Listed, recordings: Mapping[int, Recording]
) -> list[Contradiction]:
    """The contradictions that show that two ranks are of two jobs."""
    pairs = {(one.rank, one.member) for one in against}
    keys = {rank: {group for group, _ in groups.values()} for rank, groups in listed.items()}
    steps = {rank: _step_ns(recordings[rank]) for rank in sorted({rank for pair in pairs for rank in pair})}
    return [
        one
        for one in against
        if (one.member, one.rank) in pairs
        or listed[one.rank][one.members][0] in keys[one.member]
        or _are_other(steps[one.rank], steps[one.member])
    ]


def _are_other(a: float, b: float) -> bool:
    """Whether two steps are too different for ranks that share a group."""
    return min(a, b) > 0 and max(a, b) > _OTHER_STEPS * min(a, b)


def _step_ns(recording: Recording) -> float:
    """The median step; 0 if there are not several."""
    rows = STEPS.shaped(recording.scan(STEPS.name).select("step", "window_start_ns", "window_end_ns").collect())
    lengths = (rows["window_end_ns"] - rows["window_start_ns"]).drop_nulls().to_list()
    return median(lengths) if len(lengths) > 1 else 0


def _parted(listed: _Listed, hard: Iterable[Contradiction], against: Iterable[Contradiction]) -> list[list[int]]:
    """Ranks by job, the largest job first: those that share a group are of one job unless they contradict most."""
    doubts = Counter(rank for one in against for rank in one.ranks)
    foes: dict[int, set[int]] = defaultdict(set)
    for one in hard:
        foes[one.rank].add(one.member)
        foes[one.member].add(one.rank)
    clusters: list[set[int]] = []
    for cluster in _connected(listed):
        while counts := sorted(((len(foes[rank] & cluster), rank) for rank in cluster), reverse=True):
            if counts[0][0] == 0 or (len(counts) > 1 and counts[0][0] == counts[1][0]):
                break
            cluster.discard(counts[0][1])
            clusters.append({counts[0][1]})
        clusters.append(cluster)
    jobs: list[set[int]] = []
    for cluster in sorted(clusters, key=lambda one: (-len(one), sum(doubts[rank] for rank in one), min(one))):
        fitting = (job for job in jobs if not any(foes[rank] & job for rank in cluster))
        job = next(fitting, None)
        if job is None:
            jobs.append(set(cluster))
        else:
            job |= cluster
    return [sorted(job) for job in sorted(jobs, key=lambda job: (-len(job), min(job)))]


def _connected(listed: _Listed) -> list[set[int]]:
    """Ranks that list the same groups, directly or by others."""
    first: dict[Members, int] = {}
    of_rank: dict[int, set[int]] = {}
    for rank, groups in listed.items():
        of_rank[rank] = {rank}
        for members in groups:
            other = of_rank[first.setdefault(members, rank)]
            if other is not of_rank[rank]:
                other |= of_rank[rank]
                of_rank |= dict.fromkeys(of_rank[rank], other)
    return list({id(one): one for one in of_rank.values()}.values())


def _why(one: Contradiction) -> str:
    """A contradiction in words."""
    name = f" {one.name}" if one.name else ""
    return f"rank {one.rank} lists a group{name} of {named_numbers('rank', one.members)} which rank {one.member} lacks"


def _other_job(job: Collection[int], main: Iterable[int], hard: Sequence[Contradiction], own: _Recordings) -> Issue:
    ranks = sorted(job)
    there = set(main)
    shown = next((one for one in hard if {*one.ranks} & there and {*one.ranks} & {*ranks}), hard[0])
    are = "is" if len(ranks) == 1 else "are"
    problem = (
        f"{named_numbers('rank', ranks)} {are} of another job than {named_numbers('rank', sorted(there))} by the "
        f"process groups ({_why(shown)}), so each job is a run of its own"
    )
    remedy = "Check which files belong to the job, and move those of the other job elsewhere"
    return Issue("warning", str(own[ranks[0]].path), problem, remedy, rank=None)


def _undecided(hard: Sequence[Contradiction], own: _Recordings) -> Issue:
    ranks = sorted({rank for one in hard for rank in one.ranks})
    problem = f"{named_numbers('rank', ranks)} contradict each other: {_why(hard[0])}; they may be of two jobs"
    remedy = "Check whether their files belong to one job; what compares ranks may be wrong if not"
    return Issue("warning", str(own[ranks[0]].path), problem, remedy, rank=None)


_Recordings = Mapping[int, Recording]
