"""`stepscope view`: a timeline in the Perfetto UI, on this machine alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli import options as shared
from stepscope.cli.notes import note
from stepscope.errors import StepscopeError
from stepscope.timeline.options import KINDS, Kind, TimelineOptions

if TYPE_CHECKING:
    from stepscope.timeline.viewer import TimelineKind, TimelineServer

ONLINE = "https://ui.perfetto.dev"

TimelinePath = Annotated[
    Path,
    shared.argument(
        "PATH", "Timeline file (Perfetto or Chrome JSON, also gzipped), or trace file or directory.", readable=False
    ),
]
KindOption = Annotated[
    Kind | None,
    shared.worded(
        KINDS,
        "--kind",
        help="What the timeline made from a recording shows: phases of steps, or everything. Default: detail.",
        show_default=False,
    ),
]
Target = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Keep the timeline made from a recording in FILE. Default: it is deleted at the end.",
        metavar="FILE",
        show_default=False,
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        help="Port on 127.0.0.1; 0 takes any free one. Default: 9170, or any free one if that is in use.",
        metavar="N",
        show_default=False,
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="Open at this time from the start of the timeline: 12.5s, 340ms or 340ms-350ms.",
        metavar="TIME",
        show_default=False,
    ),
]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track",
        help="Scroll to the track with this name. Give it several times to name groups around the track first.",
        metavar="NAME",
        show_default=False,
    ),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address and open no browser.")]
Force = Annotated[bool, typer.Option("--force", help="Let -o replace a file that stepscope did not write.")]
Online = Annotated[bool, typer.Option("--online", help=f"Serve nothing; print how to open the timeline on {ONLINE}.")]


def view(
    path: TimelinePath,
    *,
    ranks: shared.Ranks = None,
    steps: shared.Steps = None,
    kind: KindOption = None,
    run: shared.OneRun = None,
    output: Target = None,
    force: Force = False,
    at: At = None,
    track: Track = None,
    port: Port = None,
    no_browser: NoBrowser = False,
    online: Online = False,
    layout: shared.Layout = None,
    no_store: shared.NoStore = False,
    engine: shared.EngineOption = None,
    debug: shared.Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Show a timeline in the Perfetto UI, in a browser on this machine and without a network.

    A timeline file is shown as it is. Of anything else that stepscope reads, and of a trace file with --ranks, --steps,
    --kind or --run, a timeline is made first. Only this machine can open the page, and only with the printed address.
    Ctrl-C ends it.
    """
    from stepscope.report.targets import check_target
    from stepscope.timeline.viewer import TimelineServer, find_ui, timeline_kind
    from stepscope.timeline.viewer.moments import parse_moments

    moments = None if at is None else parse_moments(at)
    if not online:
        try:
            find_ui()  # what is missing is reported before anything is read
        except StepscopeError as error:
            raise StepscopeError(f"{error}. Or use --online, which needs no such files") from None
    found = timeline_kind(path)
    chosen = {"--ranks": ranks, "--steps": steps, "--kind": kind, "--run": run, "--layout": layout}
    given = [name for name, value in chosen.items() if value is not None]
    as_it_is = found is not None and not (found == "chrome" and given)
    if as_it_is:
        _refuse_choices(path, found, [*given, *(["--output"] if output is not None else [])])
    elif online and output is None:
        raise StepscopeError(
            f"--online: {path} is a recording, of which a timeline is made. Add -o FILE to say where to keep it"
        )
    if output is not None:
        check_target(output, [path], force=force)
    remedy = (
        "With --kind detail, stepscope view shows overlapping ranges, too." if as_it_is and found == "chrome" else ""
    )
    with ExitStack() as stack:
        file = stack.enter_context(_timeline_file(path, output, as_it_is=as_it_is))
        # made first, since a port in use should be reported before a timeline is made, which may take minutes
        server = (
            None if online else stack.enter_context(TimelineServer(file, title=_title(path), remedy=remedy, port=port))
        )
        if not as_it_is:
            _make(
                path,
                file,
                is_kept=output is not None,
                kind=kind,
                run=run,
                ranks=ranks,
                steps=steps,
                layout=layout,
                use_store=not no_store,
                engine=engine,
            )
        if server is None:
            _explain_online(file)
        else:
            _show(server, moments=moments, track=track or [], opens_browser=not no_browser)


def _title(path: Path) -> str:
    from stepscope.paths import shown

    return shown(path.resolve().name)


def _refuse_choices(path: Path, kind: TimelineKind | None, given: list[str]) -> None:
    """Options that make no sense for a file that is shown as it is."""
    if not given:
        return
    if kind == "chrome":  # only --output can be left: all others make a timeline of it
        raise StepscopeError(
            f"--output: {path} is shown as it is, so no file is made. Add --kind to make a timeline of it"
        )
    raise StepscopeError(
        f"{', '.join(given)}: {path} is a timeline already. Give the recording that it was made from, or leave "
        f"{'this option' if len(given) == 1 else 'these options'} out"
    )


@contextmanager
def _timeline_file(path: Path, output: Path | None, *, as_it_is: bool) -> Iterator[Path]:
    """The file to show; one that nobody asked to keep is in a directory that only this user can read, and deleted."""
    import tempfile

    if as_it_is:
        yield path
    elif output is not None:
        yield output
    else:
        with tempfile.TemporaryDirectory(prefix="stepscope-view-") as directory:
            yield Path(directory) / "timeline.pftrace"


def _make(
    path: Path,
    file: Path,
    *,
    is_kept: bool,
    kind: Kind | None,
    run: str | None,
    ranks: str | None,
    steps: str | None,
    layout: str | None,
    use_store: bool,
    engine: str | None,
) -> None:
    """Make a timeline of a recording."""
    from stepscope.cli.opening import opened
    from stepscope.cli.output import Output
    from stepscope.cli.timeline import tell
    from stepscope.cli.warning_lines import show_warnings
    from stepscope.timeline import write_timeline

    one = opened(
        [path],
        run=run,
        ranks=ranks,
        steps=steps,
        layout=layout,
        use_store=use_store,
        engine=engine,
        table="slices",
    )
    tell(write_timeline(one, file, TimelineOptions(kind or "detail")), quiet=not is_kept)
    show_warnings(Output(aside=True), one, quiet=True)


def _explain_online(file: Path) -> None:
    typer.echo(
        f"1. Open {ONLINE} in a browser.\n"
        '2. Drag this file into the page, or choose it with "Open trace file":\n'
        f"   {file.resolve()}\n"
        "The file is read in the browser and is not uploaded."
    )


def _show(
    server: TimelineServer, *, moments: tuple[int, int | None] | None, track: list[str], opens_browser: bool
) -> None:
    """Print the page's address, open it, and answer until Ctrl-C."""
    from stepscope.timeline.viewer import link_to

    start, end = moments or (None, None)
    url = server.url if moments is None and not track else link_to(server.url, start, end, track, relative=True)
    typer.echo(url)
    sys.stdout.flush()
    has_screen = _has_screen()
    if not has_screen:
        port = server.port
        note(f"from another machine: run ssh -L {port}:127.0.0.1:{port} THIS_MACHINE there, then open the address")
    note("press Ctrl-C to end")
    if opens_browser and has_screen:
        import webbrowser

        webbrowser.open(url)
    try:
        server.serve()
    except KeyboardInterrupt:
        print(file=sys.stderr)  # ends the line with ^C


def _has_screen() -> bool:
    """Whether a browser can show a window; on a machine without a screen, one in the terminal would be started."""
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
