"""Manager and proxy with all that belongs to them: ways to switch, the detector, escalation, and those who listen."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepscope.live import places
from stepscope.live.control.manager import Manager
from stepscope.live.control.proxy import Proxy
from stepscope.live.control.security import Security
from stepscope.live.control.service import Subscribe
from stepscope.live.control.serving import ManagerServer, ProxyServer
from stepscope.live.control.sockets import PrivateSocket

log = logging.getLogger("stepscope")


@dataclass(frozen=True)
class ManagerSettings:
    """What a manager does.

    Args:
        job: Task id; empty for that of the first worker.
        forgets: Whether to forget the switches that an earlier manager of the job has kept.
        proxy_port: Port of the proxy of its own node; None for none.
        switch_file: Follow this mounted file.
        kubernetes: Follow the ConfigMap of this job, `NAMESPACE/JOB` or `JOB`.
        kubernetes_writes: Whether to write there what was requested elsewhere.
        events: Write events to this file.
        webhook: Send them to this URL.
        metrics_port: Serve Prometheus metrics.
        otlp: Send figures to this collector.
        escalates: Whether to profile suspects and take stacks without being asked.
        checks: Whether to measure devices and links of suspects between two steps as well.
        kineto: Whether to serve processes that were started with KINETO_USE_DAEMON=1.
    """

    job: str = ""
    forgets: bool = False
    host: str = places.LOOPBACK
    port: int = places.MANAGER_PORT
    proxy_port: int | None = places.PROXY_PORT
    security: Security = field(default_factory=Security)
    switch_file: Path | None = None
    kubernetes: str = ""
    kubernetes_writes: bool = False
    events: Path | None = None
    webhook: str = ""
    metrics_port: int | None = None
    otlp: str = ""
    escalates: bool = True
    checks: bool = False
    kineto: bool = False


async def run_manager(settings: ManagerSettings, ready: Callable[[ManagerServer, Manager], None]) -> None:
    """Serve a job until SIGTERM or SIGINT comes.

    Args:
        ready: Called once it listens.

    Raises:
        StepscopeError: If it cannot be started, with the reason.
    """
    from stepscope.live.detect import Detector  # noqa: PLC0415 - loaded by managers only

    manager = Manager(
        places.safe_name(settings.job) if settings.job else "", forgets=settings.forgets, detector=Detector()
    )
    server = ManagerServer(
        manager,
        *views_of(manager),
        host=settings.host,
        port=settings.port,
        security=settings.security,
        services=[lambda grpc_server: _add_data_trace(grpc_server, manager, settings.kubernetes)],
    )
    async with AsyncExitStack() as stack:
        told = stack.enter_context(_told_to_end())
        _listen(manager, settings, stack)
        await server.start()
        stack.push_async_callback(server.stop)
        if settings.escalates:
            _escalate(manager, stack, checks=settings.checks)
        for way in _ways_to_switch(manager, settings):
            _background(way, stack)
        if settings.proxy_port is not None:
            proxy = _proxy(server.local_target, settings.proxy_port)
            node = ProxyServer(proxy, port=settings.proxy_port, option="--proxy-port")
            await node.start()
            stack.push_async_callback(node.stop)
        if settings.kineto:
            await _serve_kineto(stack)
        ready(server, manager)
        await told.wait()


async def run_proxy(
    manager: str,
    *,
    job: str,
    host: str,
    port: int,
    security: Security,
    kineto: bool,
    ready: Callable[[ProxyServer], None],
) -> None:
    """Serve a node until SIGTERM or SIGINT comes.

    Args:
        kineto: Whether to serve processes that were started with KINETO_USE_DAEMON=1.
        ready: Called once it listens.

    Raises:
        StepscopeError: If it cannot be started, with the reason.
    """
    server = ProxyServer(_proxy(manager, port, job, security), host=host, port=port, security=security)
    async with AsyncExitStack() as stack:
        told = stack.enter_context(_told_to_end())
        await server.start()
        stack.push_async_callback(server.stop)
        if kineto:
            await _serve_kineto(stack)
        ready(server)
        await told.wait()


def views_of(manager: Manager) -> tuple[Callable[[], bytes], Subscribe]:
    """What clients of a manager get to see: its status, and its events."""
    from stepscope.live.show import answers  # noqa: PLC0415 - loaded by managers only

    return answers.status(manager), answers.subscribe(manager)


def _proxy(manager: str, port: int, job: str = "", security: Security | None = None) -> Proxy:
    from stepscope.live.capture.stacks import take_stacks  # noqa: PLC0415 - loaded by proxies only

    place = PrivateSocket(places.socket_path(port))
    job = places.safe_name(job) if job else ""
    name = f"{socket.gethostname()}:{port}"
    return Proxy(manager, job=job, place=place, name=name, security=security, take_stacks=take_stacks)


def _escalate(manager: Manager, stack: AsyncExitStack, *, checks: bool) -> None:
    """Let verdicts lead to captures."""
    from stepscope.live.capture.limits import LIMITS  # noqa: PLC0415 - loaded by managers only
    from stepscope.live.control.acting import escalate  # noqa: PLC0415

    stack.callback(escalate(manager, replace(LIMITS, checks=checks)))


async def _serve_kineto(stack: AsyncExitStack) -> None:
    """Let processes that were started with KINETO_USE_DAEMON=1 be profiled.

    Raises:
        NameTaken: If another daemon serves this machine.
    """
    from stepscope.live.capture.dynolog import Daemon  # noqa: PLC0415 - loaded by proxies only

    await stack.enter_async_context(Daemon())


def _listen(manager: Manager, settings: ManagerSettings, stack: AsyncExitStack) -> None:
    """Pass on what happens, as the settings say."""
    from stepscope.live.show import events, metrics, otlp, webhook  # noqa: PLC0415 - loaded by managers only

    if settings.events is not None:
        stack.callback(events.follow(manager, settings.events))
    if settings.webhook:
        secret = os.environ.get(webhook.SECRET_VARIABLE, "")
        stack.callback(webhook.follow(manager, settings.webhook, secret=secret))
    if settings.otlp:
        stack.callback(otlp.follow(manager, settings.otlp))
    if settings.metrics_port is not None:
        _, close = metrics.serve(manager, settings.metrics_port, host=settings.host, security=settings.security)
        stack.callback(close)


def _add_data_trace(grpc_server: Any, manager: Manager, kubernetes: str) -> None:
    """The gRPC service of MindCluster, on the port of the manager."""
    from stepscope.live.switching.data_trace import add_to, serves  # noqa: PLC0415 - loaded by managers only

    add_to(grpc_server, manager.board, lambda asked: bool(manager.job) and serves(manager.job, kubernetes)(asked))


def _ways_to_switch(manager: Manager, settings: ManagerSettings) -> list[Callable[[], Awaitable[None]]]:
    """What follows files and ConfigMaps, once the job and so its state is known."""
    from stepscope.live.switching.following import follow_file  # noqa: PLC0415 - loaded by managers only

    ways: list[Callable[[], Awaitable[None]]] = []
    # a mounted file shows the same ConfigMap a minute later: what was requested meanwhile would be undone
    if settings.switch_file is not None and not settings.kubernetes:
        file = settings.switch_file

        async def file_way() -> None:
            await manager.job_known.wait()
            await follow_file(manager.board, file)

        ways.append(file_way)
    if settings.kubernetes:
        from stepscope.live.switching.config_map import connect, name_of  # noqa: PLC0415
        from stepscope.live.switching.config_map_following import follow_config_map  # noqa: PLC0415

        namespace, _, name = settings.kubernetes.rpartition("/")
        name_of(name)  # a mistake is reported at once
        cluster = connect(namespace or None)

        async def cluster_way() -> None:
            await manager.job_known.wait()
            await follow_config_map(manager.board, cluster, name, writes=settings.kubernetes_writes)

        ways.append(cluster_way)
    return ways


def _background(work: Callable[[], Awaitable[None]], stack: AsyncExitStack) -> None:
    async def guarded() -> None:
        try:
            await work()
        except Exception:
            log.exception("a part of the manager failed; the others go on")

    task = asyncio.create_task(guarded())
    stack.callback(task.cancel)


@contextmanager
def _told_to_end() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    try:
        yield told
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
