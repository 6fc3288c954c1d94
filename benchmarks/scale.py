"""Scale a real Kineto trace up by repeating its events, each copy later than the one before.

    python benchmarks/scale.py TRACE 100 out/large.json

A copy differs from the original as a later stretch of the same job would: start times, profiler step numbers,
and the ids that tie events together (correlation, external id, sequence number, flow ids) move on.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Event = dict[str, Any]

STEP = re.compile(r"(ProfilerStep#)(\d+)")
LINKS = ("External id", "correlation", "Sequence number", "Ev Idx", "Python id", "Python parent id")


def scale_trace(source: Path, target_mb: float, out: Path) -> int:
    """Write a trace of about `target_mb` megabytes (10^6 bytes of JSON) made of copies of `source`.

    Args:
        source: A Kineto trace, plain or gzip.
        target_mb: Size of the JSON text; it ends with the first whole copy that reaches it.
        out: File to write; compressed if its name ends in `.gz`.

    Returns:
        Number of events written.
    """
    text = source.read_bytes()
    trace = json.loads(gzip.decompress(text) if source.suffix == ".gz" else text)
    once, repeated = _split(trace.pop("traceEvents"))
    copy = _Copier(repeated)
    header = json.dumps(trace)[1:-1]
    size = 0
    events = 0
    with _writer(out) as target:
        size += target.write("{" + header + (", " if header else "") + '"traceEvents": [\n')
        while size < target_mb * 1e6:
            batch = list(copy.next())
            if not events:
                batch = once + batch
            size += target.write((",\n" if events else "") + ",\n".join(map(json.dumps, batch)))
            events += len(batch)
        target.write("\n]}\n")
    return events


def _writer(out: Path) -> io.TextIOBase:
    if out.suffix == ".gz":
        return gzip.open(out, "wt", compresslevel=1, encoding="utf-8")
    return out.open("w", encoding="utf-8")


def _split(events: list[Event]) -> tuple[list[Event], list[Event]]:
    """Events that a trace has once (names, the profiler's own span) and those that repeat with the steps."""
    once: list[Event] = []
    repeated: list[Event] = []
    for event in events:
        timed = "ts" in event and event.get("ph") != "M" and event.get("cat") is not None
        (repeated if timed and event["cat"] != "Trace" else once).append(event)
    if not repeated:
        raise SystemExit("the trace holds no events that could be repeated")
    return once, repeated


class _Copier:
    """Makes one later copy of the events after another."""

    def __init__(self, events: list[Event]) -> None:
        self.events = events
        self.count = 0
        start = min(event["ts"] for event in events)
        self.span_us = max(event["ts"] + event.get("dur", 0) for event in events) - start + 1
        steps = [int(match[2]) for event in events if (match := STEP.fullmatch(event.get("name", "")))]
        self.steps = max(steps) - min(steps) + 1 if steps else 0
        ids = [event["id"] for event in events if isinstance(event.get("id"), int)]
        ids += [value for event in events for value in _links(event).values()]
        self.ids = max(ids, default=0) + 1

    def next(self) -> Iterator[Event]:
        later_us = self.count * self.span_us
        steps = self.count * self.steps
        ids = self.count * self.ids
        self.count += 1
        for event in self.events:
            moved = {**event, "ts": round(event["ts"] + later_us, 3)}
            if match := STEP.fullmatch(event.get("name", "")):
                moved["name"] = f"{match[1]}{int(match[2]) + steps}"
            if isinstance(event.get("id"), int):
                moved["id"] = event["id"] + ids
            if links := _links(event):
                moved["args"] = {**event["args"], **{key: value + ids for key, value in links.items()}}
            yield moved


def _links(event: Event) -> dict[str, int]:
    """The arguments that tie this event to others."""
    args = event.get("args")
    if not args:
        return {}
    return {key: args[key] for key in LINKS if isinstance(args.get(key), int)}


def main() -> None:
    """Scale one trace from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="a Kineto trace (.json or .json.gz)")
    parser.add_argument("megabytes", type=float, help="size of the JSON text to make, in 10^6 bytes")
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    events = scale_trace(options.source, options.megabytes, options.out)
    print(f"{options.out}: {events} events, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
