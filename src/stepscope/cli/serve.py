"""`stepscope serve`: all runs below some directories as pages in a browser, and as JSON for programs."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli import options as shared
from stepscope.cli.notes import note
from stepscope.paths import shown

if TYPE_CHECKING:
    from stepscope.web.serving import Listener
    from stepscope.web.signing_in import Door

WAITS_S = 1.0
"""Seconds that the process waits for questions that are still being answered when it ends."""

Roots = Annotated[
    list[Path],
    shared.argument("DIR...", "Directories below which runs are shown, or trace files.", readable=False),
]
Host = Annotated[
    str,
    typer.Option(
        "--host",
        help="Address to listen on; 0.0.0.0 is all. One that other machines can reach needs a token.",
        metavar="ADDRESS",
    ),
]
Port = Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes any free one.", metavar="N")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="File with the token that browsers and programs must give; only its owner may read it. If it does not "
        "exist, a new token is written to it.",
        metavar="FILE",
        show_default=False,
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        help="The token itself, which other users of this machine can then see; better use --token-file or set "
        "STEPSCOPE_TOKEN.",
        metavar="TEXT",
        show_default=False,
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        help="Another host name of this server, e.g. that of a reverse proxy (repeatable).",
        metavar="NAME",
        show_default=False,
    ),
]
Live = Annotated[
    str,
    typer.Option(
        "--live",
        help="Also show the running job of this manager: HOST or HOST:PORT, or `here` for this machine's (secret: "
        "STEPSCOPE_LIVE_TOKEN_FILE). With a token, pages can also switch and profile.",
        metavar="MANAGER",
        show_default=False,
    ),
]
Open = Annotated[bool, typer.Option("--open", help="Open the first page in a browser.")]


def serve(
    directories: Roots,
    *,
    host: Host = "127.0.0.1",
    port: Port = 8080,
    token_file: TokenFile = None,
    token: Token = None,
    allow_host: AllowHost = None,
    live: Live = "",
    open_it: Open = False,
    no_store: shared.NoStore = False,
    debug: shared.Debug = False,
) -> None:
    """Show all runs below some directories as pages in a browser, and answer programs under /api/v1.

    New and changed runs appear by themselves. Nothing is written into the directories. By default, only this machine
    can open the pages; with a token, others can as well. Ctrl-C ends it.
    """
    from stepscope.cli import EXIT_OK, EXIT_TERMINATED
    from stepscope.web.serving import Listener
    from stepscope.web.serving import serve as answer
    from stepscope.web.settings import Settings
    from stepscope.web.tokens import stated

    secret = stated(token, token_file, directories)
    settings = Settings.checked(
        directories,
        host=host,
        port=port,
        token=secret.token,
        names=allow_host or (),
        use_store=not no_store,
        live=live,
        debug=debug,
    )
    with Listener(settings) as listener:
        if secret.warning:
            note(f"warning: {secret.warning}")
        if done := secret.keep():  # nothing is written before all that may be refused was checked
            note(done)
        try:
            answer(listener, lambda door: _ready(listener, door, opens=open_it, named=token_file))
        except KeyboardInterrupt:
            print(file=sys.stderr)  # ends the line with ^C
            _end_within(WAITS_S, EXIT_OK)
        except Exception:
            raise
        except BaseException:  # SIGTERM
            _end_within(WAITS_S, EXIT_TERMINATED)
            raise


def _end_within(seconds: float, code: int) -> None:
    """End the process by then, also if a question is still being computed: compiled code cannot be interrupted."""

    def end() -> None:
        time.sleep(seconds)
        os._exit(code)

    threading.Thread(target=end, daemon=True).start()


def _ready(listener: Listener, door: Door, *, opens: bool, named: Path | None) -> None:
    """Print where the pages are, and what one needs to know to open them."""
    settings = listener.settings
    typer.echo(listener.url)
    sys.stdout.flush()
    note(f"shows the runs below {', '.join(shown(str(root)) for root in settings.roots)}")
    if not door.is_open:
        note(f"browsers ask for the token{f' in {shown(str(named))}' if named is not None else ''}")
    if listener.is_exposed:
        note(
            "warning: the token and all pages travel unencrypted. In a network that others share, listen on 127.0.0.1 "
            "and use SSH or a reverse proxy with TLS"
        )
    elif not _has_screen():
        port = settings.port
        note(f"from another machine: run ssh -L {port}:127.0.0.1:{port} THIS_MACHINE there, then open the address")
    note("press Ctrl-C to end")
    if opens:
        import webbrowser

        # other users see the command line of a browser: the text in it is good for once only
        webbrowser.open(listener.url if door.is_open else f"{listener.url}?token={door.one_time()}")


def _has_screen() -> bool:
    """Whether a browser can show a window."""
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
