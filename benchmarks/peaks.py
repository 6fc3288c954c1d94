"""Peak memory of reading a recording and of each question about it: `python benchmarks/peaks.py PATH`.

It is read into a store. Then each analysis and each command is asked in a fresh process, about the rows in the store:
no answer is kept. The highest peaks come first.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from measure import Cost, measure
from stepscope._allocator import allocator_environment
from stepscope.pages import PAGES

HERE = Path(__file__).resolve().parent
READING = "read"
READ = "import sys, stepscope; stepscope.open_runs([sys.argv[1]])"
COMMANDS = (
    ("analyze", "--json"),
    ("analyze", "--format=table"),
    *((page.name, form) for page in PAGES for form in ("--format=table", "--json", "--csv")),
    ("memory", "--table=memory_usage", "--csv"),
)
KINDS = ("analysis", "command", "section", "rows")


def main() -> None:
    """Measure, print, and fail if a peak is above the limit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--kinds", default="analysis,command", help=f"of {', '.join(KINDS)} (default %(default)s)")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="questions that contain such a word")
    parser.add_argument("--store", type=Path, help="a store to use; by default one that is made and removed")
    parser.add_argument("--limit-mb", type=float, default=math.inf, help="exit with 1 if a peak is above it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as folder:
        # as the command line sets it for itself
        env = {**allocator_environment(), "STEPSCOPE_CACHE": str(chosen.store or folder)}
        costs = dict(_costs(chosen.path, env, chosen.kinds.split(","), chosen.only))
    print_peaks(chosen.path.name, costs)
    if above := above_limit(costs, chosen.limit_mb):
        sys.exit(f"above {chosen.limit_mb:g} MB: {', '.join(above)}")


def _costs(path: Path, env: Mapping[str, str], kinds: Sequence[str], only: Sequence[str]) -> Iterator[tuple[str, Cost]]:
    """What reading costs (only opening, if it is in the store), and each question."""
    yield READING, measure((sys.executable, "-c", READ, str(path)), env=env)
    for kind, words in _questions(path, env):
        name = f"{kind} {' '.join(words)}"
        if kind in kinds and any(word in name for word in only):
            yield name, measure((*_ask(path), kind, *words), env=env)


def _questions(path: Path, env: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The kind of each question, and its name or the words of the command."""
    told = subprocess.run(
        (*_ask(path), "list"), env={**os.environ, **env}, stdout=subprocess.PIPE, check=True, text=True
    )
    for line in told.stdout.splitlines():
        kind, name = line.split("\t")
        yield kind, (name,)
    for command in COMMANDS:
        yield "command", command


def _ask(path: Path) -> tuple[str, ...]:
    return sys.executable, str(HERE / "ask_once.py"), str(path)


def print_peaks(label: str, costs: Mapping[str, Cost]) -> None:
    """A line for each question, the highest peak first. A command that has nothing to show fails, and says so here."""
    print(f"{label:46}{'peak MB':>9}{'wall s':>9}{'cpu s':>9}")
    for name, cost in sorted(costs.items(), key=lambda item: -item[1].peak_bytes):
        failed = f"  exit status {cost.status}: {' '.join(cost.tail.split())[:60]}" if cost.status else ""
        print(f"  {name:44}{cost.peak_bytes / 1e6:9.0f}{cost.wall_s:9.1f}{cost.cpu_s:9.1f}{failed}")


def above_limit(costs: Mapping[str, Cost], limit_mb: float) -> list[str]:
    """The questions with a peak above the limit."""
    return [name for name, cost in costs.items() if cost.peak_bytes > limit_mb * 1e6]


if __name__ == "__main__":
    main()
