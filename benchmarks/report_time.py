"""Measure what writing a report takes: first, once the input is read, and again, beside the peer's advisor.

    python benchmarks/report_time.py --gen GENERATOR.py --msprof-bin VENV/bin/msprof-analyze --out out/report.json

Rounds are interleaved as in `ingest.py`. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from cases import msprof_cases, report_cases
from inputs import ascend_directory, size_bytes
from rounds import add_options, machine, peers_of, run_cases, write_json
from table import Row

OPERATORS = 320
"""Device operators of a step, with which 8 ranks of 3 steps are about 22 MB as text."""


def main() -> None:
    """Make jobs of so many ranks, and write a report of each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", default="8,64", help="ranks of the jobs (default 8,64)")
    parser.add_argument("--ops", type=int, default=OPERATORS, help=f"operators of a step (default {OPERATORS})")
    add_options(parser)
    options = parser.parse_args()
    if options.gen is None:
        raise SystemExit("Give --gen, a generator of Ascend directories.")
    peers = peers_of(options)
    rows: list[Row] = []
    print(f"{machine()}\n")
    for line in peers.missing(ascend=True, traces=False):
        print(line)
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=options.scratch) as name:
        scratch = Path(name)
        for ranks in map(int, options.ranks.split(",")):
            directory = scratch / f"text-{ranks}"
            ascend_directory(options.gen, directory, "text", ranks, steps=3, ops=options.ops)
            advisor = [case for case in msprof_cases(directory, peers, scratch) if "advisor" in case.name]
            label = f"ascend text, {ranks} ranks, {size_bytes(directory) / 1e6:.0f} MB"
            rows += run_cases(label, report_cases(directory, peers, scratch) + advisor, options.rounds)
    write_json(options, rows=rows)


if __name__ == "__main__":
    main()
