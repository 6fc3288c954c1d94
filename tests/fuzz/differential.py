"""The compiled decoder and the Python code beside it, compared on odd and damaged input.

    python tests/fuzz/differential.py [--seed N] [--count N]
    python tests/fuzz/differential.py --seed N --only KIND:N

Prints each input that they read differently, with the command that tries it again.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import get_args

import msgspec
import polars as pl

TESTS = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from fuzz import mutations  # noqa: E402 - as a script, only now is it found
from stepscope.analysis.methods.simulation import Simulation  # noqa: E402
from stepscope.errors import StepscopeError  # noqa: E402
from stepscope.sources import ancestors, nesting  # noqa: E402
from stepscope.sources.ascend.trace_layout import LAYOUT as ASCEND  # noqa: E402
from stepscope.sources.csv_files import decoding  # noqa: E402
from stepscope.sources.csv_files.layout import Field, Kind  # noqa: E402
from stepscope.sources.kineto.layout import LAYOUT as KINETO  # noqa: E402
from stepscope.sources.matching import first_match  # noqa: E402
from stepscope.sources.native import library  # noqa: E402
from stepscope.sources.trace_events.base import Layout  # noqa: E402
from stepscope.sources.trace_events.decode import Decoded, EventDecoder  # noqa: E402
from stepscope.sources.trace_events.reader import TraceEvents  # noqa: E402
from stepscope.store import MemorySink  # noqa: E402
from stepscope.timeline.lanes import Lanes  # noqa: E402
from stepscope.timeline.writing.packets import event_packets  # noqa: E402

CORPUS = TESTS / "fuzz" / "corpus"
EXAMPLE = min((TESTS.parent / "examples").glob("*/*.json.gz"))
EVENTS_OF_A_KIND = 6
LEAST_ACCEPTED = 0.1
"""Of the inputs of a kind; with fewer, hardly anything is compared."""


@dataclass(frozen=True)
class Case:
    """One input, and what both make of it in a form that can be compared."""

    text: object
    compiled: object
    python: object
    accepted: bool
    """Whether the compiled decoder took it, rather than leaving it to Python."""


@contextmanager
def python_only() -> Iterator[None]:
    """As if there were no compiled decoder."""
    kept = library._LIBRARY
    library._LIBRARY = None
    try:
        yield
    finally:
        library._LIBRARY = kept


def events_of(data: bytes) -> list[bytes]:
    """A few events of each category, phase and name of a trace, as they are written."""
    found: dict[tuple[str, str, str], list[bytes]] = {}
    whole = msgspec.json.decode(data, type=dict[str, msgspec.Raw] | list[msgspec.Raw])
    for text in msgspec.json.decode(whole["traceEvents"], type=list[msgspec.Raw]) if isinstance(whole, dict) else whole:
        event = msgspec.json.decode(text)
        kind = (str(event.get("ph")), str(event.get("cat")), str(event.get("name"))[:4])
        kept = found.setdefault(kind, [])
        if len(kept) < EVENTS_OF_A_KIND:
            kept.append(bytes(text))
    return [text for kept in found.values() for text in kept]


@cache
def own_events(layout: Layout = KINETO) -> list[bytes]:
    """Events of the corpus; for Kineto's layout also those of an example."""
    texts = [b"[" + path.read_bytes()[1:] + b"]" for path in sorted(CORPUS.glob("events_*"))]
    if layout is KINETO:
        texts.append(gzip.decompress(EXAMPLE.read_bytes()))
    return [event for data in texts for event in events_of(data)]


def seen(decoded: Decoded) -> object:
    """All that a decoder gives, in a form that can be compared."""
    frames = {name: (frame.schema, located(decoded, frame)) for name, frame in sorted(decoded.frames.items())}
    problems = {text: (one.count, one.place) for text, one in decoded.problems.items()}
    return repr(frames), problems, decoded.ended, decoded.rest


def located(decoded: Decoded, frame: pl.DataFrame) -> list[dict[str, object]]:
    """What is known of each row, with process and thread in place of the numbers, which are those of one chunk."""
    places = list(decoded.places)
    known = [{name: value for name, value in row.items() if value is not None} for row in frame.rows(named=True)]
    return [{**row, "place": places[-1 - row["place"]]} if "place" in row else row for row in known]


@cache
def decoders(layout: Layout) -> tuple[EventDecoder, EventDecoder]:
    """The compiled one and the one in Python."""
    compiled = EventDecoder(layout)
    with python_only():
        return compiled, EventDecoder(layout)


def events(source: random.Random, layout: Layout, last: bool, of: Sequence[bytes] | None = None) -> Case:
    """A chunk of a trace; the last one goes to the end of the file."""
    text = mutations.event_text(source, of or own_events(layout))
    if last:
        text += source.choice(
            (b"]}", b"]}", b"]", b"]\n", b' ] , "a": [{}]}', b'],"a":"]}"}\n', b"]]", b"]}}", b"", b"} ]}")
        )
    compiled, plain = decoders(layout)
    accepted = compiled._decode_clean(text, last=last) is not None
    return Case(text, seen(compiled.decode(text, last=last)), seen(plain.decode(text, last=last)), accepted)


