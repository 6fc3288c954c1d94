"""When the detector accuses.

Error budget. A job is tested at each round (a step, or some short ones) for each rank and kind of work, so even rare
chances happen. Each test is a CUSUM of log-likelihood ratios: its score grows by `(shift / noise**2) * (excess -
shift / 2)`, never below 0, where the excess is how much longer a rank takes than normal, and the shift is the smallest
that matters. If the scores of a healthy rank are such that `E[exp(theta * increment)] = 1` for a theta above 0
(Cramer and Lundberg), then the score passes a threshold h in a round with a probability of at most `exp(-theta * h)`.
So with n ranks and r rounds in the horizon, `h = log(n * r / budget) / theta` makes fewer than `budget` false
accusations in it. For normal noise of known size theta is 1; heavy tails (stalls, garbage collection) make it smaller.
It is measured on the job's own increments of all ranks that are not suspected, and how the noise of successive rounds
hangs together is measured by the spread of means over 8 rounds. What is not measured is assumed to be worse.

The indifference of half a shift absorbs what is no fault: healthy devices differ by a few percent, and hosts drift.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.limits import limit


@dataclass(frozen=True)
class Tuning:
    """How one kind of work is tested. Excesses are differences of logarithms, or shares of a step (`data`)."""

    shift: float
    """The smallest excess that matters; half of it is ignored."""
    noise: float
    """Standard deviation from round to round that is assumed before any was seen."""
    least_noise: float
    """Smaller noise is not believed."""
    late: float
    """Excess of a single round that counts as late, for those that come and go."""
    cost_ratio: float
    """Less excess, as a share of the typical step, is not reported."""


COMPUTE = Tuning(shift=0.095, noise=0.05, least_noise=0.012, late=0.14, cost_ratio=0.02)
"""1.1 times as long: what published systems treat as a slow node (MegaScale: hosts slow by 10 %; Greyhound: 10 %)."""
DATA = Tuning(shift=0.08, noise=0.03, least_noise=0.012, late=0.12, cost_ratio=0.03)
"""Shares of a step that a rank waits longer for its batches than others."""
CHECKPOINT = Tuning(shift=0.405, noise=0.2, least_noise=0.1, late=1.1, cost_ratio=0.25)
"""1.5 times as long: storage varies; the excess must cost a quarter of a step."""
LINK = Tuning(shift=0.336, noise=0.15, least_noise=0.05, late=1.1, cost_ratio=0.02)
"""1.4 times as long: healthy groups of a kind differ by 10 to 20 %."""
PACE = Tuning(shift=0.095, noise=0.05, least_noise=0.012, late=0.2, cost_ratio=0.04)
"""1.1 times as long as before, of the whole job."""


@dataclass(frozen=True)
class Limits:
    """Limits of the detector; see the module for how thresholds follow from the budget."""

    budget: float = limit(0.05, "false verdicts in the horizon, all tests together", "chosen by us: one in 200 hours")
    horizon_ns: float = limit(36e12, "ns", "10 hours: about one shift of the people who would be called")
    most_increment: float = limit(5.0, "of the score, in one round", "our simulation: one stall must not accuse")
    round_ns: float = limit(2e8, "ns, the shortest round", "chosen by us: shorter steps are summed to share stalls")
    least_ns: float = limit(1.5e9, "ns, that something must have lasted", "chosen by us: a busy host is no fault")
    least_rounds: int = limit(5, "rounds, that something must have lasted", "chosen by us: a few stalls are no fault")
    warm_steps: int = limit(3, "first steps of a process, not judged", "compiling, allocating and tuning kernels")
    warm_ns: float = limit(0.5e9, "ns of steps of a process, not judged", "as `least_ns`: short steps settle as slowly")
    enough_ratio: float = limit(
        0.4, "of the ranks, in the group that is normal", "hidden waits make most ranks late: half may be, not more"
    )
    gap_score: float = limit(6.0, "standard errors of a rank's level, between groups", "as in offline `references`")
    gap_ratio: float = limit(
        0.42, "of the smallest excess that matters, between groups", "for compute 4 %, as in offline `references`"
    )
    least_ratio: float = limit(
        0.6, "of the smallest excess that matters, in the median round, less its standard error", "healthy ranks differ"
    )
    early_ratio: float = limit(
        0.75, "the same, as long as it is not known how far the rank differs for good", "our simulation of healthy jobs"
    )
    usual_ratio: float = limit(
        0.35, "of the smallest excess that matters, that a rank has long had", "our simulation: devices differ for good"
    )
    apart_score: float = limit(3.0, "of how far healthy ranks differ for good", "our simulation of healthy jobs")
    members_ratio: float = limit(0.8, "of the members of a host or group, slow alike", "as in offline `units`")
    alike_ratio: float = limit(0.5, "of the median excess of a host, to be slow alike", "chosen by us")
    often_rate: float = limit(0.15, "of the rounds, late, to be found soon", "rarer ones take longer")
    usual_rate: float = limit(0.01, "of the rounds, late, in healthy jobs", "assumed before any was seen")
    late_rounds: int = limit(5, "late rounds, of what comes and goes", "chosen by us: fewer are stalls")
    rotating_rounds: int = limit(
        64, "rounds, to see that each has a late rank", "of 64 Poisson counts, once in a million"
    )
    rotating_ratio: float = limit(0.75, "of the rounds, in which some rank is late", "as in offline `patterns`")
    rotating_spread: float = limit(
        0.4, "variance over mean of late ranks in a round", "below 1 for stalls at random; see `rotating_rounds`"
    )
    recovery_score: float = limit(9.0, "of the score, over theta, to be healthy again", "one wrong recovery in 8,000")
    pace_rounds: int = limit(48, "rounds, for the usual pace of a job to be known", "chosen by us")
    pace_score: float = limit(
        3.0, "standard deviations of rounds, that a job is slower beyond the shift", "our trials of drifting machines"
    )
    hang_ns: float = limit(3e10, "ns without any progress", "far above any step; NCCL gives up after 10 minutes")
    hang_steps: float = limit(10.0, "of the longest recent step, without any progress", "chosen by us")
    long_hang_ns: float = limit(6e11, "ns, before the first step, or in a checkpoint or compiler", "these may be slow")
    silent_ns: float = limit(1e10, "ns without a pulse", "pulses come each second")
    pending_rounds: int = limit(256, "rounds, of which digests are kept until all ranks sent theirs", "chosen by us")
    reorder_steps: int = limit(8, "steps, by which digests may arrive out of order", "a proxy's batch of a second")
    late_digest_ns: float = limit(3e9, "ns, after which a missing digest is lost", "sent a second after the step")
    most_ranks: int = limit(65_536, "ranks", "chosen by us: bounds memory")
    compute: Tuning = field(default=COMPUTE)
    data: Tuning = field(default=DATA)
    checkpoint: Tuning = field(default=CHECKPOINT)
    link: Tuning = field(default=LINK)
    pace: Tuning = field(default=PACE)


LIMITS = Limits()
TESTS = 6
"""Kinds of tests that share the budget."""
