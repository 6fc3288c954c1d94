"""A manager as the views see it: listens to it once, and answers with a `Status` at any time.

All of it runs in the manager's event loop; nothing here blocks.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

import msgspec

from stepscope.live.kinds import Kind
from stepscope.live.messages import Digest, Inside, Pulse
from stepscope.live.show.captures import Captures
from stepscope.live.show.disk_use import DiskUse
from stepscope.live.show.history import MEASURES, RankHistory, median_of
from stepscope.live.show.sentences import action, circumstances, headline, short_name
from stepscope.live.show.status import (
    FailedSwitch,
    NodeStatus,
    RankStatus,
    Status,
    StorageProblem,
    StorageStatus,
    SwitchStatus,
    VerdictStatus,
)
from stepscope.live.show.watched import Watched, WatchedRank
from stepscope.live.verdicts import Verdict
from stepscope.present import duration

LATE_NS = 3_000_000_000
"""A rank that was not heard for longer is late: three pulses are missing."""
WORTH_A_LOOK = 64
"""Ranks of which the last steps are part of a status; a screen shows fewer."""
RECENT_STEPS = 48
"""Last steps that are part of a status."""
MOST_JOB = 256
"""Longer task ids are shortened; launchers make ids of up to some 70 characters."""
SHOWN_OVER = 20
"""Verdicts that are over and part of a status."""


class View:
    """Follows one manager.

    Args:
        manager: It is listened to from now on.
    """

    def __init__(self, manager: Watched) -> None:
        self._manager = ref(manager)  # the manager keeps the view, so that both end together
        self.histories: dict[int, RankHistory] = {}
        self.captures = Captures()
        self._started: dict[int, int] = {}
        self._disk = DiskUse()
        manager.listen(self.take)
        manager.capture_begun.append(self.captures.begun)

    @property
    def manager(self) -> Watched:
        """What this is the view of.

        Raises:
            ReferenceError: If it is no more.
        """
        manager = self._manager()
        if manager is None:
            raise ReferenceError("the manager of this view has ended")
        return manager

    def take(self, event: Any) -> None:
        """Something has happened."""
        if isinstance(event, Digest):
            self._history_of(event.rank).take(event)
        elif not isinstance(event, Pulse):
            self.captures.take(event)

    def _history_of(self, rank: int) -> RankHistory:
        known = self.manager.ranks.get(rank)
        history = self.histories.setdefault(rank, RankHistory())
        if known is not None and self._started.setdefault(rank, known.hello.started_at_ns) != known.hello.started_at_ns:
            self._started[rank] = known.hello.started_at_ns
            history.restarted()
        return history

    def status(self, now_ns: int | None = None) -> Status:
        """What the job is doing now.

        Args:
            now_ns: Since the epoch; default: now.
        """
        now_ns = time.time_ns() if now_ns is None else now_ns
        manager = self.manager
        verdicts = list(manager.verdicts.values())
        last = [verdict for verdict in verdicts if not verdict.is_over]
        over = [verdict for verdict in verdicts if verdict.is_over]
        ranks = self._ranks(now_ns, {rank for verdict in last for rank in verdict.ranks})
        taking_part = [rank for rank in ranks if rank.state != "lost"]
        directories = sorted({each.hello.directory.rpartition("/")[0] for each in manager.ranks.values()} - {""})
        return Status(
            job=short_name(manager.job, MOST_JOB),
            at_ns=now_ns,
            world_size=max((each.hello.world_size or 0 for each in manager.ranks.values()), default=0) or None,
            step=_most_frequent([rank.step for rank in taking_part]),
            step_ns=median_of(rank.step_ns for rank in taking_part),
            switches=self._switches(),
            ranks=ranks,
            nodes=_nodes(ranks),
            open=[self._worded(verdict) for verdict in sorted(last, key=_weight)],
            over=[self._worded(each) for each in sorted(over, key=lambda each: -(each.until_at_ns or 0))[:SHOWN_OVER]],
            storage=StorageStatus(
                [short_name(directory, 200) for directory in directories],
                self._disk.of(directories),
                sum(rank.dropped for rank in ranks),
                [StorageProblem(rank.rank, rank.host, rank.problem) for rank in ranks if rank.problem],
            ),
            captures=self.captures.listed(),
            lag_ns=manager.lag_ns,
        )

    def platform_of(self, verdict: Verdict) -> tuple[str, str]:
        """Framework and device of the ranks that a verdict blames, of all ranks if it blames none; empty if mixed."""
        known = self.manager.ranks
        chosen = [known[rank].hello for rank in verdict.ranks if rank in known] or [one.hello for one in known.values()]
        frameworks, devices = {hello.framework for hello in chosen}, {hello.device for hello in chosen}
        return (
            frameworks.pop() if len(frameworks) == 1 else "",
            devices.pop() if len(devices) == 1 else "",
        )

    def _worded(self, verdict: Verdict) -> VerdictStatus:
        framework, device = self.platform_of(verdict)
        return VerdictStatus(
            verdict, headline(verdict), circumstances(verdict), action(verdict, framework, device), framework, device
        )

    def _switches(self) -> SwitchStatus:
        board = self.manager.board
        requested = board.requested
        on = requested.switches.as_names()
        applied, pending, failed = 0, [], []
        for rank, state in sorted(board.acknowledged.items()):
            if state.error:
                failed.append(FailedSwitch(rank, short_name(state.error, 200)))
            elif state.revision < requested.revision:
                pending.append(rank)
            else:
                applied += 1
        off = [kind.value for kind in Kind if kind.value not in on]
        by = short_name(requested.by)
        return SwitchStatus(on, off, requested.revision, by, requested.at_ns, applied, pending, failed)

    def _ranks(self, now_ns: int, blamed: set[int]) -> list[RankStatus]:
        typical = {
            rank: {measure: history.typical(measure) for measure in (*MEASURES, "own_ns")}
            for rank, history in self.histories.items()
        }
        own = _lower_median_of(
            typical[rank]["own_ns"] for rank, each in self.manager.ranks.items() if each.alive and rank in typical
        )
        made = [self._rank(rank, each, typical.get(rank, {}), own, now_ns) for rank, each in self.manager.ranks.items()]
        shown = {one.rank for one in worst_first(made, blamed)[:WORTH_A_LOOK]}
        return sorted((self._with_recent(one) if one.rank in shown else one for one in made), key=lambda one: one.rank)

    def _rank(
        self, rank: int, known: WatchedRank, times: dict[str, int | None], own: int | None, now_ns: int
    ) -> RankStatus:
        hello, pulse = known.hello, known.pulse
        seen_ns = max(now_ns - known.last_seen_ns, 0)
        mine = times.get("own_ns")
        history = self.histories.get(rank)
        return RankStatus(
            rank=rank,
            host=short_name(hello.host),
            state="lost" if not known.alive else "late" if seen_ns > LATE_NS else "alive",
            pid=hello.pid,
            framework=short_name(hello.framework, 20),
            device=short_name(hello.device, 20),
            seen_ns=seen_ns,
            step=max(pulse.step if pulse else 0, history.recent[-1].step if history and history.recent else 0),
            step_ns=times.get("step_ns"),
            data_ns=times.get("data_ns"),
            forward_ns=times.get("forward_ns"),
            communication_ns=times.get("communication_ns"),
            checkpoint_ns=max((one.checkpoint_ns or 0 for one in history.recent), default=0) or None
            if history
            else None,
            own_ns=mine,
            own_ratio=mine / own if mine is not None and own else None,
            idle_ns=pulse.idle_ns if pulse else 0,
            inside=_inside(pulse.inside) if pulse else "",
            dropped=pulse.dropped if pulse else 0,
            problem=short_name(pulse.problem, 200) if pulse else "",
        )

    def _with_recent(self, one: RankStatus) -> RankStatus:
        history = self.histories.get(one.rank)
        if history is None:
            return one
        waits = history.waits_for_batches
        last = [(each.step, each.step_ns, each.data_ns if waits else None, each.forward_ns) for each in history.recent][
            -RECENT_STEPS:
        ]
        return msgspec.structs.replace(one, recent=last)


_views: WeakKeyDictionary[Any, View] = WeakKeyDictionary()


def view_of(manager: Watched) -> View:
    """The view of a manager, which all that shows it share."""
    view = _views.get(manager)
    if view is None:
        view = _views[manager] = View(manager)
    return view


def worst_first(ranks: Iterable[RankStatus], blamed: set[int]) -> list[RankStatus]:
    """Ranks in the order in which to look at them: blamed, not heard, without records, then by their own time."""

    def key(one: RankStatus) -> tuple[bool, bool, bool, float, int]:
        return (one.rank not in blamed, one.state == "alive", not one.problem, -(one.own_ratio or 0.0), one.rank)

    return sorted(ranks, key=key)


def _lower_median_of(values: Iterable[int | None]) -> int | None:
    """The median of the known values, of an even number the lower of the two in the middle; None if there are none.

    So with two ranks, the slower one is compared with the faster one, not with their mean.
    """
    known = sorted(value for value in values if value is not None)
    return known[(len(known) - 1) // 2] if known else None


def _weight(verdict: Verdict) -> tuple[bool, int, str]:
    """Hangs first, then what costs most."""
    return verdict.cause.value != "hang", -(verdict.cost_ns or 0), verdict.key


def _most_frequent(steps: Sequence[int]) -> int | None:
    return Counter(steps).most_common(1)[0][0] if steps else None


def _nodes(ranks: list[RankStatus]) -> list[NodeStatus]:
    nodes: dict[str, dict[str, list[int]]] = {}
    for one in ranks:
        nodes.setdefault(one.host, {"alive": [], "late": [], "lost": []})[one.state].append(one.rank)
    return [NodeStatus(host, **states) for host, states in nodes.items()]


def _inside(inside: list[Inside]) -> str:
    if not inside:
        return ""
    last = inside[-1]
    what = " ".join(filter(None, [last.operation or last.mark, f"in {last.group}" if last.group else ""]))
    return f"{short_name(what, 40)} for {duration(last.for_ns)}"
