"""Communication in trace_view.json: calls, a track a group, and below each what they are made of, a track a plane."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import polars as pl

from stepscope.export.ascend_ms.communication import members, named_calls
from stepscope.export.ascend_ms.trace_tracks import COMMUNICATION, Track, Tracks, in_order, span
from stepscope.export.rank_export import RankExport
from stepscope.present import plural
from stepscope.sources.ascend.collective_tables import ELEMENT_BYTES, NO_TYPE
from stepscope.timeline.options import TimelineOptions
from stepscope.timeline.tracks.base import Part
from stepscope.timeline.tracks.communication import PLANES

ELEMENT_TYPES = {
    "float": "FP32",
    "double": "FP64",
    "c10::half": "FP16",
    "half": "FP16",
    "c10::bfloat16": "BFP16",
    "bfloat16": "BFP16",
    "int": "INT32",
    "long int": "INT64",
    "long": "INT64",
    "short": "INT16",
    "signed char": "INT8",
    "unsigned char": "UINT8",
    "byte": "UINT8",
    "bool": "UINT8",
}
"""Element types as frameworks record them, and as the format does."""
_NOT_STATED = NO_TYPE[-1]
_PLACES = {"group": pl.String, "member": pl.Int32, "place": pl.Int64}


class CallTracks:
    """The calls and tasks of a rank, and where they are drawn.

    Readers find the group of a plane by the numbers of the tracks: those of a group follow the track of its calls.
    Planes of tasks whose call is unknown come before all groups.

    Args:
        export: The rank.
        tracks: Gives out the tracks.
    """

    def __init__(self, export: RankExport, tracks: Tracks) -> None:
        self._export, self._tracks = export, tracks

    @cached_property
    def calls(self) -> pl.DataFrame:
        """See `named_calls`: the format names calls by operation, group and place, which the tracks of `stepscope
        timeline` do not."""
        return named_calls(self._export)

    @cached_property
    def tasks(self) -> pl.DataFrame:
        """Tasks of calls in order of start, as `stepscope timeline` has them, with `number` of the plane, `group` and
        `is_placed`, whether their call is known."""
        part = Part(self._export.run, TimelineOptions())
        found = PLANES.rows(part)
        if found is None:
            return pl.DataFrame()
        rows = found.with_columns(number=pl.when(pl.col("order") >= 0).then("order")).collect()
        calls = self.calls.select("start_ns", "group", call="name", is_placed=pl.lit(value=True))
        return rows.sort("start_ns", maintain_order=True).join_asof(
            calls.sort("start_ns"), on="start_ns", by="call", check_sortedness=False
        )

    @cached_property
    def _numbers(self) -> dict[tuple[bool, str | None, int | None], int]:
        """The number of each track, by whether the call is known, the group, and the plane: -1 for the calls."""
        planes: list[tuple[bool | None, str | None, int | None]] = []
        if self.tasks.height:
            planes = self.tasks.select("is_placed", "group", "number").unique().rows()
        groups = self.calls["group"].unique(maintain_order=True).to_list()
        keys: list[tuple[bool, str | None, int | None]] = []
        for is_placed, group in [(False, None), *((True, group) for group in groups)]:
            own = {number for placed, of, number in planes if bool(placed) == is_placed and of == group}
            keys += [(True, group, -1)] if is_placed else []
            keys += [(is_placed, group, number) for number in sorted(own, key=lambda number: (number is None, number))]
        return {key: place for place, key in enumerate(keys)}

    @cached_property
    def _titles(self) -> dict[str | None, str]:
        groups = self.calls["group"].unique(maintain_order=True).to_list()
        return {group: f"Group {place} Communication" for place, group in enumerate(groups)}

    @cached_property
    def _groups(self) -> dict[int, str | None]:
        return dict(self.calls.select("start_ns", "group").iter_rows())

    def track(self, start_ns: int) -> Track:
        """The track of the call that starts at a time."""
        return self._track(self._groups[start_ns])

    def _track(self, group: str | None) -> Track:
        return self._tracks.thread(COMMUNICATION, str(self._numbers[True, group, -1]), self._titles[group])

    def call_events(self) -> Iterator[str]:
        """Calls by group."""
        for row in self.calls.iter_rows(named=True):
            yield span(row["call"], self._track(row["group"]), row["start_ns"], row["duration_ns"], _payload(row))

    def task_events(self) -> Iterator[str]:
        """Tasks by plane. The format counts ranks within the group of the call."""
        if self.tasks.is_empty():
            return
        known = [(group, rank, at) for group, own in members(self._export).items() for at, rank in enumerate(own)]
        places = pl.DataFrame(known, schema=_PLACES, orient="row").unique(["group", "member"], keep="first")
        rows = in_order(self.tasks)
        for end in ("source", "destination"):
            placed = places.rename({"member": end, "place": f"{end}_place"})
            rows = rows.join(placed, on=["group", end], how="left", maintain_order="left")
        for row in rows.iter_rows(named=True):
            number = row["number"]
            key = (bool(row["is_placed"]), row["group"], number)
            title = "Plane" if number is None else f"Plane {number}"
            track = self._tracks.thread(COMMUNICATION, str(self._numbers[key]), title)
            yield span(row["name"], track, row["start_ns"], row["duration_ns"], _task(row))
        ends = [pl.col(end).is_not_null() & pl.col(f"{end}_place").is_null() for end in ("source", "destination")]
        lost = int(rows.select(pl.any_horizontal(ends).sum()).item())
        if lost:
            reason = f"{plural(lost, 'task')} of communication with ranks that are in no known group of their call"
            self._export.leave_out("trace_view.json (ranks of tasks)", reason)


def _task(row: dict[str, Any]) -> dict[str, Any]:
    """What is known of a task."""
    size, duration = row["size_bytes"], row["duration_ns"]
    return {
        "duration estimated(us)": duration / 1000,
        "stream id": row["stream"],
        "plane id": row["number"],
        "task type": row["name"],
        "src rank": row["source_place"],
        "dst rank": row["destination_place"],
        "transport type": row["transport"] or _NOT_STATED,
        "size(Byte)": size,
        "data type": row["element_type"] or _NOT_STATED,
        "link type": row["link"] or _NOT_STATED,
        "bandwidth(GB/s)": None if size is None or not duration else size / duration,
    }


def _payload(row: dict[str, Any]) -> dict[str, Any]:
    """What is known of a call and its data; the format gives its size as a number of elements."""
    recorded = str(row["element_type"] or "")
    element = ELEMENT_TYPES.get(recorded.lower(), recorded)
    width, size = ELEMENT_BYTES.get(element), row["size_bytes"]
    said = {None: None, True: "yes", False: "no"}
    return {
        "connection_id": row["correlation"],
        "data_type": element or None,
        "alg_type": row["algorithm"],
        "count": size // width if width and size is not None and size % width == 0 else None,
        "relay": said[row["relayed"]],
        "retry": said[row["retried"]],
        "stream id": row["stream"],
    }