def files(source: random.Random) -> Case:
    """A whole trace file, in small chunks."""
    before = source.choice(
        (b'{"a": 1, "traceEvents": [', b'{"traceEvents":[\n', b"[", b' {"x": {"traceEvents": []}, "traceEvents": [ ')
    )
    behind = source.choice((b"]}", b"]", b'\n],\n "distributedInfo": {"rank": 3}}\n', b"", b"]} "))
    text = before + b", ".join(mutations.event_text(source, own_events()) for _ in range(source.randint(1, 3))) + behind
    size, workers = source.randint(1, 2000), source.choice((1, 1, 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(mutations.damaged(source, text) if source.random() < 0.1 else text)
        compiled = whole(path, size, workers)
        with python_only():
            return Case((path.read_bytes(), size), compiled, whole(path, size, 1), accepted=True)


def whole(path: Path, chunk_bytes: int, workers: int) -> object:
    """All that reading a file gives: rows, keys, and what is reported."""
    sink = MemorySink("fuzz", workers)
    try:
        trace = TraceEvents(path, KINETO, sink, chunk_bytes=chunk_bytes)
        batches = [{name: frame.rows() for name, frame in frames.items()} for frames in trace]
    except StepscopeError as error:
        return str(error)
    return repr(batches), repr(trace.header), [frame.rows() for frame in sink.close().values()]


def tables(source: random.Random) -> Case:
    """A CSV table."""
    width = source.randint(1, 6)
    kinds: tuple[Kind, ...] = get_args(Kind)
    chosen = {n: Field(f"c{n}", source.choice(kinds), (f"c{n}",)) for n in range(width) if source.random() < 0.8}
    text = mutations.csv_text(source, width)
    if not text.endswith(b"\n") and text.count(b'"') % 2:
        text += b"\n"  # the reader leaves such a row out
    read = decoding._plain(text, width, chosen) if chosen else None
    accepted = read is not None
    with warnings.catch_warnings(record=True) as malformed:  # the reader reports these
        warnings.simplefilter("always")
        try:
            plain = decoding._scan(text, width, chosen).collect()
        except pl.exceptions.PolarsError as error:
            return Case((text, chosen), "rows" if accepted else str(error), str(error), accepted)
    if accepted and malformed:
        return Case((text, chosen), "rows", str(malformed[0].message), accepted)
    same = plain if read is None else read
    return Case((text, chosen), (same.schema, repr(same.rows())), (plain.schema, repr(plain.rows())), accepted)


def ranges(source: random.Random) -> Case:
    """Ranges of a few threads."""
    first, last, longest = source.choice(
        ((0, 60, 25), (0, 10**6, 5000), (7, 7, 3), (10**18, 10**18 + 10**10, 10**9), (-(2**63), 2**63 - 1, 2**63 - 1))
    )
    rows = source.choice((1, 2, 5, 20, 40, 300))
    shortest = source.choice((0, 0, -longest))
    made = [(source.randint(first, last), source.randint(shortest, longest), source.randint(0, 3)) for _ in range(rows)]
    if source.random() < 0.5:
        made.sort(key=lambda one: (one[0], -one[1]))
    schema = {"start_ns": pl.Int64, "duration_ns": pl.Int64, "thread": pl.Int64}
    frame = pl.DataFrame(made, schema=schema, orient="row")
    counted = pl.Series([source.choice((True, True, False, None)) for _ in made], dtype=pl.Boolean)
    compiled = nested(frame, counted)
    with python_only():
        return Case(made, compiled, nested(frame, counted), accepted=True)


def nested(frame: pl.DataFrame, counted: pl.Series) -> object:
    places = nesting.enclosing(frame)
    spent = [nesting.time_in_children(frame, places["parent"], some) for some in (None, counted)]
    rows, parent, most = pl.int_range(frame.height, eager=True), places["parent"], frame.height // 2
    climbed = ancestors.climb(rows, parent, counted.arg_true().cast(pl.Int64))
    running = ancestors.running(frame, parent, most, frame.select("thread", start_ns=pl.col("start_ns") + 1))
    matched = first_match(frame["duration_ns"], frame["start_ns"])
    series = [*spent, climbed, running, matched]
    return repr((places.schema, places.rows(), [(one.dtype, one.to_list()) for one in series]))


def timelines(source: random.Random) -> Case:
    """Ranges of a few tracks on lanes, a window of time after the other, and their events as packets."""
    longest = source.choice((3, 25, 5000))
    rows = source.choice((1, 2, 5, 20, 40, 300))
    starts = [source.randint(0, longest * 4) for _ in range(rows)]
    made = [(source.randint(0, 3), start, start + source.randint(0, longest)) for start in starts]
    ranges = pl.DataFrame(made, schema={"track": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}, orient="row")
    cut = source.randint(0, longest * 4)
    number = source.choice((3, 300, 2**40, 2**63 - 1))
    pairs = [[source.choice((None, source.randint(-number, number))) for _ in range(rows)] for _ in range(3)]
    numbers = pl.DataFrame({"a": pairs[0], "b": pairs[1]}, schema={"a": pl.Int64, "b": pl.Int64})
    flows = pl.DataFrame({"f": pairs[2]}, schema={"f": pl.Int64})
    bodies = [bytes(source.randrange(256) for _ in range(source.randint(0, 200))) for _ in range(3)]
    events = ranges.select(
        "track", at="start_ns", body=pl.Series([source.randint(-1, 2) for _ in starts], dtype=pl.Int64)
    )
    compiled = drawn(ranges, cut, events, numbers, flows, bodies)
    with python_only():
        return Case(made, compiled, drawn(ranges, cut, events, numbers, flows, bodies), accepted=True)


def drawn(
    ranges: pl.DataFrame,
    cut: int,
    events: pl.DataFrame,
    numbers: pl.DataFrame,
    flows: pl.DataFrame,
    bodies: Sequence[bytes],
) -> object:
    lanes = Lanes()
    first = lanes.place(ranges.filter(pl.col("start_ns") < cut), cut)
    second = lanes.place(ranges.filter(pl.col("start_ns") >= cut))
    packets = event_packets(events, numbers, flows, bodies, (b"\x08\x01\x20", b"\x08\x02\x20"), b"\x50\x01")
    return repr((first.schema, first.rows(), second.rows())), packets


def replays(source: random.Random) -> Case:
    """A graph of pieces of work, with cycles and with edges that the times contradict."""
    first, last, longest = source.choice(
        ((0, 60, 25), (0, 10**6, 5000), (7, 7, 0), (10**18, 10**18 + 10**10, 10**9), (-(2**62), 2**62, 2**62 - 1))
    )
    nodes = source.choice((1, 2, 5, 20, 40, 300))
    times = sorted(source.randint(first, last) for _ in range(nodes))
    spans = pl.DataFrame({"start_ns": times, "end_ns": [start + source.randint(0, longest) for start in times]})
    back, edges = source.choice((0, 0.05, 0.5)), source.choice((0, nodes // 2, nodes, 3 * nodes))
    pairs = [sorted(source.choices(range(nodes), k=2), reverse=source.random() >= back) for _ in range(edges)]
    order = pl.DataFrame(pairs, schema={"node": pl.Int64, "before": pl.Int64}, orient="row")
    durations = pl.Series([source.randint(0, longest) for _ in range(nodes)])
    steps = pl.Series("step", [source.choice((None, 1, 2, 3)) for _ in range(nodes)], dtype=pl.Int64)
    compiled = replayed(spans, order, durations, steps)
    with python_only():
        return Case((spans.rows(), pairs), compiled, replayed(spans, order, durations, steps), accepted=True)


def replayed(spans: pl.DataFrame, order: pl.DataFrame, durations: pl.Series, steps: pl.Series) -> object:
    try:
        simulation = Simulation(spans, order)
        groups, fixed = simulation.grouped(steps), [simulation.lag_ns, simulation.violated_ns]
        found = [simulation.last_ends(groups, durations), simulation.last_ends(groups)]
        frames = [simulation.left_out, simulation.run(), simulation.run(durations), simulation.slack(groups, durations)]
        frames += [simulation.critical_path(), simulation.critical_path(0, durations)]
        frames.append(simulation.critical_paths(groups))
    except ValueError as error:
        return str(error)
    return repr([(one.dtype, one.to_list()) for one in fixed + found]), repr([(f.schema, f.rows()) for f in frames])


KINDS: dict[str, Callable[[random.Random], Case]] = {
    "kineto": partial(events, layout=KINETO, last=False),
    "kineto-last": partial(events, layout=KINETO, last=True),
    "ascend": partial(events, layout=ASCEND, last=False),
    "ascend-last": partial(events, layout=ASCEND, last=True),
    "files": files,
    "tables": tables,
    "ranges": ranges,
    "timelines": timelines,
    "replays": replays,
}


def case(kind: str, seed: int, number: int) -> Case:
    return KINDS[kind](random.Random(f"{kind} {seed} {number}"))


def main() -> int:
    """Compare and print; the number of failures, at most 1 for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="inputs of each kind")
    parser.add_argument("--only", metavar="KIND:N", help="one of them again")
    options = parser.parse_args()
    library.loaded()
    if options.only:
        kind, _, number = options.only.partition(":")
        one = case(kind, options.seed, int(number))
        print(f"input: {one.text!r}\ncompiled: {one.compiled}\npython:   {one.python}")
        return int(one.compiled != one.python)
    failures = 0
    for kind in KINDS:
        accepted = 0
        for number in range(options.count):
            one = case(kind, options.seed, number)
            accepted += one.accepted
            if one.compiled != one.python:
                print(f"{kind}: read differently: {one.text!r}\n  to try it again:")
                print(f"  python tests/fuzz/differential.py --seed {options.seed} --only {kind}:{number}")
                failures += 1
                break
        else:
            print(f"{kind}: {options.count} inputs read the same, {accepted} of them by the compiled decoder")
            if accepted < LEAST_ACCEPTED * options.count:
                print(f"{kind}: too few of them")
                failures += 1
    return failures


if __name__ == "__main__":
    sys.exit(main())
