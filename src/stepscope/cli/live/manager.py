"""`stepscope live manager`: serve a job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.live.connecting import MOST_PORT, Kineto, TlsCa, TlsCert, TlsKey, TokenFile
from stepscope.cli.options import Debug
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.live.control.manager import Manager
    from stepscope.live.control.serving import ManagerServer


def manager(
    job: Annotated[
        str,
        typer.Option(
            "--job",
            help="Task id of the job. Default: MINDX_TASK_ID, else that of the first worker that registers.",
            metavar="ID",
            show_default=False,
            envvar="MINDX_TASK_ID",
            show_envvar=False,
        ),
    ] = "",
    forget: Annotated[
        bool,
        typer.Option("--forget", help="Forget the switches that an earlier manager of a job of this name has kept."),
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. Beyond 127.0.0.1, a token or mutual TLS is required.", metavar="ADDRESS"
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port for proxies and clients; 0 chooses one.", metavar="N", min=0, max=MOST_PORT)
    ] = 9601,
    proxy: Annotated[bool, typer.Option(help="Also serve the workers of this node.")] = True,
    proxy_port: Annotated[
        int, typer.Option(help="Port of the proxy of this node.", metavar="N", min=1, max=MOST_PORT)
    ] = 9602,
    switch_file: Annotated[
        Path | None,
        typer.Option(
            help="Follow this mounted file with the switches (profilingSwitch). Default: STEPSCOPE_LIVE_SWITCH_FILE, "
            "else MindCluster's if its directory exists.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    kubernetes: Annotated[
        str,
        typer.Option(
            help="Follow the ConfigMap data-trace-JOB in the cluster.", metavar="[NAMESPACE/]JOB", show_default=False
        ),
    ] = "",
    kubernetes_writes: Annotated[
        bool,
        typer.Option("--kubernetes-writes", help="Also write the switches there when they are changed in another way."),
    ] = False,
    events: Annotated[
        Path | None, typer.Option(help="Write events as JSON lines to this file.", metavar="FILE", show_default=False)
    ] = None,
    webhook: Annotated[
        str,
        typer.Option(
            help="Send events to this URL. STEPSCOPE_WEBHOOK_SECRET is sent as header Authorization.",
            metavar="URL",
            show_default=False,
        ),
    ] = "",
    metrics_port: Annotated[
        int | None,
        typer.Option(
            help="Serve Prometheus metrics on this port.", metavar="N", min=0, max=MOST_PORT, show_default=False
        ),
    ] = None,
    otlp: Annotated[
        str,
        typer.Option(
            help="Send figures and verdicts to this OpenTelemetry collector.", metavar="URL", show_default=False
        ),
    ] = "",
    escalate: Annotated[
        bool, typer.Option(help="When a rank is slow or hangs, profile it and take stacks without being asked.")
    ] = True,
    active_checks: Annotated[
        bool,
        typer.Option("--active-checks", help="Also measure devices and links of suspects, between two steps."),
    ] = False,
    kineto: Kineto = False,
    token_file: TokenFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    tls_ca: TlsCa = None,
    debug: Debug = False,  # noqa: ARG001 - read by main()
) -> None:
    """Serve a running job: its switches, and the search for slow ranks. Runs until it is stopped (Ctrl-C, SIGTERM).

    Start it once per job, on any node, before or during training; for a job on one node, nothing else is needed. On
    each further node, start `stepscope live proxy --manager HOST`. Training never waits for either.
    """
    import asyncio

    from stepscope.cli.live.logging_to_stderr import log_to_stderr
    from stepscope.live.composing import ManagerSettings, run_manager
    from stepscope.live.control.security import Security
    from stepscope.live.places import switch_file as usual_switch_file

    if kubernetes and switch_file is not None:
        raise StepscopeError(
            "--switch-file and --kubernetes: give one of them. The file shows the ConfigMap with a delay, so following "
            "both would undo what was switched meanwhile"
        )
    settings = ManagerSettings(
        job=job,
        forgets=forget,
        host=host,
        port=port,
        proxy_port=proxy_port if proxy else None,
        security=Security.stated(token_file, tls_cert, tls_key, tls_ca),
        switch_file=switch_file.absolute() if switch_file is not None else usual_switch_file(),
        kubernetes=kubernetes,
        kubernetes_writes=kubernetes_writes,
        events=events,
        webhook=webhook,
        metrics_port=metrics_port,
        otlp=otlp,
        escalates=escalate,
        checks=active_checks,
        kineto=kineto,
    )
    log_to_stderr()
    asyncio.run(run_manager(settings, _ready))


def _ready(server: ManagerServer, manager: Manager) -> None:
    from stepscope.cli.notes import note

    serves = f"job {manager.job}" if manager.job else "the job of the first worker that registers"
    note(f"manager of {serves} listens on {server.host}:{server.port}")
