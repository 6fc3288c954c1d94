"""When ranks are late: in all steps, since or until a step, periodically, sometimes, once, or each time another one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median, pvariance

import polars as pl

from stepscope.analysis.methods.chance import chance_at_rate, chance_of_evenness
from stepscope.analysis.methods.lateness import lateness
from stepscope.analysis.methods.references import BY_RANK, WORK
from stepscope.analysis.methods.sudden import MARKED
from stepscope.analysis.methods.timing import ONCE, ROTATING, Timing, chance_of, timing
from stepscope.limits import limit

PATTERNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "kind": pl.String,
    "peers": pl.String,
    "rank": pl.Int32,
    "pattern": pl.String,
    "since_step": pl.Int32,
    "until_step": pl.Int32,
    "period": pl.Int32,
    "steps": pl.List(pl.Int32),
    "slow_steps": pl.Int32,
    "compared_steps": pl.Int32,
    "ranks": pl.List(pl.Int32),
    "excess_ns": pl.Int64,
    "loss_ns": pl.Int64,
    "typical_ns": pl.Int64,
    "score": pl.Float64,
    "chance": pl.Float64,
    "is_stall": pl.Boolean,
}

LEVELS = (0.5, 0.75)
"""Shares of a rank's mean excess in late steps by which others have to be late to be as late."""

LOADER = "data_loading"

ALIKE_RATIO = 0.5
"""Share of the late steps that two ranks have in common if they share a cause."""


@dataclass(frozen=True)
class Limits:
    """When a step of a rank is late, and when its late steps are more than chance."""

    late_score: float = limit(2.5, "robust deviations of a step", "our simulation: as many steps must be late, few are")
    late_ratio: float = limit(0.02, "of the typical step", "chosen by us: less is not worth a look")
    loss_ratio: float = limit(0.01, "of the typical step, in the mean step", "chosen by us: less is not worth a look")
    chance: float = limit(0.008, "probability, for all ranks together", "our simulation of healthy jobs")
    once_steps: float = limit(3.0, "typical steps, lost at once", "chosen by us: shorter stalls happen in healthy jobs")
    loader_steps: float = limit(
        0.3, "typical steps, of waiting for data at once", "chosen by us: its cause is recorded"
    )
    once_others: int = limit(1, "other stalls of half that length", "chosen by us: then stalls happen anywhere")
    stall_steps: float = limit(1.0, "typical steps, lost in each of several stalls", "chosen by us: such stalls recur")
    stalls_ratio: float = limit(0.05, "of all steps, lost in several stalls", "chosen by us: less is not worth a look")
    steady_ratio: float = limit(0.75, "of the steps, late", "chosen by us: such a rank is slow, whoever else is late")
    rotating_score: float = limit(4.0, "robust deviations of a step", "each step has a latest rank, of many by more")
    rotating_ratio: float = limit(0.75, "of the steps, in which some rank is late", "random stalls leave steps alone")
    rotating_steps: int = limit(4, "steps, in which some rank is late", "chosen by us: fewer may be chance")
    rotating_sure_steps: int = limit(
        3, "steps, in which some rank is late by no stall", "chosen by us: fewer are single"
    )
    rotating_loss_ratio: float = limit(0.05, "of the typical step, in the mean step", "chosen by us: less is jitter")
    rotating_spread: float = limit(
        0.3, "variance over mean of the late ranks in many steps", "1 if ranks stall at random"
    )
    rotating_even_chance: float = limit(
        0.007, "probability, that stalls spread so evenly over few steps", "our simulation of healthy jobs"
    )
    rotating_few: int = limit(24, "steps at most, for that probability", "of more, the variance shows it")
    rotating_chance: float = limit(0.01, "probability, for all ranks together", "that one is late so often in its turn")


LIMITS = Limits()


@dataclass(frozen=True)
class _Rank:
    """A rank at one kind of work: its steps, and by how much it is late in some of them."""

    rank: int
    slow: bool
    chance: float | None
    sigma_ns: float | None
    typical_ns: int
    steps: list[int]
    late: dict[int, int]
    sure: frozenset[int] = frozenset()
    """Its steps that are no chance, however few they are."""

    def above(self, level: float) -> dict[int, int]:
        """The steps in which it is later than that."""
        return {step: excess for step, excess in self.late.items() if excess > level}


