"""What a timeline file holds, read as viewers read it: Perfetto's protobuf as its trace processor does, and JSON."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED = 1


class Place(NamedTuple):
    """A track: the process that it is in (without labels), and its title, with its group's in front."""

    process: str
    track: str


class Drawn(NamedTuple):
    """A range, or a point if it has no end. Times are ns from the start of the file."""

    place: Place
    start: int
    end: int | None
    name: str
    category: str
    args: tuple[tuple[str, str], ...]


class Sample(NamedTuple):
    """A sample of a counter."""

    place: Place
    at: int
    value: float


@dataclass
class Timeline:
    """A file.

    Args:
        ranges, points, samples: In order of time.
        flows: The ends of arrows: number, track, and start of the range there.
        processes: Their names with labels, in order.
        tracks: All tracks in order.
        deepest: Most ranges within one another on any track.
        unended: Ranges that never end.
        unbegun: Ends of no range.
    """

    ranges: list[Drawn] = field(default_factory=list)
    points: list[Drawn] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    flows: list[tuple[int, Place, int]] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    tracks: list[Place] = field(default_factory=list)
    deepest: int = 0
    unended: int = 0
    unbegun: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether a viewer draws all that is in it."""
        return not self.unended and not self.unbegun and self.deepest <= 256

    def __len__(self) -> int:
        return len(self.ranges) + len(self.points) + len(self.samples)


def read(file: Path) -> Timeline:
    """A file of either form."""
    data = file.read_bytes()
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    return _read_json(data) if data.lstrip().startswith(b"{") else _read_perfetto(data)


def texts(args: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Arguments as texts, since JSON has whole numbers beyond 53 bits as texts."""
    return tuple(sorted((name, str(value)) for name, value in args.items()))


def _packets(data: bytes) -> Iterator[Any]:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    for packet in Trace.FromString(data).packet:
        if packet.compressed_packets:
            yield from _packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


class _Interned:
    """The texts of a sequence of packets, by number."""

    KINDS = ("event_names", "event_categories", "debug_annotation_names", "debug_annotation_string_values")

    def __init__(self) -> None:
        self.texts: dict[str, dict[int, str]] = {kind: {} for kind in self.KINDS}

    def add(self, data: Any) -> None:
        """Take what a packet tells; no number may be told twice."""
        for kind, texts in self.texts.items():
            for entry in getattr(data, kind):
                assert entry.iid not in texts, f"{kind} {entry.iid} is told twice"
                texts[entry.iid] = entry.str.decode() if hasattr(entry, "str") else entry.name

    def args(self, event: Any) -> dict[str, Any]:
        """The arguments of an event."""
        found: dict[str, Any] = {}
        for told in event.debug_annotations:
            name = self.texts["debug_annotation_names"][told.name_iid]
            value = getattr(told, told.WhichOneof("value"))
            if told.WhichOneof("value") == "string_value_iid":
                value = self.texts["debug_annotation_string_values"][value]
            assert name not in found, f"argument {name} is there twice"
            found[name] = value
        return found


def _read_perfetto(data: bytes) -> Timeline:
    found, interned = Timeline(), _Interned()
    descriptors: dict[int, Any] = {}
    events: list[tuple[int, Any, tuple[str, str, dict[str, Any]]]] = []
    for packet in _packets(data):
        if packet.sequence_flags & CLEARED:
            interned = _Interned()
        if packet.HasField("interned_data"):
            interned.add(packet.interned_data)
        if packet.HasField("track_descriptor"):
            described = packet.track_descriptor
            assert described.uuid not in descriptors
            assert not described.HasField("parent_uuid") or described.parent_uuid in descriptors
            descriptors[described.uuid] = described
        if packet.HasField("track_event"):
            event = packet.track_event
            told: tuple[str, str, dict[str, Any]] = ("", "", {})
            assert event.track_uuid in descriptors
            if event.type in (BEGIN, INSTANT):
                (category,) = event.category_iids
                name = interned.texts["event_names"][event.name_iid]
                told = (name, interned.texts["event_categories"][category], interned.args(event))
            events.append((packet.timestamp, event, told))
    groups = {each.parent_uuid for each in descriptors.values()}
    places = {uuid: place for uuid in descriptors if uuid not in groups and (place := _place(descriptors, uuid))}
    by_order = sorted(descriptors.values(), key=lambda each: each.sibling_order_rank)
    found.processes = [each.name for each in by_order if not each.HasField("parent_uuid")]
    found.tracks = [places[uuid] for uuid in sorted(places, key=lambda uuid: _order(descriptors, uuid))]
    _drawn(found, places, sorted(events, key=lambda each: each[0]))
    return found


