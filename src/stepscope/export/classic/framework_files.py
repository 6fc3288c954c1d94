"""Files that the framework wrote itself, copied under the names that readers look for."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl

from stepscope.export.rank_export import RankExport
from stepscope.recording_format.layout import COMPLETE, minddata_directories, window_directory
from stepscope.recording_format.rows import WINDOWS

PIPELINE = "pipeline_profiling"
CPU = "minddata_cpu_utilization"
ITERATOR = "dataset_iterator_profiling"
_NAME = re.compile(
    rf"(?:{PIPELINE}|{CPU}|{ITERATOR}|device_queue_profiling|minddata_aicpu|minddata_getnext_profiling)_\d+"
)


def write_minddata(export: RankExport) -> None:
    """Copy the files of the newest span from start to stop that has any; of a recording of another profiler its own.

    Spans are not joined: there are gaps between them, which these files cannot express.
    """
    spans = _spans(export)
    if not spans:
        return
    for file in sorted(spans[-1]):
        if file.is_file():
            export.copy(f"{file.stem.rpartition('_')[0]}_{export.rank}{file.suffix}", file)
    if export.steps is not None:
        export.leave_out(
            f"{PIPELINE}_{export.rank}.json (steps)", "MindData samples by time: its files cover all steps"
        )
    if len(spans) > 1:
        export.leave_out(
            f"{PIPELINE}_{export.rank}.json (earlier)", f"{len(spans) - 1} earlier spans stay in minddata/"
        )


def _spans(export: RankExport) -> list[list[Path]]:
    """The files of each span that has any."""
    if export.is_own:
        files = [list(span.iterdir()) for span in minddata_directories(export.recording)]
    else:
        files = [list(export.run.ranks[0].recording.files)]
    named = ([file for file in span if _NAME.fullmatch(file.stem)] for span in files)
    return [span for span in named if span]


def write_window_originals(export: RankExport) -> None:
    """Copy the operator data of each finished window to `windows_<rank>/<window>/`, if the user asks for it.

    The other files are made from this data, and it stays in the recording, so `data_simplification` leaves it out.
    """
    if export.data_simplification or not export.is_own:
        return
    rows = export.raw(WINDOWS).filter(pl.col("state") == COMPLETE)
    for number in rows["window"].drop_nulls():
        directory = window_directory(export.recording, number)
        for file in sorted(path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()):
            export.copy(f"windows_{export.rank}/{directory.name}/{file.relative_to(directory)}", file)
