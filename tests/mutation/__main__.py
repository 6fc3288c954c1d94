"""Changes a module in one place at a time and reports the changes that its tests do not notice.

python tests/mutation                      # all targets in targets.toml
python tests/mutation src/stepscope/run/jobs.py --function _at_once --jobs 4
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from forks import survivors
from mutants import Mutant, mutants

TARGETS = Path(__file__).with_name("targets.toml")


def main() -> int:
    """Test the mutants that the arguments ask for; 1 if too few are noticed, or a list is out of date."""
    wanted = _arguments()
    os.environ["POLARS_MAX_THREADS"] = "1"  # its threads must not start before a fork, and would not pay after it
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and they start slowly
    sys.path[:0] = [str(Path.cwd()), str(Path.cwd() / "src")]
    targets = {target["file"]: target for target in tomllib.loads(wanted.targets.read_text())["target"]}
    failures = 0
    for file in wanted.files or targets:
        target = targets.get(file, {"file": file, "tests": []})
        failures += not _is_caught(target, wanted.tests or target["tests"], wanted)
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("mutation", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="modules to change (default: those in targets.toml)")
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="tests to run (default: those in targets.toml)")
    parser.add_argument("--function", action="append", help="change this function only; may be repeated")
    parser.add_argument("--share", type=float, default=0.95, help="share to catch of those not listed as equivalent")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--targets", type=Path, default=TARGETS, help="file of modules, tests and equivalent mutants")
    parser.add_argument("--list", action="store_true", help="show the mutants and test none")
    return parser.parse_args()


def _is_caught(target: dict[str, Any], tests: Sequence[str], wanted: argparse.Namespace) -> bool:
    """Test one file's mutants and print those that survive."""
    file = Path(target["file"])
    every = mutants(file.read_text())
    equivalent = {(one["function"], one["change"]): one["reason"] for one in target.get("equivalent", [])}
    gone = equivalent.keys() - {(mutant.function, mutant.change) for mutant in every}
    tested = [
        mutant
        for mutant in every
        if (mutant.function, mutant.change) not in equivalent
        and (not wanted.function or mutant.function in wanted.function)
    ]
    if wanted.list:
        for mutant in tested:
            print(_line(file, mutant))
        return True
    started = time.monotonic()
    alive = survivors(file, tests, [mutant.source for mutant in tested], jobs=wanted.jobs, done=_show_count)
    for number in alive:
        print(_line(file, tested[number]))
    for function, change in sorted(gone):
        print(f"{file}: {function}: listed as equivalent, but no longer made: {change}")
    caught, seconds = len(tested) - len(alive), time.monotonic() - started
    share = caught / max(len(tested), 1)
    print(
        f"{file}: {caught} of {len(tested)} mutants caught ({share:.1%}), {len(equivalent)} listed as equivalent, "
        f"{seconds:.0f} s"
    )
    return share >= wanted.share and not gone


def _show_count(count: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{count} mutants tested", end="\r", file=sys.stderr)


def _line(file: Path, mutant: Mutant) -> str:
    return f"{file}:{mutant.line}: {mutant.function}: {mutant.change}"


if __name__ == "__main__":
    sys.exit(main())
