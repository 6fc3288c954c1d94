"""Which ranks the ends of links in `hccl_raw` are: numbers of the job, of a pipeline stage, or of devices of a host."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from stepscope.json_values import as_index
from stepscope.sources.base import Sink
from stepscope.sources.classic.files import RankFiles
from stepscope.sources.classic.ranks import cluster_sizes, read_info


def offset_of(files: RankFiles, links: pl.DataFrame, path: Path, sink: Sink) -> int | None:
    """Offset from the numbers of links to global ranks; None if unknown.

    A rank's own file holds its own links, so its number is at one end of each. Where it is not, but its number in its
    pipeline stage, or that of its device on its host, is, links count within those.

    Args:
        files: The rank.
        links: What went over links, as `call_cells.LINKS`.
        path: The file, for issues.
        sink: Takes an issue if numbers are not ranks.
    """
    ends = [set(pair) for pair in links.select("source", "destination").unique().iter_rows()]
    common = set[int].intersection(*ends) if ends else {files.rank}
    if files.rank in common:
        return 0
    for own, what in ((_in_stage(files), "their pipeline stage"), (_device(files), "their host")):
        if own is not None and own in common:
            sink.issue(
                "note", path, f"links number ranks within {what}; converted to ranks of the job", "Nothing to do"
            )
            return files.rank - own
    problem = f"no number of rank {files.rank} is in its links, so the ranks that they join are unknown"
    sink.issue("warning", path, problem, "Keep profiler_info with the file", place="links", lost=links.height)
    return None


def _in_stage(files: RankFiles) -> int | None:
    """The rank's number in its pipeline stage; stages are of equal size, in the order of ranks."""
    info, named = read_info(files), cluster_sizes(files)
    stages = as_index(info.get("stage_num")) or as_index(info.get("pipeline_stage_num")) or named.get("stages")
    ranks = as_index(info.get("rank_size")) or named.get("ranks")
    if not stages or not ranks or ranks % stages:
        return None
    return int(files.rank % (ranks // stages))


def _device(files: RankFiles) -> int | None:
    return files.seat.device if files.seat is not None else None
