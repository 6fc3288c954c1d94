"""The files of one rank by what they hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

Unit = Literal["CPU", "HOST_CPU"]
"""The list of `operator_totals`: `HOST_CPU` if the rank also ran operators on a device."""

_NAMES = {
    "types": r"cpu_op_type_info_\d+\.csv",
    "details": r"cpu_op_detail_info_\d+\.csv",
    "times": r"cpu_op_execute_timestamp_\d+\.txt",
    "launches": r"cpu_framework_\d+\.txt",
    "memory": r"cpu_ms_memory_record_\d+\.txt",
}


@dataclass(frozen=True)
class CpuFiles:
    """The files; None for missing ones.

    Args:
        types: Totals by operator type.
        details: Totals by operator.
        times: When each operator ran.
        launches: Shapes of the inputs of each launch.
        memory: The allocator's curve.
    """

    types: Path | None = None
    details: Path | None = None
    times: Path | None = None
    launches: Path | None = None
    memory: Path | None = None

    @classmethod
    def among(cls, files: Iterable[Path]) -> CpuFiles:
        """Those among `files`, by their names; the first of several of a kind."""
        given = list(files)
        found = {kind: [file for file in given if re.fullmatch(name, file.name)] for kind, name in _NAMES.items()}
        return cls(**{kind: files[0] for kind, files in found.items() if files})

    @property
    def all(self) -> list[Path]:
        """Those that are there."""
        return [file for field in fields(self) if (file := getattr(self, field.name)) is not None]
