"""Events of a timeline as packets of Perfetto's protobuf.

What is alike in many events (track, name, category, texts) comes as bytes that the `perfetto` package made; what
differs in each is added as protobuf encodes it: the time, whole numbers, arrows. A compiled function does this where
there is one, as a loop of Python over millions of events takes longer than all else.
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.sources.native import packets as compiled
from stepscope.sources.native.library import Refused

PACKET, _TIMESTAMP, _EVENT, _ANNOTATION, _FLOW_IDS, _END = (
    b"\x0a",
    b"\x40",
    b"\x5a",
    b"\x22",
    b"\xf9\x02",
    b"\x48\x02\x58",
)
"""Tags: `Trace.packet`, `TracePacket.timestamp`, `TracePacket.track_event`, `TrackEvent.debug_annotations`,
`TrackEvent.flow_ids` (fixed64); and `TrackEvent.type` with TYPE_SLICE_END before the tag of `TrackEvent.track_uuid`."""
_MASK = (1 << 64) - 1
_BYTES = [bytes([value]) for value in range(128)]


def varint(value: int) -> bytes:
    """A whole number as protobuf writes it; negative ones in two's complement of 64 bits.

    Examples:
        >>> varint(300).hex(), len(varint(-1))
        ('ac02', 10)
    """
    value &= _MASK
    if value < 128:
        return _BYTES[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def framed(packet: bytes) -> bytes:
    """A packet as a part of a trace."""
    return PACKET + varint(len(packet)) + packet


def event_packet(lead: bytes, at: int, body: bytes) -> bytes:
    """The packet of one event, as a part of a trace.

    Args:
        lead: What packets begin with.
        at: Its time since the start of the file, not negative.
        body: The event.
    """
    return framed(lead + _TIMESTAMP + varint(at) + _EVENT + varint(len(body)) + body)


def event_packets(
    events: pl.DataFrame,
    numbers: pl.DataFrame,
    flows: pl.DataFrame,
    bodies: Sequence[bytes],
    heads: Sequence[bytes],
    lead: bytes,
) -> bytes:
    """The packets of events, one after the other, as a part of a trace.

    Args:
        events: `at` (as in `event_packet`), `track` and `body` (number of what is alike, -1 for the end of a range).
        numbers: A column for each argument that is a whole number; null where a range does not have it.
        flows: A column for each kind of arrow, Int64, bits as of the unsigned number.
        bodies: What is alike.
        heads: What stands in an annotation before the number, for each column of `numbers`.
        lead: What packets begin with.
    """
    try:
        return compiled.packets(events, numbers, flows, (bodies, heads, (lead,)))
    except Refused:
        return b"".join(_plain_packets(events, numbers, flows, bodies, heads, lead))


def _plain_packets(
    events: pl.DataFrame,
    numbers: pl.DataFrame,
    flows: pl.DataFrame,
    bodies: Sequence[bytes],
    heads: Sequence[bytes],
    lead: bytes,
) -> list[bytes]:
    columns = [column.to_list() for column in numbers]
    arrows = [column.to_list() for column in flows]
    found = []
    for row, (at, track, number) in enumerate(events.select("at", "track", "body").iter_rows()):
        if number < 0:
            found.append(event_packet(lead, at, _END + varint(track)))
            continue
        body = bodies[number]
        for head, column in zip(heads, columns, strict=True):
            if column[row] is not None:
                inner = head + varint(column[row])
                body += _ANNOTATION + varint(len(inner)) + inner
        for column in arrows:
            if column[row] is not None:
                body += _FLOW_IDS + (column[row] & _MASK).to_bytes(8, "little")
        found.append(event_packet(lead, at, body))
    return found
