"""Measure jobs of many ranks: commands on 64 and 256 ranks beside other tools, and questions to open runs.

    python benchmarks/many_ranks.py --gen GENERATOR.py --msprof-bin VENV/bin/msprof-analyze --out out/many.json

Rounds are interleaved as in `ingest.py`. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from cases import STORED, msprof_cases, stepscope_cases
from inputs import ascend_directory, scaled_trace, size_bytes
from questions import asked, print_times
from rounds import add_options, machine, peers_of, run_cases, write_json
from table import Row


def main() -> None:
    """Make the inputs, run the commands, ask the questions."""
    options = _options()
    if options.gen is None:
        raise SystemExit("Give --gen, a generator of Ascend directories.")
    peers = peers_of(options)
    rows: list[Row] = []
    times = []
    print(f"{machine()}\n")
    for line in peers.missing(ascend=True, traces=False):
        print(line)
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=options.scratch) as name:
        scratch = Path(name)

        def made(kind: str, ranks: int) -> Path:
            directory = scratch / f"{kind}-{ranks}"
            if not directory.exists():
                ascend_directory(options.gen, directory, kind, ranks, steps=3, ops=options.ops)
            return directory

        for kind in ("text", "db"):
            directory = made(kind, options.ranks)
            cases = stepscope_cases(directory, peers, scratch, load=False) + msprof_cases(directory, peers, scratch)
            label = f"ascend {kind}, {options.ranks} ranks, {size_bytes(directory) / 1e6:.0f} MB"
            rows += run_cases(label, cases, options.rounds)
        for ranks in options.warm:
            directory = made("text", ranks)
            cases = [case for case in stepscope_cases(directory, peers, scratch) if case.name == STORED]
            label = f"ascend text, {ranks} ranks, {size_bytes(directory) / 1e6:.0f} MB"
            rows += run_cases(label, cases, options.rounds)
        runs: dict[str, Callable[[], Path]] = {
            f"{ranks} ranks": lambda ranks=ranks: made("text", ranks)  # type: ignore[misc]
            for ranks in options.open
        }
        if options.megabytes:
            title = f"one rank of {options.megabytes} MB"
            runs[title] = lambda: scaled_trace(scratch / "trace", options.megabytes, options.trace)
        for label, make in runs.items():
            found = asked(make(), scratch / "store-questions", options.rounds)
            print_times(label, found)
            times += [{"input": label, **one} for one in found]
    write_json(options, rows=rows, questions=times)


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, default=64, help="ranks of the commands' inputs (default 64)")
    parser.add_argument(
        "--warm", type=_numbers, default=[256], help="ranks of runs opened from the store (default 256)"
    )
    parser.add_argument("--open", type=_numbers, default=[32, 256], help="ranks of runs to question (default 32,256)")
    parser.add_argument("--megabytes", type=int, default=500, help="size of a trace to question (default 500); 0: none")
    parser.add_argument("--trace", type=Path, help="Kineto trace to scale up (default: rank 0 of the example)")
    parser.add_argument("--ops", type=int, default=400, help="device operators per step of the Ascend directories")
    add_options(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
