"""OTLP's messages in their JSON form: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding.

It differs from the usual JSON of Protobuf: ids are hexadecimal, not base64, and enums are numbers. As there, 64-bit
integers are texts and names are in camel case.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from stepscope._version import __version__

LONGEST_TEXT = 4096
"""Characters of a name or another text, chosen by us: the collector reads lines of up to 1 MiB, however many spans."""

_SCOPE = b'"scope":{"name":"stepscope","version":"%s"}' % __version__.encode()
INTERNAL = 1
"""The kind of a span that neither calls nor serves another process."""

Value = str | int | float | bool


class Link(msgspec.Struct, rename="camel"):
    """A reference of a span to another one, perhaps of another trace."""

    trace_id: str
    span_id: str
    attributes: msgspec.Raw


class Span(msgspec.Struct, rename="camel", omit_defaults=True):
    """A timed range; times are ns since 1970, as texts."""

    trace_id: str
    span_id: str
    name: str
    kind: int
    start_time_unix_nano: str
    end_time_unix_nano: str
    attributes: msgspec.Raw
    parent_span_id: str = ""
    links: list[Link] = []
    dropped_links_count: int = 0


@lru_cache(maxsize=16384)
def attribute(key: str, value: Value) -> bytes:
    """One attribute."""
    if isinstance(value, bool):
        held: dict[str, Value] = {"boolValue": value}
    elif isinstance(value, int):
        held = {"intValue": str(value)}
    elif isinstance(value, float):
        held = {"doubleValue": value if math.isfinite(value) else str(value)}
    else:
        held = {"stringValue": value}
    return msgspec.json.encode({"key": key, "value": held})


def attributes(values: Mapping[str, Value | None]) -> bytes:
    """A list of attributes; unknown ones are left out."""
    return b"[" + b",".join(attribute(key, value) for key, value in values.items() if value is not None) + b"]"


def traces_line(resource: bytes, spans: Iterable[bytes]) -> bytes:
    """A line of a file, and a request: spans of one resource, given by its attributes."""
    return b'{"resourceSpans":[{"resource":{"attributes":%s},"scopeSpans":[{%s,"spans":[%s]}]}]}\n' % (
        resource,
        _SCOPE,
        b",".join(spans),
    )


def metrics_line(resource: bytes, metrics: Iterable[bytes]) -> bytes:
    """A line of a file, and a request: metrics of one resource, given by its attributes."""
    return b'{"resourceMetrics":[{"resource":{"attributes":%s},"scopeMetrics":[{%s,"metrics":[%s]}]}]}\n' % (
        resource,
        _SCOPE,
        b",".join(metrics),
    )
