"""Running cases in interleaved rounds, and what all benchmarks of commands are told and write."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from cases import Case, Peers
from measure import Cost, measure
from table import Row, print_rows, summarise


def run_cases(label: str, cases: Sequence[Case], rounds: int) -> list[Row]:
    """Run all cases on one input, interleaved, and print their table."""
    costs: dict[str, list[Cost]] = {case.name: [] for case in cases}
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of every benchmark of commands."""
    parser.add_argument("--rounds", type=int, default=3, help="how often each case runs (default 3)")
    parser.add_argument("--gen", type=Path, help="generator of Ascend directories; adds the Ascend cases")
    parser.add_argument("--stepscope", type=Path, help="the stepscope command (default: beside this Python)")
    parser.add_argument("--hta-python", type=Path, help="Python of an environment with HolisticTraceAnalysis")
    parser.add_argument("--tensorboard-bin", type=Path, help="the tensorboard command, with torch-tb-profiler")
    parser.add_argument("--msprof-bin", type=Path, help="the msprof-analyze command")
    parser.add_argument("--scratch", type=Path, help="where inputs and stores go (default: the system's)")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")


def peers_of(options: argparse.Namespace) -> Peers:
    """The programs that are compared."""
    return Peers(
        hta_python=options.hta_python,
        msprof=options.msprof_bin,
        tensorboard=options.tensorboard_bin,
        stepscope=options.stepscope,
    )


def machine() -> str:
    """What it runs on, and what else runs there."""
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )


def write_json(options: argparse.Namespace, **figures: Sequence[Any]) -> None:
    """Write the figures if the user wants them."""
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        plain = {
            name: [asdict(one) if is_dataclass(one) and not isinstance(one, type) else one for one in rows]
            for name, rows in figures.items()
        }
        result = {"machine": machine(), "rounds": options.rounds, **plain}
        options.out.write_text(json.dumps(result, indent=1) + "\n")
