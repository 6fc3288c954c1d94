"""`python -m stepscope.export RECORDING...`: make the files that other tools read, in a process of its own."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from stepscope._allocator import spare_memory
from stepscope.errors import StepscopeError
from stepscope.selection import parse_selection


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if all went well, 1 if nothing could be made of a recording."""
    # both load Polars, for which `spare_memory` comes first
    from stepscope.export.classic.operator_query import analyse_operators  # noqa: PLC0415
    from stepscope.export.exporting import export  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(levelname)s: %(message)s", stream=sys.stderr)
    told = _parser().parse_args(arguments)
    try:
        if told.operator is not None:
            if len(told.recordings) != 1:
                raise StepscopeError("--operator looks into one recording; give one directory")
            print(analyse_operators(told.recordings[0], [name for name in told.operator.split(",") if name]))
            return 0
        parse_selection(told.steps, "steps")
    except (StepscopeError, OSError, ValueError) as reason:
        print(f"stepscope: {reason}", file=sys.stderr)
        return 1
    limit = told.timeline_limit_mb << 20 if told.timeline_limit_mb else None
    outcomes = export(told.recordings, pretty=told.pretty, steps=told.steps, timeline_limit_bytes=limit)
    for outcome in outcomes:
        if outcome.problem:
            print(f"stepscope: {outcome.recording}: {outcome.problem}", file=sys.stderr)
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m stepscope.export", description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help="directories of raw data")
    parser.add_argument("--pretty", action="store_true", help="indent JSON")
    parser.add_argument("--steps", help="only these steps, e.g. 3-5 or 3,4,5")
    parser.add_argument("--timeline-limit-mb", type=_positive, help="timelines end before they grow beyond this")
    parser.add_argument("--operator", help="print calls and times of these operators (a,b) as JSON instead")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise ValueError(text)
    return number


if __name__ == "__main__":
    spare_memory()
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("stepscope: interrupted; the recording itself is whole", file=sys.stderr)
        sys.exit(130)
