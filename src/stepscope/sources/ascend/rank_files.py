"""Files of an Ascend rank directory, found by name and identified by content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from stepscope.sources.minddata.files import MinddataFiles
from stepscope.sources.mindspore_cpu.files import CpuFiles

OUTPUT = "ASCEND_PROFILER_OUTPUT"
FRAMEWORK = "FRAMEWORK"
TEXT_FILES = {
    "trace_view.json": "trace",
    "kernel_details.csv": "kernels",
    "step_trace_time.csv": "step_totals",
    "op_statistic.csv": "kernel_totals",
    "api_statistic.csv": "api_totals",
    "operator_memory.csv": "allocations",
    "memory_record.csv": "memory_curve",
    "npu_module_mem.csv": "module_memory",
    "communication.json": "communication",
    "communication_matrix.json": "matrix",
    "dataset.csv": "dataset",
    "data_preprocess.csv": "data_preprocess",
}
"""Name of a text file to what it holds. Other names (`op_summary_...csv`) are known by their header."""
ENOUGH = frozenset(
    {"trace_view.json", "kernel_details.csv", "step_trace_time.csv", "communication.json", "op_statistic.csv"}
)
"""A directory with one of these is a recording; the rest only add to one."""

DATABASE = re.compile(r"(?:ascend_(?:pytorch|mindspore)_profiler(?:_(\d+))?|msmonitor_\d+_\d+_(\d+))\.db$")
PROFILER_INFO = re.compile(r"^profiler_info(?:_(\d+))?\.json$")
_SINGLE = {
    "database": DATABASE,
    "analysis": re.compile(r"^(?:analysis|communication_analyzer)\.db$"),
    "profiler_info": PROFILER_INFO,
    "metadata": re.compile(r"^profiler_metadata\.json$"),
    "device_info": re.compile(r"^info\.json\.\d+$"),
}
"""Field of `ExportFiles` to the name of its file."""
RANK_DIRECTORY = re.compile(
    r"^(?:rank-(?P<rank>\d{1,9})|(?P<host>.+?)(?:_|--)(?P<process>\d+))_(?P<began>\d{14,20})_ascend_(?P<framework>pt|ms)$"
)


@dataclass(frozen=True)
class ExportFiles:
    """The files of one recording, by what they hold; what is not there is not in `texts` or is None."""

    path: Path
    texts: dict[str, Path] = field(default_factory=dict)
    database: Path | None = None
    analysis: Path | None = None
    profiler_info: Path | None = None
    metadata: Path | None = None
    device_info: Path | None = None
    cpu: CpuFiles = field(default_factory=CpuFiles)
    minddata: MinddataFiles = field(default_factory=MinddataFiles)

    @property
    def has_text(self) -> bool:
        """Whether the text export is there."""
        return any(path.name in ENOUGH for path in self.texts.values()) or bool(self.cpu.all)

    @property
    def files(self) -> tuple[Path, ...]:
        """All files, in a fixed order."""
        others = (self.database, self.analysis, self.profiler_info, self.metadata, self.device_info)
        known = {*self.texts.values(), *(path for path in others if path is not None)}
        return tuple(sorted({*known, *self.cpu.all, *self.minddata.all}))


def began_ns(path: Path) -> int | None:
    """When a recording began, by the name of its directory (UTC, to the ms); None if it has no time."""
    match = RANK_DIRECTORY.match(path.name)
    if match is None:
        return None
    try:
        second = datetime.strptime(match["began"][:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return int(second.timestamp()) * 1_000_000_000 + int(match["began"][14:17].ljust(3, "0")) * 1_000_000


def sort_files(path: Path, files: Iterable[Path]) -> ExportFiles:
    """Sort `files` of the input `path` by what their names say that they hold."""
    given = list(files)
    named = [(file.name, file) for file in given]
    texts = {TEXT_FILES[name]: file for name, file in named if name in TEXT_FILES}
    single = {kind: file for name, file in named if name not in TEXT_FILES for kind in _SINGLE if _is(kind, name)}
    cpu, minddata = CpuFiles.among(given), MinddataFiles.among(given)
    return ExportFiles(path=path, texts=texts, cpu=cpu, minddata=minddata, **single)


def _is(kind: str, name: str) -> bool:
    return _SINGLE[kind].search(name) is not None


def find_rank_files(directory: Path, names: Sequence[str], *, has_database: bool | None = None) -> ExportFiles | None:
    """Recognise `directory` as one rank's recording: its root, or the output folder itself.

    Several databases in one folder are several recordings, so such a folder is not one; nor is a folder of another
    name that may hold other recordings as well. `has_database` asks only for those with or without one.
    """
    if OUTPUT in names:
        root, output = directory, directory / OUTPUT
    elif directory.name == OUTPUT:
        root, output = directory.parent, directory
    elif (ENOUGH.intersection(names) or any(map(DATABASE.search, names))) and not _strangers(names):
        root = output = directory
    elif FRAMEWORK in names and not any(name.startswith("PROF_") for name in names):  # of a CPU, and not analysed
        root, output = directory, directory / OUTPUT
    else:
        return None
    exported = _entries(output)
    databases = [path for path in exported if _is("database", path.name)]
    if has_database not in (None, bool(databases)):
        return None
    framework = _entries(root / FRAMEWORK)
    found = [path for path in exported if path.name in TEXT_FILES or _is("analysis", path.name)]
    cpu = CpuFiles.among(framework).all
    if len(databases) > 1 or not (databases or cpu or any(path.name in ENOUGH for path in found)):
        return None
    prepared = MinddataFiles.among([*exported, *framework]).all
    return sort_files(directory, [*found, *databases, *_side_files(root), *cpu, *prepared])


def _strangers(names: Sequence[str]) -> bool:
    """Whether any file looks like a separate recording rather than a part of an export."""
    others = [name for name in names if name.endswith((".json", ".gz", ".db")) and name not in TEXT_FILES]
    return not all(any(_is(kind, name) for kind in _SINGLE) for name in others)


def _side_files(root: Path) -> list[Path]:
    here = _entries(root)
    side = [path for path in here if _is("metadata", path.name) or _is("profiler_info", path.name)]
    for raw in (path for path in here if path.name.startswith("PROF_")):
        for device in (path for path in _entries(raw) if path.name.startswith("device_")):
            side += [path for path in _entries(device) if _is("device_info", path.name)]
    return side


def _entries(directory: Path) -> list[Path]:
    try:
        return [directory / name for name in sorted(os.listdir(directory))]  # noqa: PTH208 - paths are slow to sort
    except OSError:
        return []
