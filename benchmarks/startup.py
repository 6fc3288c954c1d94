"""Measure what stepscope costs at start: processor time of `import stepscope` and of `stepscope --help`.

    python benchmarks/startup.py

A bare interpreter, started in turn with the others, is subtracted from the import.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

from measure import measure


def main() -> None:
    """Run each command a number of times in turn and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="fresh processes per command (default 15)")
    rounds = parser.parse_args().rounds
    commands = {
        "bare": (sys.executable, "-c", "pass"),
        "import": (sys.executable, "-c", "import stepscope"),
        "help": (sys.executable, "-m", "stepscope", "--help"),
    }
    cpu_ms: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            cost = measure(command, cwd=Path("/"))  # not the checkout: its files must not shadow the package
            if cost.status:
                raise SystemExit(f"{' '.join(command)}: exit status {cost.status}\n{cost.tail}")
            cpu_ms[name].append(cost.cpu_s * 1000)
    bare_ms, import_ms, help_ms = (statistics.median(values) for values in cpu_ms.values())
    print(f"processor time, median of {rounds} fresh processes")
    print(f"  bare interpreter        {bare_ms:7.1f} ms")
    print(f"  import stepscope        {import_ms:7.1f} ms  ({import_ms - bare_ms:+.1f} ms)")
    print(f"  stepscope --help        {help_ms:7.1f} ms  ({help_ms - bare_ms:+.1f} ms)")


if __name__ == "__main__":
    main()
