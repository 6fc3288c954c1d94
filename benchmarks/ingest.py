"""Measure reading and analysing traces, side by side with other tools, each as a fresh process.

    python benchmarks/ingest.py --sizes 10,100,500 --hta-python VENV/bin/python --out out/ingest.json
    python benchmarks/ingest.py --gen GENERATOR.py --msprof-bin VENV/bin/msprof-analyze

The rounds are interleaved (every tool once, then all again), so that a slow minute of the machine hits all of
them. Figures are medians over the rounds; memory is the largest peak. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cases import Case, Peers, ascend_cases, trace_cases
from measure import measure
from table import Row, limits, print_rows, summarise

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parent / "examples" / "ddp_gloo_4rank_slow_loader"


def main() -> None:
    """Make the inputs, run every case on each of them, print and write the figures."""
    options = _options()
    rows: list[Row] = []
    print(f"{_machine()}\n")
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as name:
        scratch = Path(name)
        peers = Peers(hta_python=options.hta_python, msprof=options.msprof_bin, stepscope=options.stepscope)
        for line in peers.missing(ascend=options.gen is not None):
            print(line)
        if options.sizes:
            source = options.trace or min(EXAMPLE.glob("*.pt.trace.json.gz"))
        for megabytes in options.sizes:
            trace = scratch / f"{megabytes}" / f"rank-0.{megabytes}MB.pt.trace.json"
            _python(HERE / "scale.py", source, megabytes, trace)
            label = f"trace, {trace.stat().st_size / 1e6:.0f} MB"
            rows += _run(label, trace_cases(trace, peers, scratch), options.rounds)
            trace.unlink()
        if options.gen:
            directory = scratch / "ascend"
            _python(options.gen, "--out", directory, "--ranks", 8, "--steps", 3, "--ops-per-step", options.ops)
            size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
            label = f"ascend text, 8 ranks, {size / 1e6:.0f} MB"
            rows += _run(label, ascend_cases(directory, peers, scratch), options.rounds)
    print(limits(rows))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        result = {"machine": _machine(), "rounds": options.rounds, "rows": [asdict(row) for row in rows]}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


def _run(label: str, cases: Sequence[Case], rounds: int) -> list[Row]:
    """Run all cases on one input, interleaved, and print their table."""
    costs: dict[str, list[Any]] = {case.name: [] for case in cases}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for case in cases:
            if case.name in failed:
                continue
            case.prepare()
            cost = measure(case.command, env=case.env)
            if cost.status:
                failed[case.name] = f"exit status {cost.status}: {' '.join(cost.tail.split())[-300:]}"
            costs[case.name].append(cost)
    rows = [summarise(label, case.name, costs[case.name], failed.get(case.name)) for case in cases]
    print_rows(rows)
    return rows


def _python(script: Path, *arguments: object) -> None:
    """Run a script in a process of its own: what it holds in memory must not count for the cases."""
    subprocess.run([sys.executable, script, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def _machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(part) for part in text.split(",") if part],
        default=[10, 100],
        help="megabytes of JSON, e.g. 10,100,500 (default 10,100); '' for none",
    )
    parser.add_argument("--trace", type=Path, help="Kineto trace to scale up (default: rank 0 of the example)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each case runs (default 3)")
    parser.add_argument("--gen", type=Path, help="generator of Ascend directories; adds the Ascend cases")
    parser.add_argument("--ops", type=int, default=5000, help="device operators per step of the Ascend directory")
    parser.add_argument("--stepscope", type=Path, help="the stepscope command (default: beside this Python)")
    parser.add_argument("--hta-python", type=Path, help="Python of an environment with HolisticTraceAnalysis")
    parser.add_argument("--msprof-bin", type=Path, help="the msprof-analyze command")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
