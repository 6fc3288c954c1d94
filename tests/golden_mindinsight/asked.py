"""The requests that were put to MindInsight 2.3.1, and what it answered."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PREFIX = "/v1/mindinsight/profile/"


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
        return "device_id" not in self.parameters

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
        if "path" not in request:  # answers of an older version's classes, about clusters
            continue
        parameters = {**(request.get("params") or {}), **(request.get("body") or {})}
        kind = request["path"].removeprefix(_PREFIX)
        if kind == "ops/search":
            kind = f"ops/{parameters['op_type']}"
        yield Asked(
            name=f"{file.parent.name}/{file.stem}",
            run=file.parent.name,
            kind=kind,
            parameters=parameters,
            status=stored["status"],
            answer=stored["response"],
            file=file,
        )
