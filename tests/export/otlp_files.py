"""Reading files of OTLP/JSON lines as a strict receiver does."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

MOST_LINE_BYTES = 1 << 20
"""What the collector's receiver takes by default."""

_IDS = ("traceId", "spanId", "parentSpanId")


@dataclass
class Read:
    """Spans by trace and id, each with its attributes as `told` and that of its resource as `about`."""

    spans: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[tuple[int, str]]:
        """Number of spans by rank and category, without those around steps."""
        return Counter(
            (span["about"]["stepscope.rank"], category)
            for span in self.spans.values()
            if (category := span["told"]["stepscope.category"]) != "step"
        )

    def named(self, name: str, rank: int = 0) -> dict[str, Any]:
        """The only span of this name of a rank."""
        (found,) = (
            span for span in self.spans.values() if span["name"] == name and span["about"]["stepscope.rank"] == rank
        )
        return found

    def parent(self, span: dict[str, Any]) -> dict[str, Any]:
        """The span that a span is in."""
        return self.spans[span["traceId"], span["parentSpanId"]]

    def linked(self, span: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Why a span refers to others, and these."""
        return [
            (attributes(link["attributes"])["stepscope.link"], self.spans[link["traceId"], link["spanId"]])
            for link in span.get("links", ())
        ]


def lines(files: Iterable[Path], kind: str) -> Iterator[dict[str, Any]]:
    """The objects in files of one kind (`traces`, `metrics`), one a line, each as short as receivers need it."""
    for file in files:
        if file.name.startswith(kind):
            with file.open("rb") as opened:
                for line in opened:
                    assert len(line) < MOST_LINE_BYTES
                    assert line.endswith(b"}\n")
                    yield msgspec.json.decode(line)


def attributes(listed: list[dict[str, Any]]) -> dict[str, Any]:
    """Attributes by name, each once."""
    told: dict[str, Any] = {}
    for each in listed:
        ((kind, value),) = each["value"].items()
        assert each["key"] not in told
        told[each["key"]] = int(value) if kind == "intValue" else value
    return told


def traces(files: Iterable[Path]) -> Read:
    """All spans of some files: ids are unique, no span ends before it begins, and all that they refer to is there."""
    read = Read()
    for line in lines(files, "traces"):
        (part,) = line["resourceSpans"]
        about = attributes(part["resource"]["attributes"])
        for span in part["scopeSpans"][0]["spans"]:
            key = (span["traceId"], span["spanId"])
            assert (len(bytes.fromhex(key[0])), len(bytes.fromhex(key[1]))) == (16, 8)
            assert key not in read.spans
            assert 0 <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"]) < 1 << 64
            read.spans[key] = {**span, "told": attributes(span["attributes"]), "about": about}
    for span in read.spans.values():
        if span["told"]["stepscope.category"] == "step":
            assert "parentSpanId" not in span
        else:
            assert read.parent(span)
        read.linked(span)
    return read


def as_protobuf_json(value: Any) -> Any:
    """A message with ids as Protobuf's own JSON has them: https://protobuf.dev/programming-guides/json/."""
    if isinstance(value, list):
        return [as_protobuf_json(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64encode(bytes.fromhex(one)).decode() if key in _IDS else as_protobuf_json(one)
        for key, one in value.items()
    }
