"""From recordings to files that other tools read. A new kind of output is a module and a line in `EXPORTERS`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.export.ascend_ms.directory import write_ascend_ms
from stepscope.export.classic.cluster_analyse import write_cluster_analyse
from stepscope.export.classic.cpu_operators import write_cpu_operators, write_launches
from stepscope.export.classic.cpu_usage import write_cpu_usage
from stepscope.export.classic.device_operators import write_device_operators
from stepscope.export.classic.dynamic_shapes import write_dynamic_shapes
from stepscope.export.classic.flops import write_flops
from stepscope.export.classic.framework_files import write_minddata, write_window_originals
from stepscope.export.classic.gpu_operators import write_gpu_operators
from stepscope.export.classic.hccl_raw import write_hccl_raw
from stepscope.export.classic.host_info import write_host_info
from stepscope.export.classic.memory_usage import write_memory_usage
from stepscope.export.classic.pipeline_raw import write_loader_pipeline, write_pipeline_raw
from stepscope.export.classic.pipeline_summary import write_pipeline_summary
from stepscope.export.classic.profiler_info import write_profiler_info
from stepscope.export.classic.step_trace import write_step_trace
from stepscope.export.classic.timeline import write_timeline
from stepscope.export.communication_calls import arrivals_of
from stepscope.export.publishing import age, publish, staging, target
from stepscope.export.rank_export import RankExport, open_recording
from stepscope.run import Run, open_run
from stepscope.selection import Choice

EXPORTERS: tuple[Callable[[RankExport], None], ...] = (
    write_step_trace,
    write_hccl_raw,
    write_cluster_analyse,
    write_cpu_operators,
    write_launches,
    write_gpu_operators,
    write_device_operators,
    write_timeline,
    write_host_info,
    write_minddata,
    write_loader_pipeline,
    write_cpu_usage,
    write_pipeline_raw,
    write_pipeline_summary,
    write_flops,
    write_memory_usage,
    write_dynamic_shapes,
    write_window_originals,
    write_ascend_ms,
    write_profiler_info,
)
"""All kinds of output, in the order in which they are made; the last one states when all others were done."""

_log = logging.getLogger("stepscope")


@dataclass(frozen=True)
class Outcome:
    """What became of one recording.

    Args:
        recording: Its directory.
        rank: Its number; None if it could not be read.
        files: What was made, relative to the `profiler` directory.
        left_out: What was not made, by file name or exporter, and why.
        problem: Why nothing at all was made; empty if something was.
    """

    recording: Path
    rank: int | None = None
    files: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def export(
    recordings: Iterable[Path],
    *,
    pretty: bool = False,
    steps: Choice = None,
    timeline_limit_bytes: int | None = None,
    data_simplification: bool | None = None,
    opener: Callable[[Path], Run] = open_run,
) -> list[Outcome]:
    """Make the files of each recording. A recording or file that fails stops no other.

    Args:
        recordings: Directories of raw data, `<output_path>/profiler/recording/rank-...`. How long a rank waited for
            others is known only if their recordings are among these.
        pretty: Indent JSON.
        steps: Only these steps (`3-5` or numbers), as the profiler numbered them; None or an empty list for all.
        timeline_limit_bytes: Timelines end before they grow beyond this; None for the recorder's option.
        data_simplification: False also keeps the operator data of each window; None for the recorder's option.
        opener: Opens a recording as a run.

    Returns:
        One outcome a recording, the oldest recording first. If a directory has several recordings of one rank, the
        files of the newest stand in the directory itself, and those of the others in `earlier/<stamp>/`.
    """
    outcomes = []
    together = sorted({Path(recording).absolute() for recording in recordings}, key=age)
    arrivals = arrivals_of(together)
    for recording in together:
        try:
            one = open_recording(recording, opener, steps)
        except (OSError, ValueError, StepscopeError) as reason:
            _log.error("Nothing was made of %s: %s", recording, reason)
            outcomes.append(Outcome(recording, problem=str(reason)))
            continue
        one.directory = target(recording, together)
        one.arrivals = partial(arrivals, recording)
        one.pretty = pretty
        if timeline_limit_bytes is not None:
            one.timeline_limit_bytes = timeline_limit_bytes
        if data_simplification is not None:
            one.data_simplification = data_simplification
        outcomes.append(_make(one))
    return outcomes


def name_of(write: Callable[[RankExport], None]) -> str:
    """What an exporter makes, as the name of its function says."""
    return write.__name__.removeprefix("write_")


def _make(export: RankExport) -> Outcome:
    """Make the files of one recording, all of them or none."""
    home, problem = export.directory, ""
    try:
        with staging(export):
            for write in EXPORTERS:
                export.attempt(name_of(write), partial(write, export))
            if export.written:
                publish(export, home)
            else:
                problem = "no file could be made"
    except OSError as reason:
        problem = f"{home} cannot be written: {reason}"
    return Outcome(export.recording, export.rank, [] if problem else export.written, export.left_out, problem)
