"""Ports for servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port on loopback that nobody uses at the moment."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])
