"""`stepscope live proxy`: serve the workers of one node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.connecting import MOST_PORT, Kineto, TlsCa, TlsCert, TlsKey, TokenFile
from stepscope.cli.options import Debug

if TYPE_CHECKING:
    from stepscope.live.control.serving import ProxyServer


def proxy(
    manager: Annotated[
        str,
        typer.Option(
            help="Manager of the job. Default: STEPSCOPE_LIVE_MANAGER, else MASTER_ADDR or MS_SCHED_HOST, else this "
            "node.",
            metavar="HOST[:PORT]",
            show_default=False,
        ),
    ] = "",
    job: Annotated[
        str,
        typer.Option(
            help="Task id of the job; others are refused. Default: that of the manager.",
            metavar="ID",
            show_default=False,
        ),
    ] = "",
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on, for workers that do not use the Unix socket. Beyond 127.0.0.1, a token or "
            "mutual TLS is required.",
            metavar="ADDRESS",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", metavar="N", min=1, max=MOST_PORT)] = 9602,
    kineto: Kineto = False,
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Connect the workers of this node to the manager of their job. Runs until it is stopped (Ctrl-C, SIGTERM).

    Start it once on each node other than the manager's. It may be started before or after the manager and the training,
    and connects again whenever the manager was away.
    """
    import asyncio

    from stepscope.cli.live.logging_to_stderr import log_to_stderr
    from stepscope.live.composing import run_proxy
    from stepscope.live.control.client import stated_manager, target_of
    from stepscope.live.control.security import Security

    log_to_stderr()
    asyncio.run(
        run_proxy(
            target_of(manager or stated_manager()),
            job=job,
            host=host,
            port=port,
            security=Security.stated(token_file, tls_cert, tls_key, tls_ca),
            kineto=kineto,
            ready=_ready,
        )
    )


def _ready(server: ProxyServer) -> None:
    from stepscope.cli.notes import note

    status = server.proxy.status()
    note(f"proxy of node {status.name} serves workers; manager: {status.manager}")
