"""The files of one rank by what they hold."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepscope.sources.side_files import NamedFiles, named

Unit = Literal["CPU", "HOST_CPU"]
"""The list of `operator_totals`: `HOST_CPU` if the rank also ran operators on a device."""


@dataclass(frozen=True)
class CpuFiles(NamedFiles):
    """The files; None for missing ones.

    Args:
        types: Totals by operator type.
        details: Totals by operator.
        times: When each operator ran.
        launches: Shapes of the inputs of each launch.
        memory: The allocator's curve.
    """

    types: Path | None = named(r"cpu_op_type_info_\d+\.csv")
    details: Path | None = named(r"cpu_op_detail_info_\d+\.csv")
    times: Path | None = named(r"cpu_op_execute_timestamp_\d+\.txt")
    launches: Path | None = named(r"cpu_framework_\d+\.txt")
    memory: Path | None = named(r"cpu_ms_memory_record_\d+\.txt")
