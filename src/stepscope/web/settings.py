"""What the web server is told: which runs to show, where to listen, who may ask, and its bounds."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.paths import shown

HOST, PORT = "127.0.0.1", 8080
ANY_ADDRESS = ("0.0.0.0", "::")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")

EXPOSED = (
    "other machines can reach this address, so clients must give a token. Add --token-file FILE (a new token is "
    "written to it if it does not exist) or set STEPSCOPE_TOKEN. To keep the pages on this machine, leave --host out"
)

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:]+")


@dataclass(frozen=True)
class Bounds:
    """What one client, and all together, may take of the server.

    Args:
        connections: Connections at a time; the one that has been idle longest gives way to a new one.
        sockets: Pages that are open at a time; each holds a WebSocket.
        unseen: Pages at a time that were sent and have not opened their WebSocket; the oldest give way.
        head_bytes: Bytes of a request line with its headers.
        url_bytes: Bytes of the path with the query string.
        headers: Number of headers.
        body_bytes: Bytes of a request's body.
        message_bytes: Bytes of a WebSocket message from a client.
        messages_a_second: WebSocket messages that one client may send on average; more of them wait.
        head_s: Seconds until the headers of a request must be there.
        body_s: Seconds until its body must be there.
        idle_s: Seconds that a connection stays open for a next request.
        unread_s: Seconds in which a client must read some of what is sent to it.
        linger_s: Seconds that the rest of a refused body is read for, so that the client reads the answer.
        guess_s: Seconds that a wrong token is answered after.
        guesses: Wrong tokens that wait for their answer at a time.
    """

    connections: int = 500
    sockets: int = 200
    unseen: int = 50
    head_bytes: int = 32_768
    url_bytes: int = 16_384
    headers: int = 100
    body_bytes: int = 1_000_000
    message_bytes: int = 1_000_000
    messages_a_second: float = 100.0
    head_s: float = 10.0
    body_s: float = 30.0
    idle_s: int = 30
    unread_s: float = 30.0
    linger_s: float = 1.0
    guess_s: float = 1.0
    guesses: int = 16


BOUNDS = Bounds()


@dataclass(frozen=True)
class Settings:
    """What `stepscope serve` does; make it with `checked`.

    Args:
        roots: Directories below which runs are shown, or single files.
        host: Address to listen on.
        port: Port to listen on; 0 takes any free one.
        token: What clients must know; None lets in everybody who reaches the address.
        names: Host names of the server beside its address, e.g. of a reverse proxy.
        use_store: Whether the cache of parsed inputs and answers is used.
        live: Address of the manager of a running job, `here` for that of this machine; empty for none.
        debug: Whether errors are logged with their traceback.
        bounds: What clients may take of the server.
    """

    roots: tuple[Path, ...]
    host: str = HOST
    port: int = PORT
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()
    use_store: bool = True
    live: str = ""
    debug: bool = False
    bounds: Bounds = BOUNDS

    @classmethod
    def checked(
        cls,
        roots: Iterable[Path],
        *,
        host: str = HOST,
        port: int = PORT,
        token: str | None = None,
        names: Iterable[str] = (),
        use_store: bool = True,
        live: str = "",
        debug: bool = False,
    ) -> Settings:
        """Settings that a server can be started with.

        Raises:
            StepscopeError: If a root is missing, the address cannot be used, or it can be reached from other machines
                and there is no token.
        """
        if not 0 <= port <= 65_535:
            raise StepscopeError(f"--port {port}: give a number from 0 to 65535")
        host = host.strip().strip("[]")
        if not is_loopback(host) and token is None:
            raise StepscopeError(f"--host {host}: {EXPOSED}")
        return cls(
            roots=tuple(dict.fromkeys(_root(path) for path in roots)),
            host=host,
            port=port,
            token=token,
            names=tuple(_name(each) for each in names),
            use_store=use_store,
            live=live.strip(),
            debug=debug,
        )

    def hosts(self) -> frozenset[str]:
        """Names by which clients may ask for this server, in lower case."""
        own = {self.host.lower(), *(name.lower() for name in self.names)}
        if is_loopback(self.host) or self.host in ANY_ADDRESS:
            own.update(LOCAL_NAMES)
        if self.host in ANY_ADDRESS:
            own.add(socket.gethostname().lower())
        return frozenset(own)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address: an IP address, or `localhost`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_address(host: str) -> bool:
    """Whether a host is an IP address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _root(path: Path) -> Path:
    try:
        found = path.expanduser().resolve(strict=True)
        if found.is_dir():
            next(found.iterdir(), None)
    except FileNotFoundError:
        raise StepscopeError(f"{shown(str(path))}: no such file or directory. Check the path") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StepscopeError(f"{shown(str(path))}: cannot be read ({reason}). Check its permissions") from None
    return found


def _name(text: str) -> str:
    name = text.strip().strip("[]")
    if not _NAME.fullmatch(name):
        raise StepscopeError(f"--allow-host {shown(text)}: give a host name alone, without http:// and port")
    return name
