"""`stepscope timeline`: what ran when on all ranks, as a file for Perfetto and other viewers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli import options as shared
from stepscope.errors import StepscopeError
from stepscope.timeline.options import FORMATS, KINDS, Format, Kind, TimelineOptions

if TYPE_CHECKING:
    from stepscope.timeline.options import Written

KindOption = Annotated[
    Kind,
    shared.worded(
        KINDS,
        "--kind",
        help="summary: steps, their phases, and when each rank computed and communicated. detail: all that was "
        "recorded, and where time was lost.",
    ),
]
Graphs = Annotated[
    str | None,
    typer.Option(
        "--graphs",
        help="Only steps of these graphs (models), e.g. 1,3-4. Default: all.",
        metavar="LIST",
        show_default=False,
    ),
]
Merge = Annotated[
    bool, typer.Option("--merge-graphs/--no-merge-graphs", help="Iterations of all graphs on one track, or one each.")
]
Scopes = Annotated[
    bool, typer.Option("--scope-names", help="Also draw the scopes in the names of operators (MindSpore), by level.")
]
FormatName = Annotated[
    Format | None,
    shared.worded(
        FORMATS, "--format", help="Default: by the name of FILE, json for .json and .json.gz.", show_default=False
    ),
]
LimitMb = Annotated[
    float | None,
    typer.Option(
        "--limit-mb",
        help="Maximum size of the file. Steps, communication and the longest ranges are kept first.",
        metavar="MB",
        show_default=False,
    ),
]
Explain = Annotated[
    bool | None,
    typer.Option(
        "--explain/--no-explain",
        help="Also draw what analyses show: idle time by cause, critical path, findings. Default: only if there are at "
        "most a million ranges.",
        show_default=False,
    ),
]
Align = Annotated[
    bool, typer.Option("--align/--no-align", help="Correct the clocks of ranks by the ends of their calls.")
]

Force = Annotated[bool, typer.Option("--force", help="Replace a file that stepscope did not write.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only what was left out, notes and errors.")]


def timeline(
    paths: shared.Paths,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", metavar="FILE")],
    kind: KindOption = "detail",
    ranks: shared.Ranks = None,
    steps: shared.Steps = None,
    graphs: Graphs = None,
    merge_graphs: Merge = True,
    scope_names: Scopes = False,
    explain: Explain = None,
    align: Align = True,
    limit_mb: LimitMb = None,
    form: FormatName = None,
    force: Force = False,
    run: shared.OneRun = None,
    limits: shared.LimitsFile = None,
    no_store: shared.NoStore = False,
    engine: shared.EngineOption = None,
    quiet: Quiet = False,
    debug: shared.Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Write what ran when on all ranks, as one timeline that `stepscope view`, ui.perfetto.dev and others open.

    Ranks are processes, in order and on one clock. Perfetto's format is about a tenth of the size of JSON.
    """
    from stepscope.cli.opening import opened
    from stepscope.cli.output import Output
    from stepscope.cli.warning_lines import show_warnings
    from stepscope.report.targets import check_target
    from stepscope.timeline import write_timeline

    chosen = options_of(kind, graphs, merge_graphs, scope_names, explain, align, limit_mb)
    if str(output) == "-":
        raise StepscopeError("-o -: a timeline is written to a file. Give its name")
    check_target(output, paths, force=force)
    found = opened(
        paths,
        run=run,
        ranks=ranks,
        steps=steps,
        limits=limits,
        use_store=not no_store,
        engine=engine,
        quiet=quiet,
    )
    tell(write_timeline(found, output, chosen, format=form), quiet=quiet)
    show_warnings(Output(aside=True), found, quiet=True)


def options_of(
    kind: Kind,
    graphs: str | None,
    merge_graphs: bool,
    scope_names: bool,
    explain: bool | None,
    align: bool,
    limit_mb: float | None,
) -> TimelineOptions:
    """The options of a command.

    Raises:
        StepscopeError: If one of them is not possible.
    """
    if limit_mb is not None and not 0 < limit_mb < 1e9:
        raise StepscopeError(f"--limit-mb {limit_mb:g}: give a size above 0 and below 1e9")
    return TimelineOptions(
        kind,
        graphs,
        merge_graphs,
        scope_names,
        None if limit_mb is None else max(int(limit_mb * 1e6), 1),
        align,
        explain,
    )


def tell(written: Written, *, quiet: bool) -> None:
    """Say what was written, and what was not."""
    from stepscope import present
    from stepscope.cli.notes import note
    from stepscope.paths import shown

    if not quiet:
        ranks = len({rank for rank, _, _ in written.events if rank >= 0})
        held = f"{present.plural(written.total_events, 'event')} of {present.plural(ranks, 'rank')}"
        tracks, size = present.plural(written.tracks, "track"), present.size(written.size_bytes)
        note(f"wrote {shown(written.file)} ({held} on {tracks}, {size})")
    note_rest(written)


def note_rest(written: Written) -> None:
    """Print what was left out, and what else a user should know of the file, to standard error."""
    from stepscope.cli.notes import note

    for title, why in written.left_out.items():
        note(f"left out of {title}: {why}")
    for sentence in written.notes:
        note(sentence)
