"""Measure reading and analysing traces, side by side with other tools, each as a fresh process.

    python benchmarks/ingest.py --sizes 10,100,500 --hta-python VENV/bin/python --out out/ingest.json
    python benchmarks/ingest.py --gen GENERATOR.py --msprof-bin VENV/bin/msprof-analyze

The rounds are interleaved (every tool once, then all again), so that a slow minute of the machine hits all of
them. Figures are medians over the rounds; memory is the largest peak. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from cases import Peers, ascend_cases, trace_cases
from inputs import ascend_directory, scaled_trace, size_bytes
from rounds import add_options, machine, peers_of, run_cases, write_json
from table import Row, limits, rate, stages


def main() -> None:
    """Make the inputs, run every case on each of them, print and write the figures."""
    options = _options()
    rows: list[Row] = []
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=options.scratch) as name:
        scratch = Path(name)
        peers: Peers = peers_of(options)
        for line in peers.missing(ascend=options.gen is not None):
            print(line)
        for megabytes in options.sizes:
            trace = scaled_trace(scratch / f"{megabytes}", megabytes, options.trace)
            label = f"trace, {size_bytes(trace) / 1e6:.0f} MB"
            _report(rows, run_cases(label, trace_cases(trace, peers, scratch), options.rounds), size_bytes(trace))
            trace.unlink()
        for kind in ("text", "db") if options.gen else ():
            directory = ascend_directory(options.gen, scratch / f"ascend-{kind}", kind, 8, steps=3, ops=options.ops)
            label = f"ascend {kind}, 8 ranks, {size_bytes(directory) / 1e6:.0f} MB"
            cases = ascend_cases(directory, peers, scratch)
            _report(rows, run_cases(label, cases, options.rounds), size_bytes(directory))
    print(limits(rows))
    write_json(options, rows=rows)


def _report(rows: list[Row], found: list[Row], size: int) -> None:
    """Print what follows from the rows of one input."""
    rows += found
    for line in (rate(found, size), stages(found)):
        if line:
            print(line)
    print()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(part) for part in text.split(",") if part],
        default=[10, 100],
        help="megabytes of JSON, e.g. 10,100,500 (default 10,100); '' for none",
    )
    parser.add_argument("--trace", type=Path, help="Kineto trace to scale up (default: rank 0 of the example)")
    parser.add_argument("--ops", type=int, default=5000, help="device operators per step of the Ascend directories")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
