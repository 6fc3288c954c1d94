"""`python -m stepscope.export RECORDING...`: write recordings as files of other tools."""

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
    """Run the command; 0 if all went well, 1 if a recording could not be exported."""
    # both load Polars, for which `spare_memory` comes first
    from stepscope.export.classic.operator_query import analyse_operators  # noqa: PLC0415
    from stepscope.export.exporting import export  # noqa: PLC0415

    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(levelname)s: %(message)s", stream=sys.stderr)
    options = _parser().parse_args(arguments)
    try:
        if options.operator is not None:
            if len(options.recordings) != 1:
                raise StepscopeError("--operator takes one recording; give one directory")
            print(analyse_operators(options.recordings[0], [name for name in options.operator.split(",") if name]))
            return 0
        parse_selection(options.steps, "steps")
    except (StepscopeError, OSError, ValueError) as reason:
        print(f"stepscope: {reason}", file=sys.stderr)
        return 1
    limit = options.timeline_limit_mb << 20 if options.timeline_limit_mb else None
    outcomes = export(options.recordings, pretty=options.pretty, steps=options.steps, timeline_limit_bytes=limit)
    for outcome in outcomes:
        if outcome.problem:
            print(f"stepscope: {outcome.recording}: {outcome.problem}", file=sys.stderr)
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m stepscope.export", description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path, metavar="RECORDING", help="directories of recordings")
    parser.add_argument("--pretty", action="store_true", help="indent JSON")
    parser.add_argument("--steps", help="export only these steps, e.g. 3-5 or 3,4,5")
    parser.add_argument("--timeline-limit-mb", type=_positive, help="size limit of each timeline")
    parser.add_argument("--operator", help="print calls and times of these operators (a,b) as JSON and export nothing")
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