def patterns(
    excess: pl.DataFrame,
    step_ns: float,
    limits: Limits = LIMITS,
    sure: pl.DataFrame | None = None,
    starts: Collection[int] = (),
    stalled: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """When which ranks are late.

    A rank is named if it is slower than normal throughout (`lateness`), or if it is late in more steps, or in more
    consecutive steps, than chance explains at the rate at which other ranks are late by as much. Ranks that are late in
    the same steps share a cause and do not count as others. So random stalls name nobody.

    A rank's step, or a step of all ranks, that costs several typical steps is reported by its length alone, and so are
    several stalls of a rank of a typical step each if hardly any other rank has such: they may strike any rank. So is a
    rank with few late steps, even one, that no random stall explains (`sure`), if hardly any other rank is as late in
    other steps.

    Args:
        excess: Result of `references`.
        step_ns: Length of a typical step.
        limits: What is late, and what is more than chance.
        sure: Result of `sudden`.
        starts: Steps in which something starts up, so that a single long one shows nothing.
        stalled: Ranks that are late by single stalls only (`lateness`).

    Returns:
        One row per rank and kind, largest loss first, with the columns of `PATTERNS`. `rank` is null for `rotating` (in
        most steps some rank is late, but none more often than chance) and for steps that are long for all ranks.
        `since_step` and `until_step` are the first and last slow step if it was not slow before or after; both are set
        for `until` if it was slow in the middle. `period` is in steps. `steps` are the slow ones in order, `slow_steps`
        how many, of `compared_steps`. `ranks`: those that were late. `excess_ns`: mean in the slow steps (for
        `rotating`, of the latest rank); `loss_ns`: the same in the mean step; `typical_ns`: median of what is typical.
        `score`: of the mean excess, in standard errors; `chance`: that some rank is late so often by chance; both null
        if unknown. `is_stall`: one long stall or a few, which may strike any rank.
    """
    rows: list[tuple[object, ...]] = []
    cells = excess.filter(pl.col("excess_ns").is_not_null())
    for work in _listed(cells, lateness(excess, step_ns, stalled=stalled), step_ns, limits).partition_by(
        WORK, maintain_order=True
    ):
        kind, peers = work.select(WORK).row(0)
        ranks = [_Rank(*row) for row in _ranks(work, _sure(sure, kind, peers))]
        given = _Given(kind, step_ns, frozenset(starts))
        rows.extend((kind, peers, *row) for row in _found(ranks, given, limits))
    rows.extend(_long_for_all(cells, step_ns, limits))
    found = pl.DataFrame(rows, schema=PATTERNS, orient="row")
    return found.sort("loss_ns", "kind", "peers", "rank", "pattern", descending=[True, *[False] * 4], nulls_last=True)


def _listed(cells: pl.DataFrame, late: pl.DataFrame, step_ns: float, limits: Limits) -> pl.DataFrame:
    """One row per rank with lists of its steps and of its late ones, of works in which any rank is late."""
    floor = pl.max_horizontal(pl.col("sigma_ns").fill_null(0) * limits.late_score, pl.lit(limits.late_ratio * step_ns))
    # an ordinary rank that is always a little slower is not late for that
    usual = pl.col("centre_ns").clip(0, pl.col("healthy_ns").fill_null(0))
    level = pl.when("slow").then(pl.col("centre_ns") / 2).otherwise(floor + usual)
    known = cells.select(*BY_RANK, "step", "excess_ns", "sigma_ns").join(
        late.select(*BY_RANK, "slow", "centre_ns", "healthy_ns"), on=BY_RANK, nulls_equal=True
    )
    is_late = known.with_columns(late=pl.col("excess_ns") > level)
    works = is_late.group_by(WORK).agg(pl.col("late").any()).filter("late")
    some = is_late.join(works, on=WORK, how="semi", nulls_equal=True).sort("step")
    lists = some.group_by(BY_RANK).agg(
        pl.col("sigma_ns").first(),
        pl.col("step"),
        late_step=pl.col("step").filter("late"),
        late_excess=pl.col("excess_ns").filter("late"),
    )
    return lists.join(late, on=BY_RANK, nulls_equal=True).sort(BY_RANK, nulls_last=True)


@dataclass(frozen=True)
class _Given:
    """What is known of a kind of work besides its times."""

    kind: str
    step_ns: float
    starts: frozenset[int]


def _sure(sure: pl.DataFrame | None, kind: str, peers: str | None) -> dict[int, frozenset[int]]:
    """The steps of each rank that are no chance."""
    if sure is None:
        return {}
    rows = sure.filter((pl.col("kind") == kind) & pl.col("peers").eq_missing(peers))
    listed = rows.group_by("rank").agg("step").iter_rows()
    return {rank: frozenset(steps) for rank, steps in listed}


def _ranks(
    work: pl.DataFrame, sure: dict[int, frozenset[int]]
) -> Iterator[tuple[int, bool, float | None, float | None, int, list[int], dict[int, int], frozenset[int]]]:
    """The fields of `_Rank`."""
    names = ("rank", "slow", "chance", "sigma_ns", "typical_ns", "step", "late_step", "late_excess")
    for *facts, late_step, late_excess in work.select(names).iter_rows():
        rank, slow, chance, sigma_ns, typical_ns, steps = facts
        late = dict(zip(late_step, late_excess, strict=True))
        yield rank, slow, chance, sigma_ns, typical_ns, steps, late, sure.get(rank, frozenset()) & late.keys()


def _found(ranks: Sequence[_Rank], given: _Given, limits: Limits) -> Iterator[tuple[object, ...]]:
    """Rows of one kind of work, without kind and peers."""
    step_ns = given.step_ns
    named = {one.rank: _Judged(one, one.late, one.chance) for one in ranks if _is_steady(one, limits)}
    rest = [one for one in ranks if one.rank not in named]
    # what is marked is told of the ranks that do it, in whichever steps
    rotating = [] if given.kind in MARKED else list(_rotating(rest, given, limits))
    if not rotating:
        named |= {one.rank: _Judged(one, one.late, one.chance) for one in ranks if one.slow}
        # ranks that are named do not show how often others are late, so look twice
        for _ in range(2):
            rest = [one for one in ranks if one.rank not in named]
            worth = [one for one in rest if sum(one.late.values()) >= limits.loss_ratio * step_ns * len(one.steps)]
            found = [judged for one in worth if (judged := _judged(one, rest, len(ranks), given, limits)) is not None]
            named |= {judged.of.rank: judged for judged in found}
    for judged in named.values():
        when = timing(judged.of.steps, judged.late)
        once = when.pattern == ONCE and not judged.late.keys() & judged.of.sure
        yield _row(judged.of, when, judged.late, judged.chance, is_stall=once or judged.are_stalls)
    yield from rotating


@dataclass(frozen=True)
class _Judged:
    """A rank that is named, with its late steps and their chance."""

    of: _Rank
    late: dict[int, int]
    chance: float | None = None
    are_stalls: bool = False


def _is_steady(one: _Rank, limits: Limits) -> bool:
    return one.slow and len(one.late) >= limits.steady_ratio * len(one.steps)


def _judged(one: _Rank, rest: Sequence[_Rank], tests: int, given: _Given, limits: Limits) -> _Judged | None:
    """A rank with its late steps and their chance, if they are more than that, or long stalls; else None."""
    longest = max(one.late.values())
    long = one.above(longest / 2)
    least = limits.loader_steps if given.kind == LOADER else limits.once_steps
    if longest >= least * given.step_ns and _is_alone(one, rest, longest, limits):
        return None if long.keys() <= given.starts else _Judged(one, long)
    # what is marked has one cause, however little of it some steps have
    late = one.late if given.kind in MARKED else one.above(fmean(one.late.values()) / 2)
    if len(late) > 1:
        # late by half or by three quarters of its mean: of stalls of all lengths, few are as long as a slow rank's
        levels = [share * fmean(late.values()) for share in LEVELS]
        chance = min(_chance(one, one.above(level), rest, level) for level in levels)
        together = min(1.0, tests * chance)
        if together <= limits.chance:
            return _Judged(one, late, together)
    few = one.above(min(one.late[step] for step in one.sure) / 2) if one.sure else {}
    if few and (given.kind in MARKED or _others(few, one, rest) <= limits.once_others):
        return _Judged(one, few)
    return _Judged(one, long, are_stalls=True) if _are_stalls(long, one, rest, given, limits) else None


def _are_stalls(long: dict[int, int], one: _Rank, rest: Sequence[_Rank], given: _Given, limits: Limits) -> bool:
    """Whether some steps of a rank are long stalls that together cost much, and hardly any other rank has such."""
    return (
        len(long.keys() - given.starts) > 1
        and min(long.values()) >= limits.stall_steps * given.step_ns
        and sum(long.values()) >= limits.stalls_ratio * len(one.steps) * given.step_ns
        and _others(long, one, rest) <= limits.once_others
    )


def _others(late: dict[int, int], one: _Rank, rest: Sequence[_Rank]) -> int:
    """How many other steps of other ranks are at least half as late; those that are late in the same ones share the
    cause."""
    level = min(late.values()) / 2
    return sum(len(other.above(level).keys() - late.keys()) for other in rest if other is not one)


def _chance(one: _Rank, late: dict[int, int], rest: Sequence[_Rank], level: float) -> float:
    """Probability that a rank like the others is late by so much so often."""
    others = [(other.above(level).keys(), len(other.steps)) for other in rest if other is not one]
    apart = [
        (len(found), steps)
        for found, steps in others
        if len(found & late.keys()) <= ALIKE_RATIO * max(len(found), len(late))
    ]
    return chance_of(one.steps, late.keys(), sum(found for found, _ in apart), sum(steps for _, steps in apart))


def _is_alone(one: _Rank, rest: Sequence[_Rank], longest: int, limits: Limits) -> bool:
    """Whether hardly any other stall is half as long."""
    stalls = sum(len(other.above(longest / 2)) for other in rest)
    return stalls - len(one.above(longest / 2)) <= limits.once_others and len(one.above(longest / 2)) == 1


def _row(one: _Rank, when: Timing, late: dict[int, int], chance: float | None, *, is_stall: bool) -> tuple[object, ...]:
    total, count = sum(late.values()), len(late)
    score = total / count / (one.sigma_ns / sqrt(count)) if one.sigma_ns and count else None
    line = _line(one.rank, when, [one.rank], late, len(one.steps), one.typical_ns, score, chance)
    return *line[:-1], is_stall


def _line(
    rank: int | None,
    when: Timing,
    ranks: list[int],
    late: dict[int, int],
    compared: int,
    typical_ns: int,
    score: float | None,
    chance: float | None,
) -> tuple[object, ...]:
    """A row of `PATTERNS` without kind and peers."""
    total, steps = sum(late.values()), sorted(late)
    means = round(total / len(late)) if late else 0, round(total / compared)
    times = when.pattern, when.since_step, when.until_step, when.period
    return rank, *times, steps, len(steps), compared, ranks, *means, typical_ns, score, chance, False


def _rotating(ranks: Sequence[_Rank], given: _Given, limits: Limits) -> Iterator[tuple[object, ...]]:
    """A row if some rank is late in most steps, another one each time.

    Then about as many ranks are late in each step. Of ranks that stall at random, none are in some steps and several in
    others; where no stalls explain it (`sudden`), that need not be shown.
    """
    longest = dict.fromkeys(sorted({step for one in ranks for step in one.steps}), 0)
    for one in ranks:
        for step, excess in one.late.items():
            longest[step] = max(longest[step], excess)
    noise = max((one.sigma_ns or 0 for one in ranks), default=0)
    level = max(median(longest.values()) / 2 if longest else 0, limits.rotating_score * noise)
    late = {step: excess for step, excess in longest.items() if excess > level}
    no_stalls = frozenset[int]().union(*(one.sure for one in ranks)) & late.keys()
    least = limits.rotating_sure_steps if no_stalls >= late.keys() - given.starts else limits.rotating_steps
    often = len(late) >= max(least, limits.rotating_ratio * len(longest))
    if not often or sum(late.values()) < limits.rotating_loss_ratio * given.step_ns * len(longest):
        return
    turns = {one.rank: one.above(level) for one in ranks}
    counted = Counter(step for found in turns.values() for step in found)
    counts = [counted[step] for step in longest]
    mean = fmean(counts)
    if least == limits.rotating_steps and not _is_even(counts, len(ranks), limits):
        return
    most = max(len(found) for found in turns.values())
    if len(ranks) * chance_at_rate(most, len(counts), mean / len(ranks)) > limits.rotating_chance:
        who = [rank for rank, found in turns.items() if found]
        typical = sorted(one.typical_ns for one in ranks)[len(ranks) // 2]
        yield _line(None, Timing(ROTATING), who, late, len(counts), typical, None, None)


def _is_even(counts: Sequence[int], ranks: int, limits: Limits) -> bool:
    """Whether as many ranks are late in each step, which random stalls are not."""
    # few steps are alike by chance
    if pvariance(counts) > limits.rotating_spread * (1 - 3 / (len(counts) + 1)) * fmean(counts):
        return False
    return len(counts) > limits.rotating_few or chance_of_evenness(counts, ranks) <= limits.rotating_even_chance


def _long_for_all(cells: pl.DataFrame, step_ns: float, limits: Limits) -> Iterator[tuple[object, ...]]:
    """Rows of steps that are much longer for all ranks."""
    steps = cells.group_by(*WORK, "step").agg(pl.col("typical_ns").first(), ranks=pl.col("rank").sort())
    middle = pl.col("typical_ns").median().over(WORK)
    above = steps.with_columns(
        middle=middle, compared=pl.len().over(WORK), all_steps=pl.col("step").over(WORK, mapping_strategy="join")
    )
    long = above.filter(pl.col("typical_ns") - pl.col("middle") > limits.once_steps * step_ns).sort(
        *WORK, "step", nulls_last=True
    )
    for work in long.partition_by(WORK, maintain_order=True):
        first = work.row(0, named=True)
        late = {
            step: round(typical - first["middle"]) for step, typical in work.select("step", "typical_ns").iter_rows()
        }
        when = timing(sorted(first["all_steps"]), late.keys())
        line = _line(None, when, first["ranks"], late, first["compared"], round(first["middle"]), None, None)
        yield first["kind"], first["peers"], *line
