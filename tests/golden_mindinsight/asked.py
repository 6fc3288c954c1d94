"""The requests that were put to MindInsight 2.3.1, and what it answered."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PREFIX = "/v1/mindinsight/profile/"

OF_JOB = (
    *("cluster-step-trace-summary", "search-cluster-communication", "communication-data", "search-cluster-link"),
    *("cluster-flops", "cluster-peak-memory", "summary/cluster-propose"),
)
"""Pages about all ranks of a job."""

_OLDER = {
    "cluster_step": "cluster-step-trace-summary",
    "cluster_communication": "search-cluster-communication",
    "cluster_link": "search-cluster-link",
    "cluster_flops": "cluster-flops",
    "cluster_peak": "cluster-peak-memory",
}
"""How names of answers of version 1.3, which had no such paths, begin, and their pages."""


@dataclass(frozen=True)
class Asked:
    """One request and its answer.

    Args:
        name: Run and file, e.g. `synthetic_dp4/queue_info_get_next_dev0`.
        run: The directory that was asked about.
        kind: The page, e.g. `queue_info`, with the operator list for `ops`.
        parameters: Query parameters and body as one.
        status: HTTP status.
        answer: The body.
        file: Where both are stored.
    """

    name: str
    run: str
    kind: str
    parameters: dict[str, Any]
    status: int
    answer: Any
    file: Path

    @property
    def rank(self) -> int:
        """The rank asked about."""
        return int(self.parameters["device_id"])

    @property
    def is_about_all(self) -> bool:
        """Whether it is about all ranks of a job."""
        return self.kind in OF_JOB or "device_id" not in self.parameters

    def beside(self, page: str) -> Any:
        """What was answered about the same rank on another page, a part of the file's name; None if nothing was."""
        return _answer(self.file.with_name(f"{page}_dev{self.rank}.json"))


@functools.cache
def _answer(file: Path) -> Any:
    return json.loads(file.read_bytes())["response"] if file.is_file() else None


def all_asked(golden: Path) -> Iterator[Asked]:
    """Every stored request of single pages and of the cluster, in the order of their names."""
    for file in sorted(golden.glob("*/*.json")):
        stored = json.loads(file.read_bytes())
        request = stored["request"]
        parameters = {**(request.get("params") or {}), **(request.get("body") or {}), **request.get("condition", {})}
        older = (page for start, page in _OLDER.items() if file.stem.startswith(start))
        kind = request["path"].removeprefix(_PREFIX) if "path" in request else next(older)
        if kind == "ops/search":
            kind = f"ops/{parameters['op_type']}"
        yield Asked(
            name=f"{file.parent.name}/{file.stem}",
            run=file.parent.name,
            kind=kind,
            parameters=parameters,
            status=stored.get("status", 200),
            answer=stored["response"],
            file=file,
        )
