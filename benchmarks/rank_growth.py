"""Measure `stepscope analyze` on jobs of more and more ranks, and say what 10,000 ranks need.

    python benchmarks/rank_growth.py --gen GENERATOR.py --ranks 64,256,1024 --steps 10 --out out/growth.json
    python benchmarks/rank_growth.py DIRECTORY...

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import inputs
from measure import measure

LARGE = 10_000
_READ = "import pathlib, sys; [len(p.read_bytes()) for p in pathlib.Path(sys.argv[1]).rglob('*') if p.is_file()]"


@dataclass(frozen=True)
class Point:
    """What one job costs: processor seconds and peak memory, cold (from its files) and warm (from the store).

    Args:
        ranks: Number of its ranks.
        size_mb: Size of its files.
        read_s: Processor time of only reading the bytes of its files: a bound.
    """

    ranks: int
    size_mb: float
    read_s: float
    cold_s: float
    cold_wall_s: float
    cold_mb: float
    warm_s: float
    warm_mb: float


def main() -> None:
    """Make the inputs, measure, print and fit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, help="directories of jobs, a directory in each for every rank")
    parser.add_argument("--gen", type=Path, help="generator of Ascend directories")
    parser.add_argument("--ranks", default="64,256,1024", help="ranks of generated jobs (default %(default)s)")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--ops", type=int, default=50, help="device operators per step")
    parser.add_argument("--scratch", type=Path, help="where inputs and the store are made")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    chosen = parser.parse_args()
    points = []
    with tempfile.TemporaryDirectory(prefix="stepscope-benchmark-", dir=chosen.scratch) as name:
        for directory in _inputs(chosen, Path(name)):
            points.append(measured(directory, Path(name) / "store"))
            print(line(points[-1]), flush=True)
    print("\n".join(fits(points)))
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps([asdict(point) for point in points], indent=1))


def _inputs(chosen: argparse.Namespace, scratch: Path) -> Iterator[Path]:
    yield from chosen.paths
    for ranks in map(int, chosen.ranks.split(",") if chosen.gen else ()):
        directory = inputs.ascend_directory(
            chosen.gen, scratch / f"ranks-{ranks}", "text", ranks, steps=chosen.steps, ops=chosen.ops
        )
        yield directory
        shutil.rmtree(directory)


def measured(directory: Path, store: Path) -> Point:
    """Measure one job, with an empty store and then with what is in it."""
    shutil.rmtree(store, ignore_errors=True)
    ranks = sum(1 for entry in os.scandir(directory) if entry.is_dir())
    command = (sys.executable, "-m", "stepscope", "analyze", "-q", str(directory))
    read = measure((sys.executable, "-c", _READ, str(directory)))
    cold, warm = (measure(command, env={"STEPSCOPE_CACHE": str(store)}) for _ in range(2))
    for cost in (cold, warm):
        if cost.status:
            raise SystemExit(f"{' '.join(command)}: exit status {cost.status}\n{cost.tail}")
    mb = inputs.size_bytes(directory) / 1e6
    cold_mb, warm_mb = (cost.peak_bytes / 1e6 for cost in (cold, warm))
    return Point(ranks, mb, read.cpu_s, cold.cpu_s, cold.wall_s, cold_mb, warm.cpu_s, warm_mb)


def line(point: Point) -> str:
    """One job as text; the ratio is to only reading its bytes."""
    each, times = point.cold_s / point.ranks * 1e3, point.cold_s / max(point.read_s, 0.01)
    return (
        f"{point.ranks:6d} ranks {point.size_mb:7.0f} MB: cold {point.cold_s:7.1f} s CPU ({each:.0f} ms a rank,"
        f" {times:.0f} x plain read) {point.cold_mb:6.0f} MB; warm {point.warm_s:5.2f} s CPU {point.warm_mb:5.0f} MB"
    )


def fits(points: Sequence[Point]) -> list[str]:
    """How each figure grows, and what `LARGE` ranks need by that; nothing for fewer than two jobs."""
    if len({point.ranks for point in points}) < 2:
        return []
    lines = []
    for name, title, unit in (
        ("cold_s", "cold", "s CPU"),
        ("cold_mb", "cold", "MB"),
        ("warm_s", "warm", "s CPU"),
        ("warm_mb", "warm", "MB"),
    ):
        base, slope = straight([(point.ranks, getattr(point, name)) for point in points])
        first, last = min(points, key=lambda p: p.ranks), max(points, key=lambda p: p.ranks)
        power = math.log(getattr(last, name) / getattr(first, name)) / math.log(last.ranks / first.ranks)
        lines.append(
            f"{title}: {base:.2f} + {slope:.4f} {unit} a rank (grows by the power {power:.2f} of the ranks);"
            f" {LARGE} ranks: {base + slope * LARGE:.0f} {unit}"
        )
    return lines


def straight(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Base and slope of the line with the least squares of relative errors.

    Examples:
        >>> straight([(1, 3), (2, 5), (4, 9)])
        (1.0, 2.0)
    """
    weights = [1 / max(y, 1e-9) ** 2 for _, y in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points, strict=True)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points, strict=True))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points, strict=True)) / spread
    return round(mean_y - slope * mean_x, 9), round(slope, 9)


if __name__ == "__main__":
    main()
