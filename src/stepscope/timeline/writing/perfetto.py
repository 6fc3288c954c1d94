"""Timelines as Perfetto's protobuf: texts are interned, packets are compressed, and no range is dropped.

The messages are those of the `perfetto` package. What is alike in many packets (a range's track, name and arguments) is
built once by them and copied; what differs in each (time, whole numbers) is added as the encoding of protobuf has it.
https://perfetto.dev/docs/reference/trace-packet-proto
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack
from typing import Any, BinaryIO

import polars as pl
from isal import isal_zlib
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    InternedData,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)

from stepscope.timeline.writing.base import (
    Process,
    Track,
    argument_columns,
    flow_columns,
    readable,
)
from stepscope.timeline.writing.packets import event_packet, event_packets, framed, varint

MARK = b"stepscope timeline"
"""What the file begins with, in a packet that readers pass over: who wrote it."""
SEQUENCE = 1
"""`trusted_packet_sequence_id` of all packets: interned numbers are those of a sequence."""
BUFFER_BYTES = 1 << 20
"""Packets that are compressed together."""
COMPRESSION = 2
"""Level of isal (0 to 3)."""
MOST_INTERNED = 200_000
"""Texts that the reader of a sequence has to remember; then they are numbered anew."""

_BEGIN, _INSTANT, _COUNTER = 1, 3, 4
_CLEARED, _NEEDS = 1, 2
_VALUE, _NAME_IID, _INTEGER = b"\xe1\x02", b"\x08", b"\x20"
"""Tags: `TrackEvent.double_counter_value`, `DebugAnnotation.name_iid` and `DebugAnnotation.int_value`."""
_PROCESSES, _GROUPS = 1 << 32, 1 << 40
"""Numbers of the tracks of processes and groups, beyond those of tracks with rows."""
_LANES = 1000
_LEAD = TracePacket(trusted_packet_sequence_id=SEQUENCE, sequence_flags=_NEEDS).SerializeToString()


class _Texts:
    """Numbers of texts of one kind, and those that no packet has told yet."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.new: list[tuple[int, str]] = []

    def number(self, text: str) -> int:
        """The number of a text."""
        found = self.numbers.get(text)
        if found is None:
            found = self.numbers[text] = len(self.numbers) + 1
            self.new.append((found, readable(text)))
        return found


