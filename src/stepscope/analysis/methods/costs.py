"""What it saves to mend suspects: by replaying the job without their excess, or, if the ranks share no calls, by the
rank that is busy longest in each step."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analysis.methods.call_cuts import CallCuts
from stepscope.analysis.methods.excess_places import PIECE, PLACE, cuts
from stepscope.analysis.methods.extra_waits import extra_waits
from stepscope.analysis.methods.extra_work import apart
from stepscope.analysis.methods.job_graph import JobGraph, without_waits
from stepscope.analysis.methods.link_cuts import LinkCuts

GRAPHS = 4
"""Jobs without waits that are kept for further questions; one of a million pieces takes 100 MB."""


class ReplayCosts:
    """Savings by replay.

    Args:
        graph: The job.
        excess: As for `cuts`.
        suspects: `suspect` (a number from 0), `rank`, `step`, `kind`: whose excess each one is about.
        known: The steps in which it is known who is slow. Default: all.
        transmission: Suspects that are links or groups; their numbers are others.
        extra: Pieces of work that are not compared (`apart`).
    """

    def __init__(
        self,
        graph: JobGraph,
        excess: pl.DataFrame,
        suspects: pl.DataFrame,
        known: Sequence[int] | None = None,
        transmission: LinkCuts | CallCuts | None = None,
        extra: pl.DataFrame | None = None,
    ) -> None:
        self._graph = graph
        self._places = [place for place, step in enumerate(graph.steps) if known is None or step in known]
        self.steps = [graph.steps[place] for place in self._places]
        """The steps of all values."""
        self.recorded_ns = graph.recorded_step_times().gather(self._places)
        self.step_ns = graph.step_times().gather(self._places)
        """Replayed times of the steps."""
        # Their peers stay, as they show which pieces take longer.
        among = ["program", "step", "kind"]
        suspected = excess.join(suspects.select(PLACE).unique(), on=PLACE, how="semi")
        marked = (
            excess.join(suspected.select(among).unique(), on=among, how="semi", maintain_order="left")
            .join(suspected.select(*PLACE, slow="excess_ns"), on=PLACE, how="left", maintain_order="left")
            .with_columns(excess_ns=pl.col("slow").fill_null(0))
        )
        nodes = apart(graph.nodes.select(PIECE), extra)
        cut = cuts(nodes, marked).alias("cut")
        places = nodes.select(PLACE).with_columns(cut).with_row_index("node")
        found = places.filter(pl.col("cut") > 0).join(suspects, on=PLACE, maintain_order="left")
        self._cuts = {
            number: (rows["node"], rows["cut"])
            for (number,), rows in found.partition_by("suspect", as_dict=True, maintain_order=True).items()
        }
        self._transmission = transmission
        waits = extra_waits(graph, suspects, excess)
        self._waits = {number: rows["node"] for (number,), rows in waits.partition_by("suspect", as_dict=True).items()}
        self.replayed = frozenset((*self._cuts, *self._waits, *(transmission.suspects if transmission else ())))
        """Suspects without whose excess the job can be replayed."""
        self._graphs = {frozenset[int](): graph}
        self._saved: dict[frozenset[int], Sequence[float]] = {}

    def saved(self, mended: frozenset[int]) -> Sequence[float]:
        """By how much each step is shorter without the excess of these suspects; each set is replayed once."""
        effective = mended & self.replayed
        if effective not in self._saved:
            self._saved[effective] = self._replayed(effective)
        return self._saved[effective]

    def _replayed(self, mended: frozenset[int]) -> Sequence[float]:
        if not mended:
            return [0.0] * len(self.step_ns)
        graph, durations = self.mended(mended)
        step_ns = graph.step_times(durations, self._graph.simulation.lag_ns).gather(self._places)
        return [float(saved) for saved in self.step_ns - step_ns]

    def mended(self, mended: frozenset[int]) -> tuple[JobGraph, pl.Series]:
        """The job without the excess of these suspects, and the durations of its nodes; lags stay as they are.

        Waits for the device that only these suspects have are left out, and their calls are shorter.
        """
        numbers = sorted(mended)
        durations = self._graph.simulation.duration_ns
        parts = [self._cuts[number] for number in numbers if number in self._cuts]
        if self._transmission is not None and not mended.isdisjoint(self._transmission.suspects):
            parts.append(self._transmission.of(mended))
        if parts:
            nodes = pl.concat([nodes for nodes, _ in parts])
            cut = (
                pl.DataFrame({"node": nodes, "cut": pl.concat([one for _, one in parts])})
                .group_by("node")
                .agg(pl.col("cut").max())
            )
            left = durations.gather(cut["node"]) - cut["cut"]
            durations = durations.clone().scatter(cut["node"], left)
        waiting = frozenset(numbers).intersection(self._waits)
        if waiting not in self._graphs:
            for oldest in [*self._graphs][1 : len(self._graphs) - GRAPHS + 1]:
                del self._graphs[oldest]
            self._graphs[waiting] = without_waits(self._graph, pl.concat([self._waits[one] for one in sorted(waiting)]))
        if waiting:
            gone = pl.concat([self._waits[one] for one in sorted(waiting)]).unique()
            durations = durations.clone().scatter(gone, 0)
        return self._graphs[waiting], durations


class BusyCosts:
    """Savings if each step takes as long as the host or device that is busy longest.

    Args:
        excess: `rank`, `step`, `kind`, `own_ns`, `excess_ns`, and `on_host`: whether it is work of the host of a rank
            that has a device, which work side by side.
        suspects: As for `ReplayCosts`.
        lengths: `step` and `own_ns`, how long each step took, of which savings are a share. Default: as long as the
            longest rank is busy.
        known: The steps that count. Default: all.
    """

    _PLACE = ("rank", "step", "on_host")

    def __init__(
        self,
        excess: pl.DataFrame,
        suspects: pl.DataFrame,
        lengths: pl.DataFrame | None = None,
        known: Sequence[int] | None = None,
    ) -> None:
        self.replayed = frozenset(suspects["suspect"])
        """As of `ReplayCosts`."""
        if known is not None:
            excess = excess.filter(pl.col("step").is_in([*known]))
        self._busy = excess.group_by(self._PLACE).agg(pl.col("own_ns").sum())
        own = excess.select(*PLACE, "on_host", pl.col("excess_ns").clip(lower_bound=0))
        self._suspects = suspects.join(own, on=PLACE)
        longest = self._longest(self._busy)
        self.steps: list[int] = longest["step"].to_list()
        self._busy_ns = longest["own_ns"]
        least = longest if lengths is None else pl.concat([longest, lengths.join(longest, on="step", how="semi")])
        self.step_ns = self._longest(least)["own_ns"]
        self.recorded_ns = self.step_ns

    def saved(self, mended: frozenset[int]) -> Sequence[float]:
        """By how much each step is shorter without the excess of these suspects."""
        without = self._suspects.filter(pl.col("suspect").is_in(sorted(mended))).unique(PLACE)
        less = without.group_by(self._PLACE).agg(less=pl.col("excess_ns").sum())
        busy = self._busy.join(less, on=self._PLACE, how="left").with_columns(
            own_ns=pl.col("own_ns") - pl.col("less").fill_null(0)
        )
        return [float(saved) for saved in self._busy_ns - self._longest(busy)["own_ns"]]

    @staticmethod
    def _longest(busy: pl.DataFrame) -> pl.DataFrame:
        return busy.group_by("step").agg(pl.col("own_ns").max()).sort("step")


def quartiles(values: Sequence[float], slow: Sequence[bool] | None = None) -> tuple[float, float]:
    """The lower and upper quartile of savings over the steps, or their mean where that lies outside.

    Args:
        values: The saving in each step.
        slow: Whether each is one of those that the savings are about; the quartiles are those of these steps, averaged
            over all. Default: all.

    Examples:
        >>> quartiles([0.0, 0.0, 0.0, 0.0, 100.0])
        (0.0, 20.0)
        >>> quartiles([0.0, 60.0, 0.0, 100.0], [False, True, False, True])
        (30.0, 50.0)
    """
    if slow is not None and any(slow) and not all(slow):
        share = sum(slow) / len(values)
        rest = sum(value for value, is_slow in zip(values, slow, strict=True) if not is_slow) / len(values)
        low, high = quartiles([value for value, is_slow in zip(values, slow, strict=True) if is_slow])
        return share * low + rest, share * high + rest
    column, mean = pl.Series(values), sum(values) / len(values)
    low, high = column.quantile(0.25, "lower") or 0, column.quantile(0.75, "higher") or 0
    return float(min(low, mean)), float(max(high, mean))
