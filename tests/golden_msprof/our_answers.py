"""What our answers and tables say in place of each figure of the Ascend tool, in its units."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import polars as pl
from their_tables import Figure

from stepscope.run import Run

TOTAL = "Total Op Info"

LEFT_OUT = {
    ("ClusterCommunicationBandwidth", "large_packet_ratio"): "its limit of a large packet is not recorded; sizes and "
    "numbers of packets are (table `transports`)",
    ("CommunicationGroupMapping", "group_id"): "addresses of hosts, of which the group's key is a hash",
    ("RankDeviceMap", "hostUid"): "a number of the host, which has a name",
    (
        "RankDeviceMap",
        "profilePath",
    ): "where the files were when the tool read them; `stepscope info` says where they are",
}
"""Figures that are not compared, and why."""

_STEP_PARTS: Mapping[str, pl.Expr] = {
    "computing": pl.col("computing_ns"),
    "communication_not_overlapped": pl.col("communication_not_overlapped_ns"),
    "overlapped": pl.col("overlapped_ns"),
    "communication": pl.col("communication_ns"),
    "free": pl.col("free_ns") + pl.col("memory_not_overlapped_ns"),
    "stage": pl.col("stage_ns"),
    "bubble": pl.col("bubble_ns"),
    "communication_not_overlapped_and_exclude_receive": pl.col("communication_not_overlapped_exclude_receive_ns"),
    "preparing": pl.col("preparing_ns"),
}
_INDEX = {"dp_index": "data", "pp_index": "pipeline", "tp_index": "tensor"}
_OF_ADVISOR = {"compute(us)": "computing", "communication(us)": "communication_not_overlapped", "free(us)": "free"}


class Answers:
    """The answers about one run."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def value(self, figure: Figure) -> Any:
        """Our value of a figure; None if there is none.

        Raises:
            KeyError: If nothing is known of such figures.
        """
        return _ANSWERS[figure.table](self, figure)

    def step_trace(self, figure: Figure) -> Any:
        """Parts of a step in us, and the rank's place in the groups of each parallelism."""
        step, rank = int(figure.about[0]), int(figure.about[1])
        column = _OF_ADVISOR.get(figure.column, figure.column)
        if column in _INDEX:
            return self._places.get((_INDEX[column], rank), 0)
        row = self._steps.get((rank, step))
        return None if row is None else row[column] / 1e3

    def advised_step(self, figure: Figure) -> Any:
        """As `step_trace`, with the keys the other way."""
        return self.step_trace(figure)

    def call_times(self, figure: Figure) -> Any:
        """Times of a call in ms (start in us), or their sums."""
        step, rank, name, _ = figure.about
        row = self._calls.get((int(step.removeprefix("step")), rank, None if name == TOTAL else name))
        if row is None:
            return None
        idle = row["duration_ns"] - row["transmit_ns"] - row["wait_ns"]
        known = {
            "start_timestamp": 0 if name == TOTAL else row["start_ns"] / 1e3,
            "elapsed_time": row["duration_ns"] / 1e6,
            "transit_time": row["transmit_ns"] / 1e6,
            "wait_time": row["wait_ns"] / 1e6,
            "synchronization_time": row["synchronization_ns"] / 1e6,
            "idle_time": idle / 1e6,
            "wait_time_ratio": _ratio(row["wait_ns"], row["transmit_ns"]),
            "synchronization_time_ratio": _ratio(row["synchronization_ns"], row["transmit_ns"]),
        }
        return known[figure.column]

    def bandwidths(self, figure: Figure) -> Any:
        """What a call, or all of a step, moved over a transport; nothing moved is 0."""
        step, rank, name, _, band, packet = figure.about
        whole = (int(step.removeprefix("step")), rank, None if name == TOTAL else name, band)
        moved = self._moved.get(whole, {"size_bytes": 0, "duration_ns": 0})
        sized = self._packets.get((*whole, round(packet * 1e6)), {"packets": 0, "duration_ns": 0})
        known = {
            "transit_size": moved["size_bytes"] / 1e6,
            "transit_time": moved["duration_ns"] / 1e6,
            "bandwidth": moved["size_bytes"] / moved["duration_ns"] if moved["duration_ns"] else 0,
            "count": sized["packets"],
            "total_duration": sized["duration_ns"] / 1e6,
        }
        return known[figure.column]

    def matrix(self, figure: Figure) -> Any:
        """What a call, or all of a step, moved over a link. A class of calls names one by its rank among the others by
        bandwidth: the call that it names has to have that rank here as well."""
        step, named, _, operator, source, end = figure.about
        key = (int(step.removeprefix("step")), operator or None, int(source), int(end))
        row = self._links.get(key)
        if row is None or not self._has_its_rank(named, key):
            return None
        known = {
            "transport_type": row["transport"],
            "transit_size": row["size_bytes"] / 1e6,
            "transit_time": row["duration_ns"] / 1e6,
            "bandwidth": row["size_bytes"] / row["duration_ns"],
        }
        return known[figure.column]

    def _has_its_rank(self, named: str, key: tuple[int, str | None, int, int]) -> bool:
        """Whether the fastest and the slowest call of a link are that; equally fast ones may stand for each other."""
        if key[1] is None or not named.endswith(("top1", "bottom1")):
            return True
        step, name, *ends = key
        rates = {
            other[1]: row["size_bytes"] / row["duration_ns"]
            for other, row in self._links.items()
            if other[0] == step and [*other[2:]] == ends and other[1] is not None
        }
        best = max(rates.values()) if named.endswith("top1") else min(rates.values())
        return abs(rates[name] / best - 1) < 1e-6

    def group(self, figure: Figure) -> Any:
        """Members and name of a group."""
        row = self._groups.get(figure.about[0])
        if row is None:
            return None
        return f"({','.join(map(str, row['members']))})" if figure.column == "rank_set" else row["group_name"]

    def host(self, figure: Figure) -> Any:
        """The host's name, of which there is one."""
        (host,) = {row["host"] for row in self._ranks.values()}
        return host

    def device(self, figure: Figure) -> Any:
        """The device of a rank."""
        return self._ranks[figure.about[0]]["device"]

    def parallelism(self, figure: Figure) -> Any:
        """The recorded parallel sizes, in their order."""
        sizes = [json.loads(row["parallelism"]) for row in self._ranks.values()]
        (text,) = {json.dumps({name: one[name] for name in sorted(one) if name != "rank"}) for one in sizes}
        return text

    def moved_by_rank(self, figure: Figure) -> Any:
        """What a rank moved in a step over a transport, and how fast."""
        step, rank = figure.about
        band = figure.column.partition(" ")[0]
        moved = self._moved.get((step, rank, None, band), {"size_bytes": 0, "duration_ns": 0})
        if "bandwidth" in figure.column:
            return moved["size_bytes"] / moved["duration_ns"] if moved["duration_ns"] else 0
        return moved["size_bytes" if "size" in figure.column else "duration_ns"] / 1e6

    @cached_property
    def _steps(self) -> dict[tuple[int, int], dict[str, Any]]:
        found = self._run.analyse("breakdown").select("rank", "step", **_STEP_PARTS)
        return {(row["rank"], row["step"]): row for row in found.iter_rows(named=True)}

    @cached_property
    def _places(self) -> dict[tuple[str, int], int]:
        rows = self._run.analyse("process_groups").select("parallelism", "members").iter_rows()
        return {(kind, rank): place for kind, members in rows for place, rank in enumerate(members)}

    @cached_property
    def _calls(self) -> dict[tuple[int, int, str | None], dict[str, Any]]:
        lengths = ("duration_ns", "transmit_ns", "wait_ns", "synchronization_ns")
        rows = self._run.table("collectives").select("step", "rank", "name", "start_ns", *lengths).collect()
        sums = rows.group_by("step", "rank").agg(pl.col("start_ns").min(), pl.col(lengths).sum())
        return _keyed(rows, "step", "rank", "name") | _keyed(
            sums.with_columns(name=pl.lit(None)), "step", "rank", "name"
        )

    @cached_property
    def _packets(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        keys = ("step", "rank", "name", "transport", "packet_bytes")
        return self._summed(keys, "packets", "duration_ns")

    @cached_property
    def _moved(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        return self._summed(("step", "rank", "name", "transport"), "size_bytes", "duration_ns")

    def _summed(self, keys: tuple[str, ...], *values: str) -> dict[tuple[Any, ...], dict[str, Any]]:
        """Sums by call, and over all calls (`name` is None)."""
        rows = self._run.table("transports").collect()
        both = [rows, rows.with_columns(name=pl.lit(None, pl.String))]
        return {
            key: row
            for part in both
            for key, row in _keyed(part.group_by(keys).agg(pl.col(values).sum()), *keys).items()
        }

    @cached_property
    def _links(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        return _keyed(self._run.table("links").collect(), "step", "name", "source", "destination")

    @cached_property
    def _groups(self) -> dict[str, dict[str, Any]]:
        return {row["group"]: row for row in self._run.analyse("process_groups").iter_rows(named=True)}

    @cached_property
    def _ranks(self) -> dict[int, dict[str, Any]]:
        return {row["rank"]: row for row in self._run.table("ranks").collect().iter_rows(named=True)}


def _keyed(rows: pl.DataFrame, *keys: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[key] for key in keys): row for row in rows.iter_rows(named=True)}


def _ratio(part: int, rest: int) -> float:
    return part / (part + rest) if part + rest else 0.0


_ANSWERS: dict[str, Callable[[Answers, Figure], Any]] = {
    "ClusterStepTraceTime": Answers.step_trace,
    "ClusterCommunicationTime": Answers.call_times,
    "ClusterCommunicationBandwidth": Answers.bandwidths,
    "ClusterCommunicationMatrix": Answers.matrix,
    "CommunicationGroupMapping": Answers.group,
    "HostInfo": Answers.host,
    "RankDeviceMap": Answers.device,
    "ClusterBaseInfo": Answers.parallelism,
    "slow rank": Answers.advised_step,
    "slow link": Answers.moved_by_rank,
}
