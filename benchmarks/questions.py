"""Ask one recording every question about all its ranks and time each: `python benchmarks/questions.py PATH`.

Questions are all analyses, every section of every page as the command line shows it, and pages of 100 rows of the
tables (`ask.py`). In a fresh process each is asked of a run that was just opened from the store as `analyze` left it,
so nothing is in memory (`first`); of a run that was just opened although the question was asked before, so its answer
is on disk (`kept`); and once more (`again`). Opening is not part of a question.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
TIMES = ("first_ms", "kept_ms", "again_ms")
KINDS = {"analysis": "all analyses", "section": "sections of pages", "rows": "pages of tables"}


def main() -> None:
    """Ask in as many fresh processes as there are rounds, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="fresh processes (default 3)")
    parser.add_argument("--list", type=int, default=5, help="how many of the slowest to name (default 5)")
    parser.add_argument("--store", type=Path, help="a store to use; by default one that is made and removed")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as store:
        print_times(chosen.path.name, asked(chosen.path, chosen.store or Path(store), chosen.rounds), chosen.list)


def asked(path: Path, store: Path, rounds: int) -> list[dict[str, Any]]:
    """The questions with their median times in milliseconds; the store is filled first by `analyze`."""
    env = {**os.environ, "STEPSCOPE_CACHE": str(store)}
    fill = (sys.executable, "-m", "stepscope", "analyze", str(path), "--quiet", "--json")
    subprocess.run(fill, env=env, stdout=subprocess.DEVNULL, check=True)
    command = (sys.executable, str(HERE / "ask.py"), str(path))
    told = [subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True).stdout for _ in range(rounds)]
    return [
        {**same[0], **{when: median(one[when] for one in same) for when in TIMES}}
        for same in zip(*map(json.loads, told), strict=True)
    ]


def print_times(label: str, times: Sequence[dict[str, Any]], slowest: int = 1) -> None:
    """Median, 95th percentile and the slowest by kind, in milliseconds."""
    print(f"{label}, milliseconds")
    print(f"  {'':24}{'count':>7}{'':>9}{'median':>9}{'p95':>9}{'worst':>9}")
    for kind, title in KINDS.items():
        of_kind = [one for one in times if one["kind"] == kind]
        for when in TIMES:
            ordered = sorted(of_kind, key=lambda one: -one[when])
            values = [one[when] for one in ordered]
            if not values:
                continue
            p95 = values[len(values) - math.ceil(0.95 * len(values))]
            named = ", ".join(f"{one['name']} {one[when]:.0f}" for one in ordered[:slowest])
            head = f"  {title if when == 'first_ms' else '':24}{len(values) if when == 'first_ms' else '':>7}"
            print(f"{head}{when[:-3]:>9}{median(values):9.1f}{p95:9.1f}{values[0]:9.1f}  {named}")
    print()


if __name__ == "__main__":
    main()
