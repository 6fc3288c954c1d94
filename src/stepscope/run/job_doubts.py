"""What makes it doubtful that recordings are all ranks of one job: missing ranks, other steps, sizes or versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepscope.analysis.methods.parallel_layout import object_of
from stepscope.analysis.methods.parallel_sizes import recorded_sizes
from stepscope.selection import describe_numbers, named_numbers
from stepscope.store.recording import Recording
from stepscope.tables.issues import Issue

_MOST = 0.5
"""Share of the ranks from which on the missing ones are named, chosen by us: fewer are a sample on purpose."""


def doubts(recordings: Mapping[int, Recording], world_size: int | None, path: Path) -> Iterator[Issue]:
    """What is doubtful about a job, by rank.

    Args:
        recordings: The recording of each rank.
        world_size: Recorded number of ranks.
        path: The directory or file of the job.
    """
    yield from _missing(recordings, world_size, path)
    yield from _different(
        recordings,
        lambda own: own.rows.get("steps"),
        "{rank} {has} {own} steps, most others have {usual}; what compares ranks uses the steps that they share",
        "Copy the files again if all recordings should be equally long",
        "ranks have different numbers of steps, {least} to {most}, so their means cover different steps",
    )
    yield from _different(
        recordings,
        _sizes,
        "{rank} recorded other parallel sizes than most others ({own}, not {usual}), so {it} may be of another job",
        "Check whether its files belong to this job; open them by themselves if not",
    )
    yield from _different(
        recordings,
        _software,
        "{rank} {was} recorded by {own}, most others by {usual}, so {it} may be of another job",
        "Check whether its files belong to this job; open them by themselves if not",
    )


def _missing(recordings: Mapping[int, Recording], world_size: int | None, path: Path) -> Iterator[Issue]:
    """The ranks that are not here, named if they are few."""
    here = len(recordings)
    if world_size is None or world_size <= here:
        return
    lacking = sorted(set(range(world_size)) - recordings.keys())
    is_most = 1 < here >= _MOST * world_size
    named = f"; {named_numbers('rank', lacking)} {'is' if len(lacking) == 1 else 'are'} missing" if is_most else ""
    problem = f"{here} of the job's {world_size} ranks {'is' if here == 1 else 'are'} here{named}"
    remedy = "Open the recordings of all ranks together to compare them"
    yield Issue("warning" if is_most else "note", str(path), problem, remedy)


_WORDS = ({"has": "has", "was": "was", "it": "it"}, {"has": "have", "was": "were", "it": "they"})
"""Words of one rank, and of several."""


def _different(
    recordings: Mapping[int, Recording],
    fact: Callable[[Recording], Hashable | None],
    problem: str,
    remedy: str,
    mixed: str = "",
) -> Iterator[Issue]:
    """Recordings in which a fact differs from that of most; where no value is that of most, `mixed` for all."""
    facts = {rank: found for rank, own in sorted(recordings.items()) if (found := fact(own)) is not None}
    counts = Counter(facts.values())
    if len(counts) < 2:
        return
    usual, count = counts.most_common(1)[0]
    by_value: dict[Hashable, list[int]] = {}
    for rank, found in facts.items():
        by_value.setdefault(found, []).append(rank)
    if 2 * count <= len(facts):
        if mixed:
            ends = (min(by_value.items()), max(by_value.items()))
            least, most = (f"{found} ({named_numbers('rank', ranks)})" for found, ranks in ends)
            file = str(recordings[min(facts)].path)
            yield Issue("warning", file, mixed.format(least=least, most=most), remedy, rank=None)
        return
    for found, ranks in by_value.items():
        if found == usual:
            continue
        words = {"rank": named_numbers("rank", ranks), "own": found, "usual": usual, **_WORDS[len(ranks) > 1]}
        file = str(recordings[ranks[0]].path)
        yield Issue("warning", file, problem.format(**words), remedy, rank=ranks[0] if len(ranks) == 1 else None)


def _sizes(recording: Recording) -> str | None:
    """Recorded parallel sizes in words."""
    sizes = recorded_sizes(object_of(recording.facts.get("parallelism")))
    return " ".join(f"{name}={size}" for name, size in sorted(sizes.sizes.items())) or None


def _software(recording: Recording) -> str | None:
    """Framework and version, if both are known."""
    framework, version = recording.facts.get("framework"), recording.facts.get("framework_version")
    return f"{framework} {version}" if framework and version else None


def shifted(parts: Sequence[Mapping[int, Recording]]) -> Iterator[Issue]:
    """What to say of parts of one job whose clocks are so far apart that their times do not overlap.

    Args:
        parts: Ranks with recordings that overlap; the parts do not.
    """
    first, *others = sorted(parts, key=lambda part: (-len(part), min(part)))
    base = _start(first)
    for part in others:
        apart = _start(part) - base
        far = f"{abs(apart) / 1e9:.0f} s"
        many = len(part) > 1
        problem = (
            f"the clock of {named_numbers('rank', sorted(part))} is {far} {'ahead of' if apart > 0 else 'behind'} that "
            f"of {named_numbers('rank', sorted(first))}, taken as one job because together they are all its ranks"
        )
        remedy = "Synchronise the clocks of the hosts (NTP, PTP); open each part by itself if they are of two jobs"
        rank = None if many else min(part)
        yield Issue("warning", str(part[min(part)].path), problem, remedy, rank=rank)


def _start(part: Mapping[int, Recording]) -> int:
    return min(int(own.facts["start_ns"]) for own in part.values())


def strays(ranks: Mapping[int, Any], world_size: int, other: Mapping[int, Recording], other_size: int) -> Issue | None:
    """What to say of recordings in the folder of a job that lacks just these ranks, but that state another number of
    ranks; None if it does not lack them."""
    lacking = set(range(world_size)) - ranks.keys()
    if not other or not other.keys() <= lacking:
        return None
    numbers = sorted(other)
    recorded, are = ("states", "is") if len(numbers) == 1 else ("state", "are")
    problem = (
        f"{named_numbers('rank', numbers)} {recorded} a job of {other_size} ranks, the others one of {world_size}, so "
        f"{'it' if are == 'is' else 'they'} {are} not a part of this run"
    )
    remedy = f"Check whether the files of {describe_numbers(numbers)} belong to this job, or move them elsewhere"
    return Issue("warning", str(other[numbers[0]].path), problem, remedy, rank=None)
