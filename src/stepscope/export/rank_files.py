"""The files of the ranks of a run, whoever recorded it: one rank after the other, and one that fails stops no other."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from stepscope.errors import StepscopeError
from stepscope.export.ascend_ms.directory import directory_names, write_ascend_ms, write_rank
from stepscope.export.classic.originals import write_originals
from stepscope.export.exporting import EXPORTERS, name_of
from stepscope.export.made import NO_PLACE, Made
from stepscope.export.rank_export import RankExport, export_of
from stepscope.recording_format.export_list import NOWHERE, ExportList, list_name
from stepscope.run import Run
from stepscope.selection import named_numbers
from stepscope.sources.ascend.rank_files import OUTPUT
from stepscope.tables import TABLES

_NOTHING = "nothing was recorded that these files could hold"
CLASSIC = "profiler"
"""The directory of classic files, as readers look for it."""

_NOWHERE = frozenset(
    {
        *("kernel_resources", "operator_details", "collective_splits", "python_calls", "synchronizations"),
        "recorded_calls",
    }
)
"""Tables that have a place in neither format."""
NO_PLACE_IN_CLASSIC = _NOWHERE | {
    "communication_tasks",
    "groups",
    "links",
    "transports",
    "kernel_counters",
    "counters",
    "flows",
}
NO_PLACE_IN_TEXT = _NOWHERE | {
    *("graphs", "graph_nodes", "graph_tensors", "parallel_graphs", "parallel_nodes", "flop_scopes", "rank_figures"),
    *("host_events", "host_usage", "input_pipeline", "pipeline_operators", "communication_totals", "operator_steps"),
}


@dataclass
class _Sum:
    """What became of all ranks."""

    files: list[Path] = field(default_factory=list)
    left_out: list[tuple[int, str, str]] = field(default_factory=list)
    """Rank, what, and why."""
    failed: dict[int, str] = field(default_factory=dict)
    """Why there is nothing at all of a rank."""

    def made(self, ranks: Sequence[int]) -> Made:
        """The result for a user: what ranks have in common is reported once."""
        same: dict[tuple[str, str], list[int]] = defaultdict(list)
        for rank, name, reason in self.left_out:
            same[(name if len(ranks) == 1 else _generic(name, rank)), reason].append(rank)
        made = Made(files=self.files)
        for rank, reason in self.failed.items():
            made.left_out[f"rank {rank}"] = reason
        for (name, reason), of in same.items():
            made.left_out[name if len(ranks) == 1 else f"{name} of {named_numbers('rank', of)}"] = reason
        return made


def _generic(name: str, rank: int) -> str:
    """The name of a file of a rank with `R` for its number, e.g. `flops_R.txt`."""
    return re.sub(rf"_{rank}(?=[_.])(?!.*_{rank}[_.])", "_R", name)


def write_classic(
    run: Run,
    directory: Path,
    *,
    limit_bytes: int | None = None,
    on_fault: Callable[[str, Exception], None] | None = None,
) -> Made:
    """Write the classic files of all ranks of a run to `profiler/` below a directory.

    Args:
        run: Its ranks and steps are exported.
        directory: Where `profiler` is written to.
        limit_bytes: Timelines end before they grow beyond this.
        on_fault: Called with what could not be made for a reason that is no lack of data.

    Raises:
        StepscopeError: If nothing can be made.
    """

    def make(export: RankExport) -> None:
        for write in (*EXPORTERS, write_originals):
            if write is not write_ascend_ms:
                export.attempt(name_of(write), partial(write, export))
        if set(export.written) <= {f"profiler_info_{export.rank}.json"}:
            raise StepscopeError(_NOTHING)
        export.write(list_name(export.rank), json.dumps(_listed(export).as_json(), indent=1))

    made = _of_ranks(run, directory / CLASSIC, make, limit_bytes, on_fault)
    if any(rank.recording.source != "classic" or rank.steps is not None for rank in run.ranks):  # else files are copied
        _tell_lost(run, made, NO_PLACE_IN_CLASSIC)
        other = pl.col("category") != "operator"
        if run.has("slices") and run.table("slices").select(other.any()).collect().item():
            made.left_out["slices of other categories than operator"] = NO_PLACE
    return made


def _listed(export: RankExport) -> ExportList:
    """The list that tells our own reader the numbers of the steps, and of which recording the files are."""
    recording = f"{export.recording.parent.name}/{export.recording.name}" if export.is_own else NOWHERE
    path = export.directory / list_name(export.rank)
    files, steps = tuple(export.written), tuple(export.step_numbers)
    return ExportList(path, recording, files, True, steps, export.left_out)


def write_ascend_text(
    run: Run,
    directory: Path,
    *,
    limit_bytes: int | None = None,
    on_fault: Callable[[str, Exception], None] | None = None,
) -> Made:
    """Write a `*_ascend_pt` or `*_ascend_ms` directory with text files for each rank of a run below a directory.

    Args, raises: See `write_classic`.
    """
    names = directory_names(run)

    def make(export: RankExport) -> None:
        write_rank(export, names[export.rank])
        if not any(f"/{OUTPUT}/" in name for name in export.written):
            raise StepscopeError(_NOTHING)

    made = _of_ranks(run, directory, make, limit_bytes, on_fault)
    _tell_lost(run, made, NO_PLACE_IN_TEXT)
    return made


def _tell_lost(run: Run, made: Made, tables: Collection[str]) -> None:
    """Say which tables with rows have no place in the format."""
    lost = [name for name in TABLES if name in tables and run.has(name)]
    made.left_out |= dict.fromkeys(lost, NO_PLACE)


def _of_ranks(
    run: Run,
    directory: Path,
    make: Callable[[RankExport], None],
    limit_bytes: int | None,
    on_fault: Callable[[str, Exception], None] | None,
) -> Made:
    found = _Sum()
    for rank in (each.rank for each in run.ranks):
        export = export_of(run, rank, directory)
        try:
            export.on_fault = on_fault or (lambda *_: None)
            if limit_bytes is not None:
                export.timeline_limit_bytes = limit_bytes
            make(export)
        except StepscopeError as reason:
            found.failed[rank] = str(reason)
            _drop(export)
            continue
        except OSError as error:
            raise StepscopeError(f"{directory}: cannot be written: {error.strerror or error}") from error
        found.files += [directory / name for name in export.written]
        found.left_out += [(rank, name, reason) for name, reason in export.left_out.items()]
    return found.made([rank.rank for rank in run.ranks])


def _drop(export: RankExport) -> None:
    """Remove the files of a rank of which there is nothing worth to keep."""
    for name in export.written:
        (export.directory / name).unlink(missing_ok=True)
