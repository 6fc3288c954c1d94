"""Measure every page command on jobs of more and more ranks, from the store, without kept answers.

    python benchmarks/page_growth.py DIRECTORY... --store STORE --out out/pages.json

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measure import measure
from stepscope._allocator import allocator_environment
from stepscope.pages import PAGES

HERE = Path(__file__).resolve().parent
START = "start"
"""The row of opening a job and asking nothing; what a page costs beyond it is its own."""
MORE: Mapping[str, tuple[str, ...]] = {
    "analyze": ("analyze", "-q"),
    "info": ("info",),
    "ranks, 5 of them": ("ranks", "--ranks", "0-4"),
    "ranks by step": ("ranks", "--by-step"),
    "kernels by rank": ("kernels", "--by-rank"),
    "api by rank": ("api", "--by-rank"),
    "calls by rank": ("calls", "--by-rank"),
}
_OPEN = "import sys, stepscope; stepscope.open_runs([sys.argv[1]])"


@dataclass(frozen=True)
class Point:
    """What one page costs for one job: seconds, and peak memory of all its processes."""

    page: str
    job: str
    ranks: int
    cpu_s: float
    wall_s: float
    peak_mb: float
    status: int


def main() -> None:
    """Read the jobs into a store, measure each page on each of them, and print how its costs grow."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, help="directories of jobs, a directory in each for every rank")
    parser.add_argument("--store", type=Path, help="a store to use; by default one that is made and removed")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="pages whose names contain such a word")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--limit-mb", type=float, default=math.inf, help="exit with 1 if a peak is above it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-") as folder:
        env = {**allocator_environment(), "STEPSCOPE_CACHE": str(chosen.store or folder)}
        points = list(_measured(chosen.paths, env, chosen.only))
    print("\n".join(table(points)))
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps([asdict(point) for point in points], indent=1))
    above = [f"{point.page} of {point.ranks} ranks" for point in points if point.peak_mb > chosen.limit_mb]
    if above:
        sys.exit(f"above {chosen.limit_mb:g} MB: {', '.join(above)}")


def _measured(paths: Sequence[Path], env: Mapping[str, str], only: Sequence[str]) -> Iterator[Point]:
    asked = {**{page.name: (page.name,) for page in PAGES}, **MORE}
    for path in paths:
        ranks = sum(1 for entry in path.iterdir() if entry.is_dir())
        reading = (sys.executable, "-c", _OPEN, str(path))
        measure(reading, env=env)  # into the store, if it is not there
        commands: dict[str, tuple[str, ...]] = {START: reading}
        for name, words in asked.items():
            if any(word in name for word in only):
                commands[name] = (sys.executable, str(HERE / "ask_once.py"), str(path), "command", *words)
        for name, command in commands.items():
            cost = measure(command, env=env)
            point = Point(name, path.name, ranks, cost.cpu_s, cost.wall_s, cost.peak_bytes / 1e6, cost.status)
            told = f"  exit status {cost.status}: {' '.join(cost.tail.split())[:70]}" if cost.status else ""
            print(
                f"{ranks:6d} {name:24}{point.cpu_s:8.2f} s CPU{point.wall_s:8.2f} s{point.peak_mb:8.0f} MB{told}",
                file=sys.stderr,
                flush=True,
            )
            yield point


def table(points: Sequence[Point]) -> list[str]:
    """A line for each page: processor time and peak of each job, and by which power of the ranks its own part grows."""
    sizes = sorted({point.ranks for point in points})
    by_page: dict[str, dict[int, Point]] = {}
    for point in points:
        by_page.setdefault(point.page, {})[point.ranks] = point
    lines = [f"{'CPU s, peak MB':24}" + "".join(f"{size:>8} ranks" for size in sizes) + "   grows by the power"]
    for page, of_size in by_page.items():
        found = [of_size.get(size) for size in sizes]
        cells = [" " * 14 if one is None else f"{one.cpu_s:7.1f}{one.peak_mb:7.0f}" for one in found]
        powers = [
            f"{power(own):5.2f}" if (own := _own(of_size, by_page[START], name)) else "    -"
            for name in ("cpu_s", "peak_mb")
        ]
        lines.append(f"{page:24}{''.join(cells)}   {' '.join(powers)}")
    return lines


def _own(points: Mapping[int, Point], start: Mapping[int, Point], name: str) -> list[tuple[int, float]]:
    """What a page adds to opening each job; nothing where that is too little to say how it grows."""
    found = [(size, getattr(point, name) - getattr(start[size], name)) for size, point in sorted(points.items())]
    return found if len(found) > 1 and found[0][1] > (0.2 if name == "cpu_s" else 20) and found[-1][1] > 0 else []


def power(points: Sequence[tuple[float, float]]) -> float:
    """By which power of the first figure the second one grows, from the first point to the last.

    Examples:
        >>> power([(1, 3.0), (2, 6.0), (4, 12.0)])
        1.0
    """
    (first, low), (last, high) = points[0], points[-1]
    return math.log(high / low) / math.log(last / first)


if __name__ == "__main__":
    main()
