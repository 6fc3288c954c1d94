"""The messages and services of `protocol.proto`, compiled when they are first used."""

from __future__ import annotations

from functools import cache
from typing import Any

from stepscope.errors import StepscopeError

PROTOCOL = "stepscope/live/control/protocol.proto"
NEEDED = "live parts beyond the training process need gRPC. Install it: pip install 'stepscope[live]'"


def compiled(path: str) -> tuple[Any, Any]:
    """Messages and services of a `.proto` file, found relative to where packages are imported from.

    Raises:
        StepscopeError: If gRPC or its compiler is not installed.
    """
    try:
        import grpc  # noqa: PLC0415 - only control and switching need it

        pair: tuple[Any, Any] = grpc.protos_and_services(path)
    except (ImportError, NotImplementedError) as error:
        raise StepscopeError(f"{NEEDED} ({error})") from error
    return pair


@cache
def messages() -> Any:
    """Module of the messages."""
    return compiled(PROTOCOL)[0]


@cache
def services() -> Any:
    """Module of the services: stubs, servicers and functions to register them."""
    return compiled(PROTOCOL)[1]
