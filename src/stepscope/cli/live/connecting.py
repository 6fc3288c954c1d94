"""Options of commands that talk to a manager, or are one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stepscope.cli.options import argument

MOST_PORT = 65_535

ManagerAddress = Annotated[
    str,
    typer.Option(
        "--manager",
        help="Manager of the job, HOST or HOST:PORT. Default: STEPSCOPE_LIVE_MANAGER, else this node's.",
        metavar="HOST:PORT",
        show_default=False,
    ),
]
JobArgument = Annotated[
    str,
    argument("[JOB]", "Task id of the job. Default: the one that the manager serves; a manager of another refuses."),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        help="File with the secret that manager, proxies and clients share. Default: STEPSCOPE_LIVE_TOKEN_FILE, else "
        "the secret in STEPSCOPE_LIVE_TOKEN.",
        metavar="FILE",
        show_default=False,
    ),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", help="Certificate of this side (PEM).", metavar="FILE", show_default=False)
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", help="Private key of the certificate.", metavar="FILE", show_default=False)
]
TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        help="Certificates (PEM) that sign those of the other side. A manager then demands one of its clients.",
        metavar="FILE",
        show_default=False,
    ),
]

Kineto = Annotated[
    bool,
    typer.Option(
        "--kineto",
        help="Also serve processes of this node that were started with KINETO_USE_DAEMON=1, in place of dynolog.",
    ),
]
