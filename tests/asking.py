"""Every answer about recordings in a form that can be compared; as a script, printed as JSON.

Usage:
    python tests/asking.py PATH...
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepscope import Run, open_runs
from stepscope.advice import advise
from stepscope.analysis import ANALYSES
from stepscope.errors import NothingReadable, Unavailable
from stepscope.ingest.inputs import worker_count
from stepscope.run import Threads

DIGITS = 9
"""A sum of fractions differs in its last digit by the order in which they are added."""


def answers(run: Run) -> dict[str, Any]:
    """Every answer and the advice, by question; why there is none where there is none."""
    found: dict[str, Any] = {}
    for question in sorted(ANALYSES):
        try:
            found[question] = [plain(row) for row in run.analyse(question).iter_rows(named=True)]
        except Unavailable as reason:
            found[question] = str(reason)
    found["advice"] = [plain(asdict(finding)) for finding in advise(run, strict=True)]
    return found


def tables(run: Run) -> dict[str, Any]:
    """Every table of every rank."""
    return {
        f"{name} of rank {rank.rank}": [plain(row) for row in rank.table(name).collect().iter_rows(named=True)]
        for rank in run.ranks
        for name in rank.rows
    }


def plain(value: Any) -> Any:
    """The same with fractions cut to what is certain of them."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def opened(path: Path) -> list[Run]:
    """The runs below a path, read anew; none where nothing can be read."""
    try:
        return open_runs(path, use_store=False, engine=Threads(worker_count()))
    except NothingReadable:
        return []


def _told(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for run in opened(path):
            for question, answer in (*tables(run).items(), *answers(run).items()):
                text = json.dumps(answer, sort_keys=True)
                yield f"{path.name}, {run.name}, {question}", hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    json.dump(dict(_told([Path(argument) for argument in sys.argv[1:]])), sys.stdout)
