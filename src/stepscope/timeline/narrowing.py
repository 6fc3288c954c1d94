"""What a timeline shows of a run: options that cannot be, the steps of some graphs, and what is drawn unasked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.paths import input_around, shown
from stepscope.run import Run
from stepscope.selection import named_numbers, parse_selection
from stepscope.timeline.options import FORMATS, KINDS, MOST_EXPLAINED, Format, TimelineOptions


def check(run: Run, file: Path, options: TimelineOptions, form: Format) -> None:
    """Check that a timeline of a run may be written to a file.

    Raises:
        StepscopeError: If an option is not possible, or the file lies in an input of the run.
    """
    if options.kind not in KINDS:
        raise StepscopeError(f"{options.kind!r} is no kind of timeline. Choose {' or '.join(KINDS)}")
    if form not in FORMATS:
        raise StepscopeError(f"{form!r} is no format of timelines. Choose {' or '.join(FORMATS)}")
    if options.limit_bytes is not None and options.limit_bytes <= 0:
        raise StepscopeError("The limit of the file's size must be above 0")
    around = input_around(file, {rank.path for rank in run.whole.ranks})
    if around is not None:
        raise StepscopeError(
            f"{shown(file)}: this is in the recording {shown(around)}, into which nothing is written. Give "
            "another place"
        )
    if file.is_dir():
        raise StepscopeError(f"{shown(file)}: this is a directory. Give the name of a file")


def explained(run: Run, options: TimelineOptions) -> tuple[TimelineOptions, list[str]]:
    """The options with `explain` decided, and what to say of that."""
    if options.explain is not None:
        return options, []
    explain = is_soon_explained(run)
    untold = (
        "Idle time by cause, the critical path and findings are left out: in so large a recording they take longer "
    )
    notes = [f"{untold}than all else. --explain adds them."] if not explain and options.kind == "detail" else []
    return replace(options, explain=explain), notes


def is_soon_explained(run: Run) -> bool:
    """Whether what explains its idle time takes about as long as the rest of its timeline."""
    return sum(rank.rows.get(name, 0) for rank in run.ranks for name in ("slices", "kernels")) <= MOST_EXPLAINED


def with_graphs(run: Run, options: TimelineOptions) -> Run:
    """The run with the steps of the wanted graphs only.

    Raises:
        StepscopeError: If graphs are wanted, and none of them has steps.
    """
    chosen = parse_selection(options.graphs, "graphs")
    if chosen is None:
        return run
    known = run.table("steps").select("graph", "step").drop_nulls().unique().sort("graph", "step").collect()
    there = known["graph"].unique().sort()
    if there.is_empty():
        raise StepscopeError(f"{shown(run.path)}: its steps are not counted by graph (model). Leave out «--graphs»")
    steps = known.filter(chosen.expression("graph"))["step"].unique().sort()
    if steps.is_empty():
        raise StepscopeError(
            f"{shown(run.path)}: no step is of {chosen.named('graph')}; it has {named_numbers('graph', there)}. "
            "Choose from them"
        )
    return run.select(steps=steps.to_list())
