"""Figures of a job for monitoring systems: families of samples, the same for Prometheus and OTLP.

The names are a contract: dashboards use them. All are listed in `FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from stepscope.live.show.event_source import source_of
from stepscope.live.show.history import Total
from stepscope.live.show.status import Status
from stepscope.live.show.view import View
from stepscope.live.verdicts import Cause

FamilyKind = Literal["gauge", "counter", "summary"]
MOST_RANKS = 16_384
"""Ranks beyond are left out, so that nobody can fill a monitoring system."""
MOST_BLAMED = 256
"""Series of blamed ranks beyond are left out."""


@dataclass(frozen=True)
class Described:
    """A family: its name, kind, meaning and labels besides `job`."""

    name: str
    kind: FamilyKind
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""


FAMILIES: dict[str, Described] = {
    each.name: each
    for each in (
        Described("stepscope_rank_up", "gauge", "Whether the rank takes part and was heard lately: 1 or 0.", ("rank",)),
        Described(
            "stepscope_rank_info",
            "gauge",
            "Host, framework and device of the rank; always 1.",
            ("rank", "host", "framework", "device"),
        ),
        Described("stepscope_steps_total", "counter", "Steps that the rank has reported.", ("rank",)),
        Described("stepscope_step_seconds", "summary", "Duration of the rank's steps.", ("rank",), "s"),
        Described("stepscope_data_wait_seconds", "summary", "Waits for batches, by step.", ("rank",), "s"),
        Described("stepscope_forward_seconds", "summary", "Forward passes, by step.", ("rank",), "s"),
        Described(
            "stepscope_communication_seconds",
            "summary",
            "Communication as seen by the host, by step; only while its switch is on.",
            ("rank",),
            "s",
        ),
        Described("stepscope_checkpoint_seconds", "summary", "Saving checkpoints, by step.", ("rank",), "s"),
        Described(
            "stepscope_recent_seconds",
            "gauge",
            "Median over the rank's last 20 steps, by kind: step, data_wait, forward, communication.",
            ("rank", "kind"),
            "s",
        ),
        Described(
            "stepscope_slow_ratio",
            "gauge",
            "Time that the rank spends without waiting for others, relative to the median rank.",
            ("rank",),
        ),
        Described(
            "stepscope_records_dropped_total",
            "counter",
            "Records that the rank could not write to disk.",
            ("rank",),
        ),
        Described("stepscope_ranks", "gauge", "Ranks by state: alive, late, lost.", ("state",)),
        Described("stepscope_job_step", "gauge", "Steps that most ranks have ended."),
        Described("stepscope_verdicts_open", "gauge", "Verdicts that last, by cause.", ("cause",)),
        Described("stepscope_verdicts_total", "counter", "Verdicts that were opened, by cause.", ("cause",)),
        Described(
            "stepscope_blamed_ratio",
            "gauge",
            "Of each rank that an open verdict blames, its time relative to what it should be; 0 if unknown.",
            ("rank", "cause"),
        ),
        Described("stepscope_switch_on", "gauge", "Whether a kind of range is to be recorded: 1 or 0.", ("kind",)),
        Described(
            "stepscope_switch_ranks",
            "gauge",
            "Ranks that have applied the state of the switches, have not yet, or could not: applied, pending, failed.",
            ("state",),
        ),
        Described(
            "stepscope_detector_lag_seconds", "gauge", "How far the detector is behind the steps that came.", (), "s"
        ),
        Described(
            "stepscope_storage_used_bytes",
            "gauge",
            "Size of the records of all jobs, if they are on the manager's host.",
            (),
            "By",
        ),
    )
}
"""By name."""

_SUMMARIES = {
    "stepscope_step_seconds": "step_ns",
    "stepscope_data_wait_seconds": "data_ns",
    "stepscope_forward_seconds": "forward_ns",
    "stepscope_communication_seconds": "communication_ns",
    "stepscope_checkpoint_seconds": "checkpoint_ns",
}


class Sample(NamedTuple):
    """A value; of a summary the sum of `number` values."""

    labels: tuple[str, ...]
    value: float
    number: int = 0


@dataclass(frozen=True)
class Family:
    """The samples of a family; its labels are `job` and those described."""

    described: Described
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot:
    """What figures are made from, taken at once in the event loop."""

    status: Status
    totals: Mapping[int, Mapping[str, Total]]
    opened: Mapping[str, int]


def snapshot(view: View) -> Snapshot:
    """The state of a job now; to be called in the event loop."""
    totals = {
        rank: {measure: Total(total.count, total.sum_ns) for measure, total in history.totals.items()}
        for rank, history in view.histories.items()
    }
    return Snapshot(view.status(), totals, dict(source_of(view.manager).opened))


def families(taken: Snapshot) -> list[Family]:
    """All figures of a job. Ranks that have gone have no figures but that they are not up."""
    made: dict[str, list[Sample]] = {name: [] for name in FAMILIES}
    for name, sample in (*_of_ranks(taken), *_of_job(taken)):
        made[name].append(sample)
    return [Family(FAMILIES[name], samples) for name, samples in made.items() if samples]


def _of_ranks(taken: Snapshot) -> Iterator[tuple[str, Sample]]:
    for one in taken.status.ranks[:MOST_RANKS]:
        rank = str(one.rank)
        yield "stepscope_rank_up", Sample((rank,), one.state == "alive")
        if one.state == "lost":
            continue
        yield "stepscope_rank_info", Sample((rank, one.host, one.framework, one.device), 1)
        yield "stepscope_records_dropped_total", Sample((rank,), one.dropped)
        if one.own_ratio is not None:
            yield "stepscope_slow_ratio", Sample((rank,), one.own_ratio)
        recent = {
            "step": one.step_ns,
            "data_wait": one.data_ns,
            "forward": one.forward_ns,
            "communication": one.communication_ns,
        }
        for kind, value in recent.items():
            if value is not None:
                yield "stepscope_recent_seconds", Sample((rank, kind), value / 1e9)
        totals = taken.totals.get(one.rank, {})
        for name, measure in _SUMMARIES.items():
            total = totals.get(measure, Total())
            if total.count:
                yield name, Sample((rank,), total.sum_ns / 1e9, total.count)
        if "step_ns" in totals:
            yield "stepscope_steps_total", Sample((rank,), totals["step_ns"].count)


def _of_job(taken: Snapshot) -> Iterator[tuple[str, Sample]]:
    status = taken.status
    for state in ("alive", "late", "lost"):
        yield "stepscope_ranks", Sample((state,), status.count(state))
    if status.step is not None:
        yield "stepscope_job_step", Sample((), status.step)
    for cause in Cause:
        yield "stepscope_verdicts_open", Sample((cause.value,), sum(o.verdict.cause is cause for o in status.open))
        yield "stepscope_verdicts_total", Sample((cause.value,), taken.opened.get(cause.value, 0))
    blamed = {
        (str(rank), each.verdict.cause.value): each.verdict.ratio or 0.0
        for each in status.open
        for rank in each.verdict.ranks
    }
    for labels, ratio in list(blamed.items())[:MOST_BLAMED]:
        yield "stepscope_blamed_ratio", Sample(labels, ratio)
    switches = status.switches
    for kind in (*switches.on, *switches.off):
        yield "stepscope_switch_on", Sample((kind,), kind in switches.on)
    for state, count in (
        ("applied", switches.applied),
        ("pending", len(switches.pending)),
        ("failed", len(switches.failed)),
    ):
        yield "stepscope_switch_ranks", Sample((state,), count)
    if status.lag_ns is not None:
        yield "stepscope_detector_lag_seconds", Sample((), status.lag_ns / 1e9)
    if status.storage.used_bytes is not None:
        yield "stepscope_storage_used_bytes", Sample((), status.storage.used_bytes)
