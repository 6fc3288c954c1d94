"""Measure writing timelines and exports of scaled-up traces: time against reading, memory, and size against the source.

    python benchmarks/timeline.py --sizes 100,500 --trace TRACE --out out/timeline.json

Each round reads the trace into an empty store, and then writes it in every format, each as a fresh process: from a
store with the rows alone, of which nothing was asked, and cold. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from cases import ROWS, Case, written_cases
from inputs import scaled_trace, size_bytes
from rounds import add_options, machine, peers_of, run_cases, write_json
from table import Row


@dataclass(frozen=True)
class Ratio:
    """What one way of writing costs.

    Args:
        input: What was written.
        case: How.
        times: Wall time over that of reading the input into the store.
        cpu_times: Processor time over that of reading it, which other work on the machine disturbs less.
        size: Size of what was written over that of the source as JSON text.
        peak_bytes: Largest peak memory.
    """

    input: str
    case: str
    times: float
    cpu_times: float
    size: float
    peak_bytes: int


def main() -> None:
    """Make each trace, run all cases on it, print and write the figures."""
    options = _options()
    rows: list[Row] = []
    found: list[Ratio] = []
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=options.scratch) as name:
        scratch = Path(name)
        for megabytes in options.sizes:
            trace = scaled_trace(scratch / f"{megabytes}", megabytes, options.trace)
            source = size_bytes(trace)
            cases, outputs = written_cases(trace, peers_of(options), scratch)
            sizes: dict[str, int] = {}
            measured = run_cases(f"trace, {source / 1e6:.0f} MB", list(_sized(cases, outputs, sizes)), options.rounds)
            _note_size(outputs, sizes, cases[-1].name if cases else "")
            rows += measured
            found += ratios(measured, sizes, source)
            trace.unlink()
    for line in told(found):
        print(line)
    write_json(options, rows=rows, ratios=found)


def _sized(cases: Sequence[Case], outputs: Mapping[str, Path], sizes: dict[str, int]) -> Iterable[Case]:
    """The cases, each of which notes what the one before it has written before that is removed."""
    for place, case in enumerate(cases):
        before = cases[place - 1].name

        def prepare(case: Case = case, before: str = before) -> None:
            _note_size(outputs, sizes, before)
            case.prepare()

        yield replace(case, prepare=prepare)


def _note_size(outputs: Mapping[str, Path], sizes: dict[str, int], case: str) -> None:
    output = outputs.get(case)
    if output is not None and output.exists():
        sizes[case] = size_bytes(output)


def ratios(rows: Sequence[Row], sizes: Mapping[str, int], source_bytes: int) -> list[Ratio]:
    """The figures of each way of writing one input that did not fail."""
    read = next((row for row in rows if row.case == ROWS and not row.failure), None)
    if read is None:
        return []
    return [
        Ratio(
            row.input,
            row.case,
            row.wall_s / read.wall_s,
            row.cpu_s / read.cpu_s,
            sizes[row.case] / source_bytes,
            row.peak_bytes,
        )
        for row in rows
        if row.case in sizes and not row.failure
    ]


def told(found: Sequence[Ratio]) -> list[str]:
    """A table of the figures."""
    head = f"{'':34}{'of reading':>12}{'of its CPU':>12}{'of JSON':>10}{'peak MB':>9}"
    lines: list[str] = []
    for label, each in groupby(found, key=lambda one: one.input):
        lines += [label, head]
        lines += [f"  {one.case:32}{_shown(one)}" for one in each]
    return lines


def _shown(one: Ratio) -> str:
    return f"{one.times:10.2f} x{one.cpu_times:10.2f} x{one.size:10.3f}{one.peak_bytes / 1e6:9.0f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(part) for part in text.split(",") if part],
        default=[100, 500],
        help="megabytes of JSON, e.g. 10,100 (default 100,500)",
    )
    parser.add_argument("--trace", type=Path, help="Kineto trace to scale up (default: rank 0 of the example)")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
