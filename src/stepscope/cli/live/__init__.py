"""`stepscope live`: watch and switch a running job."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from stepscope.cli.live.capture import capture
from stepscope.cli.live.check import check
from stepscope.cli.live.detect import detect
from stepscope.cli.live.manager import manager
from stepscope.cli.live.proxy import proxy
from stepscope.cli.live.stacks import stacks
from stepscope.cli.live.status import status
from stepscope.cli.live.switch import switch
from stepscope.cli.live.timeline import timeline
from stepscope.cli.live.watch import watch
from stepscope.cli.options import Command, summary_of
from stepscope.errors import StepscopeError

COMMANDS: tuple[Callable[..., Any], ...] = (
    manager,
    proxy,
    status,
    switch,
    watch,
    timeline,
    detect,
    capture,
    stacks,
    check,
)
"""In the order of the help."""

HELP = "Watch a running job: switch light tracing on and off, find slow ranks, hosts and links."

live = typer.Typer(
    help=HELP,
    short_help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _explained(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that says what to install if the extra `live` is missing."""

    @wraps(command)
    def explained(*args: Any, **options: Any) -> Any:
        try:
            return command(*args, **options)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("grpc", "grpc_tools"):
                raise
            raise StepscopeError(
                f"this command needs gRPC. Install it: pip install 'stepscope[live]' ({error})"
            ) from error

    return explained


for _command in COMMANDS:
    live.command(cls=Command, short_help=summary_of(_command))(_explained(_command))
