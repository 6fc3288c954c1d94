"""The process at the other end of a Unix socket, as the kernel knows it."""

from __future__ import annotations

import os
import socket
import struct
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class Peer:
    """The process at the other end; its number is 0 if it cannot be seen from here, e.g. out of a container."""

    pid: int
    user: int


def peer_of(connected: socket.socket) -> Peer | None:
    """The process at the other end, as the kernel knows it; None if this system cannot tell, where the permissions of
    the socket's directory alone keep others out."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid, user, _group = _CREDENTIALS.unpack(connected.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return Peer(pid, user)


def is_friend(peer: Peer | None) -> bool:
    """Whether a process belongs to this user, or to root."""
    return peer is None or peer.user in (os.getuid(), 0)
