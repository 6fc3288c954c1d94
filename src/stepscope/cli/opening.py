"""Opening a run for a command, with progress on the way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from stepscope.advice.limit_sets import limits_in
from stepscope.analysis.methods.step_points import NamedPoints
from stepscope.cli.notes import note
from stepscope.cli.progress import ProgressBar
from stepscope.compare import Pair as _Pair  # noqa: F401 - registers the limits of comparisons
from stepscope.pages.layout import sentences, with_layout
from stepscope.run import Run, engine_of, open_run
from stepscope.selection import Choice, Selection, parse_selection

NAMED = 3
"""Further runs that are named."""


def opened(
    paths: Sequence[Path],
    *,
    run: str | None = None,
    ranks: str | None = None,
    steps: str | None = None,
    limits: Path | None = None,
    layout: str | None = None,
    use_store: bool,
    engine: str | None = None,
    quiet: bool = False,
    table: str = "",
) -> Run:
    """Open a run under `paths`, to be judged by the limits in a file, with a progress bar if that takes a while.

    If there are several and none is chosen, it is the first that has the `table`, if one is named and any run has it.

    Standard error gets which run it is, if there are several, and which chosen ranks and steps are missing.

    Raises:
        NothingReadable: If no input could be read.
        StepscopeError: If there is no such run, the selection of ranks or steps is empty or no list of numbers, or the
            file of limits is wrong.
    """
    changed = limits_in(limits)  # a mistake in it is reported before the inputs are read
    with ProgressBar(quiet=quiet) as progress:
        opened = open_run(
            list(paths),
            use_store=use_store,
            run=run,
            ranks=ranks,
            steps=steps,
            progress=progress.watch,
            engine=engine_of(engine, "--engine"),
        )
    if run is None and table and not opened.has(table):
        opened = next((other for other in opened.others if other.has(table)), opened)
    names = NamedPoints.of(os.environ)
    if names != NamedPoints():
        opened = opened.with_options({"step_trace": {"environment": names}})
    if changed:
        opened = opened.with_limits(changed)
    if layout is not None:
        opened = with_layout(opened, layout)
        for sentence in sentences(opened.whole.analyse("layout_conflicts")):
            note(sentence)
    if run is None and opened.others:
        note(_which(opened))
    there = [rank.rank for rank in opened.ranks]
    for what, chosen, known in (("rank", ranks, there), ("step", steps, opened.steps if steps else ())):
        absent = missing(chosen, known, f"{what}s")
        if absent.ranges:
            note(f"no {absent.named(what)} in {opened.name}; the other chosen {what}s are used")
    return opened


def _which(run: Run) -> str:
    """That the answers are about one run of several."""
    there = [each.name for each in run.others]
    named = ", ".join(there[:NAMED]) + (", ..." if len(there) > NAMED else "")
    return (
        f"this is run {run.name}, one of {len(there) + 1} runs. Choose with --run NAME; others: {named} "
        "(`stepscope info` lists all)"
    )


def missing(chosen: Choice, there: Sequence[int], what: str) -> Selection:
    """The chosen numbers that are not there.

    An open end such as `7-` asks for what there is, so nothing is missing from it unless it is empty.

    Examples:
        >>> str(missing("0-3,7,9-", [0, 1, 9, 11], "ranks"))
        '2-3,7'
    """
    selection = parse_selection(chosen, what)
    gaps: list[tuple[int, int | None]] = []
    for first, last in () if selection is None else selection.ranges:
        inside = sorted(n for n in set(there) if n >= first and (last is None or n <= last))
        if last is None:
            gaps.extend([] if inside else [(first, None)])
            continue
        bounds = [first - 1, *inside, last + 1]
        gaps.extend((a + 1, b - 1) for a, b in pairwise(bounds) if b - a > 1)
    return Selection(tuple(gaps))