class PerfettoWriter:
    """Writes a timeline as Perfetto's protobuf.

    Args:
        file: Where to write.
        base_ns: What all times are counted from.
    """

    def __init__(self, file: BinaryIO, base_ns: int) -> None:
        self._file, self._base = file, base_ns
        self._written = 0
        self._packets: list[bytes] = []
        self._held = 0
        self._groups: dict[tuple[int, str], int] = {}
        self._bodies: list[bytes] = []
        self._open: pl.DataFrame | None = None
        """Ranges that began in a window before and are not over."""
        self._file.write(framed(TracePacket(synchronization_marker=MARK).SerializeToString()))
        self._begin()

    def _begin(self) -> None:
        """Forget all interned texts."""
        self._names, self._categories, self._arguments, self._strings = self._all = [_Texts() for _ in range(4)]
        self._put(TracePacket(trusted_packet_sequence_id=SEQUENCE, sequence_flags=_CLEARED).SerializeToString())

    @property
    def size_bytes(self) -> int:
        """About how large the file has become."""
        return self._written + self._held // 4

    def process(self, process: Process) -> None:
        """A new process, as a track that all its tracks are in."""
        described = self._descriptor(self._uuid(process.number), process.order)
        described.name = readable(" · ".join([process.name, *process.labels]))
        self._describe(described)

    def track(self, track: Track) -> None:
        """A new track, in its group, which is made with its first one."""
        around = self._uuid(track.process)
        group, place, lane = track.order
        rank = place * _LANES + lane
        if track.group:
            key = (track.process, track.group)
            if key not in self._groups:
                self._groups[key] = _GROUPS + len(self._groups)
                described = self._descriptor(self._groups[key], group, around)
                described.name = readable(track.group)
                self._describe(described)
            around = self._groups[key]
        else:
            rank = group
        described = self._descriptor(track.number, rank, around)
        described.name = readable(track.title)
        if track.is_counter:
            described.counter.unit_name = ""
        self._describe(described)

    def ranges(self, rows: pl.DataFrame, until_ns: int | None) -> None:
        """Ranges of a window of time: their starts, and the ends of those that are over before the next window."""
        begins = rows.with_columns(body=self._numbered_bodies(rows))
        is_range = pl.col("end_ns").is_not_null()
        ends = rows.lazy().filter(is_range).select("number", "start_ns", "end_ns").collect()
        if self._open is not None:
            ends = pl.concat([self._open, ends])
        over = ends if until_ns is None else ends.filter(pl.col("end_ns") < until_ns)
        self._open = None if until_ns is None else ends.filter(pl.col("end_ns") >= until_ns)
        dynamic = [name for name in argument_columns(rows) if rows.schema[name].is_integer()]
        flows = flow_columns(rows)
        # At one moment, ends come first, then starts, the longest first, then what has no length.
        length = (pl.col("end_ns") - pl.col("start_ns")).fill_null(0)
        starts = begins.select(
            "number", "body", *dynamic, *flows,
            at="start_ns", turn=pl.when(length > 0).then(pl.lit(1)).otherwise(pl.lit(2)), length=-length,
            row=pl.int_range(pl.len()), last=pl.lit(0),
        )  # fmt: skip
        over = over.filter(pl.col("end_ns") > pl.col("start_ns")).select(
            "number", at="end_ns", turn=pl.lit(0), length=pl.lit(0, pl.Int64)
        )
        is_point = (pl.col("turn") == 2) & begins["end_ns"].is_not_null()
        same = starts.filter(is_point).select("number", "at", "turn", "length", "row", last=pl.lit(1))
        order = ("at", "turn", "length", "row", "last")
        events = pl.concat([starts, over, same], how="diagonal").sort(order, nulls_last=True, maintain_order=True)
        self._events(events, dynamic, flows)

    def samples(self, rows: pl.DataFrame) -> None:
        """Samples of counters."""
        bodies: dict[int, bytes] = {}
        for number, at, value in rows.select("number", "start_ns", "value").iter_rows():
            body = bodies.get(number)
            if body is None:
                body = bodies[number] = TrackEvent(type=_COUNTER, track_uuid=number).SerializeToString()
            self._add(event_packet(_LEAD, at - self._base, body + _VALUE + pack("<d", value)))

    def close(self) -> None:
        """The end of the file."""
        self._flush()

    def _events(self, events: pl.DataFrame, dynamic: list[str], flows: list[str]) -> None:
        """Write starts (rows with a `body`) and ends in order."""
        heads = [_NAME_IID + varint(self._arguments.number(name)) + _INTEGER for name in dynamic]
        self._tell()
        self._add(
            event_packets(
                events.select(pl.col("at") - self._base, track="number", body=pl.col("body").fill_null(-1)),
                events.select(pl.col(dynamic).cast(pl.Int64)),
                events.select(pl.col(flows).reinterpret(signed=True)),
                self._bodies,
                heads,
                _LEAD,
            )
        )

    def _numbered_bodies(self, rows: pl.DataFrame) -> pl.Series:
        """The number of each row's body in `_bodies`, which get all but its time, whole numbers and arrows."""
        if sum(len(texts.numbers) for texts in self._all) > MOST_INTERNED:
            self._begin()
        arguments = [name for name in argument_columns(rows) if not rows.schema[name].is_integer()]
        key = ["number", "name", "category", *arguments]
        wanted = rows.select(*key, is_point=pl.col("end_ns").is_null())
        distinct = wanted.unique(maintain_order=True).with_row_index("body")
        self._bodies = [
            self._body(row[1:4], row[-1], zip(arguments, row[4:-1], strict=True)) for row in distinct.iter_rows()
        ]
        joined = wanted.join(distinct, on=[*key, "is_point"], how="left", nulls_equal=True, maintain_order="left")
        numbers: pl.Series = joined["body"].cast(pl.Int64)
        return numbers

    def _body(self, place: tuple[int, str, str], is_point: bool, arguments: Iterable[tuple[str, Any]]) -> bytes:
        """The event of a track, name and category."""
        number, name, category = place
        event = TrackEvent(
            type=_INSTANT if is_point else _BEGIN,
            track_uuid=number,
            name_iid=self._names.number(name),
            category_iids=[self._categories.number(category)],
        )
        for argument, value in arguments:
            if value is None:
                continue
            told = event.debug_annotations.add()
            told.name_iid = self._arguments.number(argument)
            if isinstance(value, bool):
                told.bool_value = value
            elif isinstance(value, float):
                told.double_value = value
            else:
                told.string_value_iid = self._strings.number(str(value))
        return bytes(event.SerializeToString())

    def _tell(self) -> None:
        """Write the texts that are new."""
        data = InternedData()
        for texts, entries in zip(
            self._all,
            (data.event_names, data.event_categories, data.debug_annotation_names, data.debug_annotation_string_values),
            strict=True,
        ):
            for number, text in texts.new:
                entry = entries.add()
                entry.iid = number
                if texts is self._strings:
                    entry.str = text.encode()
                else:
                    entry.name = text
            texts.new = []
        if data.ByteSize():
            packet = TracePacket(trusted_packet_sequence_id=SEQUENCE, sequence_flags=_NEEDS, interned_data=data)
            self._put(packet.SerializeToString())

    def _uuid(self, process: int) -> int:
        return _PROCESSES + process

    def _descriptor(self, uuid: int, order: int, around: int = 0) -> TrackDescriptor:
        described = TrackDescriptor(uuid=uuid, child_ordering=TrackDescriptor.EXPLICIT, sibling_order_rank=order)
        described.sibling_merge_behavior = TrackDescriptor.SIBLING_MERGE_BEHAVIOR_NONE
        if around:
            described.parent_uuid = around
        return described

    def _describe(self, described: TrackDescriptor) -> None:
        packet = TracePacket(trusted_packet_sequence_id=SEQUENCE, track_descriptor=described)
        self._put(packet.SerializeToString())

    def _put(self, packet: bytes) -> None:
        self._add(framed(packet))

    def _add(self, packets: bytes) -> None:
        self._packets.append(packets)
        self._held += len(packets)
        if self._held >= BUFFER_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Compress the packets so far into one."""
        if not self._packets:
            return
        packed = isal_zlib.compress(b"".join(self._packets), COMPRESSION)
        whole = TracePacket(compressed_packets=packed).SerializeToString()
        part = framed(whole)
        self._file.write(part)
        self._written += len(part)
        self._packets, self._held = [], 0
