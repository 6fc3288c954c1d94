"""Flat profiles beside other recordings of the same ranks: what they supply, and what is said of the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from stepscope.run.job import Job, Member
from stepscope.run.supplements import Supplement, described, tables_for
from stepscope.store.recording import Recording
from stepscope.tables.issues import Issue

_LIGHT = "light"
"""Family of the records of light tracing, below which the captures of a rank lie."""

_FLAT, _BY_RANK = "classic", "ascend"
"""Families of formats of flat files and of the directories in which they are completed."""

_ALIKE = ("world_size", "framework", "framework_version", "device_kind")
"""Facts in which two recordings of a rank of one job do not differ."""


def completed(jobs: Sequence[Job]) -> list[Job]:
    """Complete jobs by what flat profiles hold of the same ranks.

    Below a flat profile other recordings of its ranks may lie that hold more, as of MindSpore 2.3: `profiler/` has the
    files of all ranks, and a directory `..._ascend_ms` for each. The tables of `SUBJECTS` that these lack come from it
    if nothing contradicts that both are of one job; a note says so. What else it holds stays a run of its own.

    Returns:
        The flat profiles.
    """
    found: list[Job] = []
    beside: dict[int, list[Job]] = defaultdict(list)
    others: dict[int, Job] = {}
    for job in (job for job in jobs if job.family != _LIGHT):
        more = next((other for other in jobs if other.family != job.family and _holds_more(other, job)), None)
        if more is not None:
            found.append(job)
            beside[id(more)].append(job)
            others[id(more)] = more
    for key, flat in beside.items():
        other = others[key]
        taken = _take(other, flat[0]) if len(flat) == 1 and _is_only(other, flat[0], jobs) else ""
        for job in flat:
            rest = f": {taken} are taken from them, nothing else is shown here" if taken else " and are not shown here"
            path = str(min(member.recording.path for member in job.members))
            problem = f"holds files of the same ranks, which are a run of their own{rest}"
            other.issues.append(Issue("note", path, problem, "Choose that run with --run"))
    return found


def captured(jobs: Sequence[Job]) -> list[Job]:
    """Captures of some steps of a job whose light records are there as well: all their recordings lie below those."""
    records = {member.recording.path for job in jobs if job.family == _LIGHT for member in job.members}
    others = (job for job in jobs if job.family != _LIGHT)
    return [job for job in others if all(records & {*member.recording.path.parents} for member in job.members)]


def _holds_more(other: Job, job: Job) -> bool:
    """Whether all recordings of a job lie below those of another, which has all its ranks and more rows."""
    flat = {member.recording.path for member in job.members}
    numbers = {member.rank for member in job.members}
    are_below = all(flat & {*member.recording.path.parents} for member in other.members)
    return are_below and numbers <= {member.rank for member in other.members} and _rows(other) > _rows(job)


def _is_only(other: Job, flat: Job, jobs: Sequence[Job]) -> bool:
    """Whether no third job has recordings below a flat profile, which might be theirs."""
    paths = {member.recording.path for member in flat.members}
    third = (job for job in jobs if job is not other and job is not flat)
    return not any(paths & {*member.recording.path.parents} for job in third for member in job.members)


def _take(other: Job, flat: Job) -> str:
    """Supply the members of a job with tables of a flat profile; returns which, empty if it supplies none."""
    if (flat.family, other.family) != (_FLAT, _BY_RANK) or _differ(flat.world_size, other.world_size):
        return ""
    seconds = {member.rank: member for member in flat.members}
    pairs = {member.rank: (member, seconds[member.rank]) for member in other.members if member.rank in seconds}
    if not all(_are_one(member, second) for member, second in pairs.values()):
        return ""
    found: dict[str, list[int]] = defaultdict(list)
    members = []
    for member in other.members:
        second = seconds.get(member.rank)
        tables = () if second is None else tables_for(member.recording, second.recording)
        for name in tables:
            found[name].append(member.rank)
        if second is not None and tables:
            members.append(replace(member, supplement=Supplement(second.recording, tables)))
        else:
            members.append(member)
    other.members = members
    return described(found)


def _are_one(member: Member, second: Member) -> bool:
    """Whether nothing contradicts that two recordings are of one rank of one job."""
    own, other = member.recording, second.recording
    return (
        "numbered" not in (member.origin, second.origin)
        and other.path in own.path.parents
        and not any(_differ(own.facts.get(name), other.facts.get(name)) for name in _ALIKE)
        and _may_overlap(own, other)
    )


def _may_overlap(own: Recording, other: Recording) -> bool:
    """Whether two recordings overlap in time, as far as known."""
    (start, end), (other_start, other_end) = (
        (recording.facts.get("start_ns"), recording.facts.get("end_ns")) for recording in (own, other)
    )
    if start is None or end is None or other_start is None or other_end is None:
        return True
    return bool(start < other_end and other_start < end)


def _differ(a: object, b: object) -> bool:
    """Whether two facts are known and not the same."""
    return a is not None and b is not None and a != b


def _rows(job: Job) -> int:
    return sum(sum(member.recording.rows.values()) for member in job.members)
