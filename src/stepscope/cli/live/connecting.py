"""Options of commands that talk to a manager, or are one."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from stepscope.cli.formatted import described, signed
from stepscope.cli.options import Debug, argument

if TYPE_CHECKING:
    from stepscope.live.control.client import Client
    from stepscope.live.control.security import Security
    from stepscope.live.show.status import Status

T = TypeVar("T")

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


@dataclass(frozen=True)
class ChosenManager:
    """The manager that a command asks, and how, as its options say.

    Args:
        manager: `HOST` or `HOST:PORT`; empty for the usual one.
    """

    manager: str
    token_file: Path | None
    tls_ca: Path | None
    tls_cert: Path | None
    tls_key: Path | None

    def call(self, ask: Callable[[Client], Awaitable[T]], job: str = "") -> T:
        """Ask it one thing. If a job is given, a manager of another one refuses.

        Raises:
            StepscopeError: If it cannot be reached, or refuses.
        """
        from stepscope.live.control.client import call

        return call(ask, self.manager, security=self.security(), job=job)

    def connected(self, job: str = "") -> AbstractAsyncContextManager[Client]:
        """A connection to it, for several questions."""
        from stepscope.live.control.client import connected

        return connected(self.manager, security=self.security(), job=job)

    def security(self) -> Security:
        """What the options say of tokens and certificates.

        Raises:
            StepscopeError: If they cannot be used.
        """
        from stepscope.live.control.security import Security

        return Security.stated(self.token_file, self.tls_cert, self.tls_key, self.tls_ca)


async def status_of(client: Client) -> Status:
    """What the manager knows of its job."""
    from stepscope.live.show.status import from_json

    return from_json(await client.status())


def asks_manager(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the options by which it reaches a manager, and `--debug`; it gets `manager`, a `ChosenManager`."""

    @functools.wraps(command)
    def with_options(**words: object) -> int | None:
        mine = {name: words.pop(name) for name in described(_options)}
        del mine["debug"]
        return command(**words, manager=ChosenManager(**mine))  # type: ignore[arg-type] # as declared below

    own = {name: each for name, each in described(command).items() if name != "manager"}
    return signed(with_options, {**own, **described(_options)})


def _options(
    manager: ManagerAddress = "",
    token_file: TokenFile = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    debug: Debug = False,
) -> None:
    """The options of every such command; `--debug` is read by main()."""
