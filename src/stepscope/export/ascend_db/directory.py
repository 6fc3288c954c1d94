"""The directories of all ranks of a run, and what becomes of what cannot be written."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.export.ascend_db.analysis import write_analysis
from stepscope.export.ascend_db.calls import UNKNOWN_GROUP, calls_of, write_calls
from stepscope.export.ascend_db.database import LONGEST_TEXT_BYTES, new_database
from stepscope.export.ascend_db.device import write_counters_of_kernels, write_kernels, write_parts
from stepscope.export.ascend_db.host import write_host
from stepscope.export.ascend_db.identity import side_files, write_identity, write_steps
from stepscope.export.ascend_db.rank import RankDatabase
from stepscope.export.ascend_db.samples import write_counters, write_memory
from stepscope.export.ascend_db.schema import ANALYSIS, EVENTS, INDEXES
from stepscope.export.ascend_ms.directory import directory_names
from stepscope.export.made import Made
from stepscope.export.rank_export import RankExport, export_of, make_private
from stepscope.export.whole_directory import whole_directory
from stepscope.present import plural
from stepscope.run import Run
from stepscope.selection import named_numbers
from stepscope.sources.ascend.rank_files import OUTPUT

_EVENT_TABLES = ("kernels", "collectives", "operators", "slices")
_WRITTEN = (
    *_EVENT_TABLES,
    *("ranks", "groups", "steps", "kernel_counters", "communication_tasks", "links", "transports"),
    *("allocations", "memory_curve", "counters", "stacks"),
)
"""Tables that the databases have a place for."""
_DERIVED = ("step_totals", "operator_totals", "flows", "threads", "rank_figures", "timelines", "issues")
"""Tables that readers make of the others as far as they can, or that are about the files of the recording."""


def write_ascend_db(run: Run, directory: Path) -> Made:
    """Write an Ascend directory with databases for each rank of a run: `<host>_<process>_<time>_ascend_pt/`.

    Args:
        run: The run, perhaps narrowed to some ranks and steps.
        directory: Where to: new or empty.

    Returns:
        The files; what has no place in the format, and why; and what is an approximation.

    Raises:
        StepscopeError: If the directory has files, is in a recording or cannot be written, or the run has nothing that
            the format has a place for: then nothing is there.
    """
    if not any(run.has(table) for table in _EVENT_TABLES):
        raise StepscopeError(
            f"{run.name}: has no kernels, operators, ranges or communication calls, so databases would have no rows. "
            f"{run.missing('slices')}"
        )
    names, made = directory_names(run), Made()
    lost: defaultdict[str, dict[int, int | str]] = defaultdict(dict)
    facts: defaultdict[str, list[int]] = defaultdict(list)
    with whole_directory(directory, run) as draft:
        for rank in (each.rank for each in run.ranks):
            export = export_of(run, rank, draft / names[rank])
            _write_rank(export, lost, facts)
            made.files += [directory / names[rank] / file for file in sorted(export.written)]
    for what, of_ranks in lost.items():
        rows = sum(each for each in of_ranks.values() if isinstance(each, int))
        texts = dict.fromkeys(each for each in of_ranks.values() if isinstance(each, str))
        reason = "; ".join(texts) or f"the format has no place for them ({plural(rows, 'row')})"
        made.left_out[f"{what} of {named_numbers('rank', of_ranks)}"] = reason
    made.notes = [f"{named_numbers('rank', ranks)}: {fact}" for fact, ranks in facts.items()]
    return made


def database_name(export: RankExport) -> str:
    """The file of a rank's events."""
    framework = "mindspore" if export.is_mindspore else "pytorch"
    return f"ascend_{framework}_profiler_{export.rank}.db"


def analysis_name(export: RankExport) -> str:
    """The file of the communication analysis."""
    return "communication_analyzer.db" if export.is_mindspore else "analysis.db"


def _write_rank(export: RankExport, lost: dict[str, dict[int, int | str]], facts: dict[str, list[int]]) -> None:
    """Write the directory of one rank."""
    for name, text in side_files(export).items():
        export.write(name, text)
    output = export.directory / OUTPUT
    make_private(output)
    calls = calls_of(export)
    with new_database(output / database_name(export), EVENTS, INDEXES) as out:
        rank = RankDatabase(export, out)
        write_identity(rank)
        write_steps(rank)
        write_calls(rank, calls)
        free = write_kernels(rank, calls)
        write_counters_of_kernels(rank)
        free = write_parts(rank, calls, free)
        write_host(rank, free)
        write_memory(rank)
        write_counters(rank)
    with new_database(output / analysis_name(export), ANALYSIS) as analysis:
        write_analysis(rank, analysis, calls)
    for table, rows in export.run.ranks[0].rows.items():
        if table not in _WRITTEN and table not in _DERIVED:
            rank.lose(f"table {table}", rows)
    export.written += [f"{OUTPUT}/{name}" for name in (database_name(export), analysis_name(export))]
    for what, rows in rank.left_out.items():
        lost[what][export.rank] = rows
    for what, reason in export.left_out.items():
        lost[what][export.rank] = reason
    for fact in _approximations(rank, bool(calls["group"].null_count())):
        facts[fact].append(export.rank)


def _approximations(rank: RankDatabase, has_unknown_groups: bool) -> list[str]:
    """What a user should know of the files of a rank."""
    known, found = rank.export.facts, []
    if known.get("device") is None:
        found.append("no device is recorded, so the number of the rank stands for it.")
    if known.get("process") is None:
        found.append("no process id is recorded, so the number of the rank stands for it.")
    if known.get("device_kind") == "cpu" and rank.has("collectives"):
        found.append("the communication calls are those of the host, as there is no device.")
    if has_unknown_groups:
        found.append(f"calls of which the group is not recorded are in one group, `{UNKNOWN_GROUP}`.")
    if rank.impossible:
        ranges = plural(rank.impossible, "range")
        found.append(f"{ranges} with an end before the start or beyond all times; the end is moved there.")
    if rank.out.replaced:
        texts = plural(rank.out.replaced, "text")
        found.append(f"a NUL in {texts} is replaced by U+FFFD, as many readers would end the text there.")
    if rank.out.cut:
        found.append(f"{plural(rank.out.cut, 'text')} longer than {LONGEST_TEXT_BYTES >> 20} MiB, cut to that.")
    return found