def _place(descriptors: dict[int, Any], uuid: int) -> Place | None:
    """Where a track is; None for processes, and groups that no event is on."""
    names = []
    while descriptors[uuid].HasField("parent_uuid"):
        names.append(descriptors[uuid].name)
        uuid = descriptors[uuid].parent_uuid
    process = descriptors[uuid].name.split(" · ")[0]
    return Place(process, ": ".join(reversed(names))) if names else None


def _order(descriptors: dict[int, Any], uuid: int) -> tuple[int, ...]:
    order = []
    while True:
        order.append(descriptors[uuid].sibling_order_rank)
        if not descriptors[uuid].HasField("parent_uuid"):
            return tuple(reversed(order))
        uuid = descriptors[uuid].parent_uuid


def _drawn(found: Timeline, places: dict[int, Place], events: list[tuple[int, Any, Any]]) -> None:
    """Ranges from their starts and ends, with a stack for each track."""
    stacks: dict[int, list[tuple[int, Any]]] = {}
    for at, event, told in events:
        place, stack = places[event.track_uuid], stacks.setdefault(event.track_uuid, [])
        if event.type == COUNTER:
            found.samples.append(Sample(place, at, event.double_counter_value))
            continue
        if event.type == END:
            if not stack:
                found.unbegun += 1
                continue
            start, (name, category, args) = stack.pop()
            found.ranges.append(Drawn(place, start, at, name, category, texts(args)))
            continue
        name, category, args = told
        if event.type == INSTANT:
            found.points.append(Drawn(place, at, None, name, category, texts(args)))
        else:
            stack.append((at, told))
            found.deepest = max(found.deepest, len(stack))
        found.flows += [(flow, place, at) for flow in event.flow_ids]
    found.unended = sum(len(stack) for stack in stacks.values())


def _refused(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


def _read_json(data: bytes) -> Timeline:
    whole = json.loads(data, parse_float=Decimal, parse_constant=_refused)
    found = Timeline()
    names: dict[tuple[str, int, int], str] = {}
    orders: dict[tuple[str, int, int], int] = {}
    for event in whole["traceEvents"]:
        if event["ph"] == "M":
            key = (event["name"].rsplit("_", 1)[0].removesuffix("_sort"), event["pid"], event.get("tid", 0))
            if "sort_index" in event["args"]:
                orders[key] = event["args"]["sort_index"]
            else:
                names[event["name"], event["pid"], event.get("tid", 0)] = str(next(iter(event["args"].values())))
    processes = {pid: name for (kind, pid, _), name in names.items() if kind == "process_name"}
    labels = {pid: name for (kind, pid, _), name in names.items() if kind == "process_labels"}
    for pid in sorted(processes, key=lambda pid: orders["process", pid, 0]):
        found.processes.append(" · ".join([processes[pid], *filter(None, [labels.get(pid, "").replace(", ", " · ")])]))
    threads = {
        (pid, tid): Place(processes[pid], name) for (kind, pid, tid), name in names.items() if kind == "thread_name"
    }
    order = sorted(threads, key=lambda each: (orders["process", each[0], 0], orders["thread", each[0], each[1]]))
    found.tracks = [threads[each] for each in order]
    _events(found, whole["traceEvents"], processes, threads)
    return found


def _events(found: Timeline, events: list[Any], processes: dict[int, str], threads: dict[Any, Place]) -> None:
    stacks: dict[Place, list[int]] = {}
    events = [event for event in events if event["ph"] != "M"]
    for event in sorted(events, key=lambda each: (each["ts"], each["ph"] == "f", -each.get("dur", 0))):
        at = _ns(event["ts"])
        if event["ph"] == "C":
            place = Place(processes[event["pid"]], event["name"])
            found.samples.append(Sample(place, at, float(event["args"]["value"])))
            continue
        place = threads[event["pid"], event["tid"]]
        if event["ph"] in "sf":
            found.flows.append((int(event["id"], 16), place, at))
            continue
        drawn = (event["name"], event["cat"], texts(event.get("args", {})))
        if event["ph"] == "i":
            found.points.append(Drawn(place, at, None, *drawn))
            continue
        end = at + _ns(event["dur"])
        found.ranges.append(Drawn(place, at, end, *drawn))
        stack = stacks.setdefault(place, [])
        while stack and stack[-1] <= at:
            stack.pop()
        found.unended += bool(stack and stack[-1] < end)  # overlaps without lying within: viewers drop it
        stack.append(end)
        found.deepest = max(found.deepest, len(stack))


def _ns(us: Decimal | int) -> int:
    exact = Decimal(us) * 1000
    assert exact == int(exact)
    return int(exact)
