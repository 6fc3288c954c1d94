"""Files of a host by SSH: SFTP for the files, commands for checksums. Host keys are always checked."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from stepscope.cluster.hosts import PORT, Host
from stepscope.cluster.hosts_fields import parsed_address
from stepscope.cluster.local_place import CHUNK_BYTES, kind_of_mode
from stepscope.cluster.places import HostFailed, Kind, NoAnswer, Ran, Seen
from stepscope.present import printable

CONNECT_S = 20.0
"""Time to reach a host, and again to log in."""
SILENCE_S = 60.0
"""A host that answers nothing for so long has failed."""
KEEPALIVE_S = 15.0

_COMMAND_BYTES = 60_000
"""Longest command: a shell gets it as one argument, for which Linux has room for 128 KiB."""
_SHOWN_CHARACTERS = 1 << 20
_SUM = re.compile(r"\\?([0-9a-f]{64}) [ *](.*)")
_KINDS: Mapping[int, Kind] = {1: "file", 2: "folder", 3: "link"}
_KNOWN = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts")

_CHANGED = (
    "its host key is not the one in known_hosts: it was set up anew, or somebody is in between. Find out which. If it "
    "was set up anew, remove the old key with `ssh-keygen -R ADDRESS` (`[ADDRESS]:PORT` if the port is not 22), then "
    "connect once with ssh and compare the fingerprint"
)
_REVOKED = (
    "its host key is marked as revoked in known_hosts: somebody no longer trusts it. Ask who runs the host before you "
    "connect to it"
)
_UNKNOWN = (
    "its host key is not known. Connect to it once with ssh and compare the fingerprint, or pass a file of host keys "
    "with --known-hosts"
)
_SILENT = "it does not answer, or ended the connection at once. Check the address, the port and the network"
_REASONS: Sequence[tuple[tuple[type[Exception], ...], str]] = (
    (
        (asyncssh.KeyImportError, asyncssh.KeyEncryptionError),
        "the private key cannot be read, or needs a passphrase. Add it to an agent with ssh-add",
    ),
    ((asyncio.TimeoutError, TimeoutError, asyncssh.ConnectionLost), _SILENT),
    ((ConnectionRefusedError,), "it refuses the connection. Check the port and that its SSH server runs"),
)

Answer = TypeVar("Answer")


@dataclass
class Connections:
    """Opens connections to hosts; those through one jump host share the connection to it.

    Args:
        known_hosts: File with the keys of hosts; None for the usual ones.
    """

    known_hosts: Path | None = None
    _jumps: dict[tuple[str, str | None], asyncio.Task[Any]] = field(default_factory=dict)

    async def open(self, host: Host) -> SshPlace:
        """Connect to a host.

        Raises:
            HostFailed: If it cannot be reached, its key is not the known one, or it lets nobody in.
        """
        tunnel = None
        if host.jump:
            task = self._jumps.get((host.jump, host.known_hosts))
            if task is None:
                task = asyncio.ensure_future(self._jump(host))
                self._jumps[host.jump, host.known_hosts] = task
            try:
                tunnel = await task
            except HostFailed as error:
                raise HostFailed(f"the jump host: {error}") from error
        connection = await self._connect(host, tunnel)
        try:
            sftp = await _in_time(connection.start_sftp_client(path_errors="surrogateescape"))
        except HostFailed as error:
            connection.abort()
            raise HostFailed(f"has no file transfer by SFTP ({error})") from error
        return SshPlace(connection, sftp)

    async def close(self) -> None:
        """Close the connections to jump hosts."""
        for task in self._jumps.values():
            with suppress(Exception, asyncio.CancelledError):
                (await task).abort()

    async def _jump(self, host: Host) -> Any:
        return await self._connect(_jump_host(host), None)

    async def _connect(self, host: Host, tunnel: Any) -> Any:
        known = self._known(host)
        options: dict[str, Any] = {
            "known_hosts": known,  # always given: what a configuration says must not switch the check off
            "connect_timeout": CONNECT_S,
            "login_timeout": CONNECT_S,
            "keepalive_interval": KEEPALIVE_S,
            "agent_forwarding": False,
            "x509_trusted_certs": None,
        }
        if host.keys:
            options["client_keys"] = _key_files(host.keys)
        if host.account.password is not None:
            options["password"] = host.account.password.revealed()
        for name, value in (("port", host.port), ("username", host.user), ("tunnel", tunnel)):
            if value is not None:
                options[name] = value
        try:
            return await asyncssh.connect(host.address, **options)
        except Exception as error:
            raise HostFailed(_why(error, known, host)) from None  # its text might hold the address

    def _known(self, host: Host) -> list[str]:
        """The files with keys of hosts that there are.

        Raises:
            HostFailed: If the file that was asked for cannot be read.
        """
        own = Path(host.known_hosts) if host.known_hosts else self.known_hosts
        if own is not None:
            file = own.expanduser()
            if not file.is_file():
                raise HostFailed(f"there is no file of known hosts {file}")
            return [str(file)]
        return [str(file) for name in _KNOWN if (file := Path(name).expanduser()).is_file()] or ["/dev/null"]


class SshPlace:
    """The files of a host that is connected; paths are absolute, or relative to the user's home."""

    def __init__(self, connection: Any, sftp: Any) -> None:
        self._connection = connection
        self._sftp = sftp
        self._sums: bool | None = None

    async def entries(self, folder: str) -> AsyncIterator[Seen]:
        """See `Place`."""
        scan = self._sftp.scandir(folder)
        try:
            while True:
                try:
                    entry = await _in_time(scan.__anext__())
                except StopAsyncIteration:
                    return
                if entry.filename not in (".", ".."):
                    yield _seen(str(entry.filename), entry.attrs)
        finally:
            with suppress(Exception):
                await scan.aclose()

    async def look(self, path: str) -> Seen | None:
        """See `Place`."""
        try:
            return _seen(path.rpartition("/")[2], await _in_time(self._sftp.stat(path)))
        except OSError:
            return None

    async def content(self, path: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """See `Place`."""
        file = await _in_time(self._sftp.open(path, "rb", encoding=None))
        try:
            while start < end:
                piece = await _in_time(file.read(min(CHUNK_BYTES, end - start), start))
                piece = piece[: end - start]  # whatever the host sends
                if not piece:
                    return
                start += len(piece)
                yield piece
        finally:
            with suppress(Exception):
                await asyncio.wait_for(file.close(), SILENCE_S)

    async def state(self, path: str) -> tuple[int, int]:
        """See `Place`."""
        seen = _seen("", await _in_time(self._sftp.lstat(path)))
        if seen.kind != "file":
            raise OSError("is no regular file any more")
        return seen.size, seen.changed_ns

    async def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """See `Place`."""
        found: dict[str, str] = {}
        for batch in _batches(paths):
            ran = await self.run(["sha256sum", "--", *batch], 3600.0)
            lines = [match for line in ran.out.splitlines() if (match := _SUM.fullmatch(line))]
            found |= {match[2]: match[1] for match in lines if match[2] in batch}
        return found

    async def can_checksum(self) -> bool:
        """See `Place`."""
        if self._sums is None:
            try:
                ran = await self.run(["sha256sum", "--", "/dev/null"], SILENCE_S)
            except HostFailed:
                ran = Ran(None, "", "")
            self._sums = ran.status == 0 and _SUM.fullmatch(ran.out.strip()) is not None
        return self._sums

    async def run(self, words: Sequence[str], timeout_s: float) -> Ran:
        """See `Place`: what a shell gets is quoted word by word."""
        process = await _in_time(self._connection.create_process(shlex.join(words), errors="replace"))
        try:
            process.stdin.write_eof()
            both = asyncio.gather(_first(process.stdout), _first(process.stderr))
            out, err = await _in_time(both, timeout_s)
            await _in_time(process.wait_closed())
        finally:
            process.kill()
            process.close()
        return Ran(process.exit_status if process.exit_status != -1 else None, out, err)

    async def close(self) -> None:
        """See `Place`."""
        self._connection.abort()
        with suppress(Exception):
            await asyncio.wait_for(self._connection.wait_closed(), 5)


def _key_files(keys: Sequence[str]) -> list[str]:
    """The private keys that the user named.

    Raises:
        HostFailed: If one does not exist.
    """
    files = [Path(key).expanduser() for key in keys]
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise HostFailed(f"there is no private key {missing}. Check `key` in the hosts file, or --key")
    return list(map(str, files))


def _jump_host(host: Host) -> Host:
    at = parsed_address(host.jump or "")
    if at is None:
        raise HostFailed(f"{printable(host.jump or '')[:80]} is not USER@HOST:PORT. Correct `jump`")
    return Host(at.host, at.host, user=at.user, port=at.port, keys=host.keys, known_hosts=host.known_hosts)


async def _in_time(work: Awaitable[Answer], timeout_s: float = SILENCE_S) -> Answer:
    """What some work for a host comes to.

    Raises:
        HostFailed: If the host is silent or gone.
        OSError: If a single file cannot be had.
        StopAsyncIteration: As the work does.
    """
    try:
        return await asyncio.wait_for(work, timeout_s)
    except (asyncio.TimeoutError, TimeoutError):
        raise NoAnswer(f"did not answer for {timeout_s:.0f} s") from None
    except (asyncssh.SFTPNoConnection, asyncssh.SFTPConnectionLost, asyncssh.DisconnectError, ConnectionError):
        raise HostFailed("the connection broke off") from None
    except asyncssh.SFTPError as error:
        if "onnection" in error.reason:
            raise HostFailed("the connection broke off") from None
        raise OSError(_line(error.reason)) from None
    except asyncssh.ChannelOpenError:
        raise HostFailed("it refuses to open another channel") from None
    except (OSError, HostFailed, StopAsyncIteration):
        raise
    except Exception as error:  # also what a malformed answer leads to
        raise HostFailed(f"the connection failed ({type(error).__name__})") from None


async def _first(stream: Any) -> str:
    """The beginning of what a command prints; a host that prints without end is stopped."""
    kept: list[str] = []
    length = 0
    while length < _SHOWN_CHARACTERS and (piece := await stream.read(1 << 16)):
        kept.append(piece)
        length += len(piece)
    return "".join(kept)[:_SHOWN_CHARACTERS]


def _batches(paths: Sequence[str]) -> list[list[str]]:
    """Paths in groups whose command is short enough."""
    groups: list[list[str]] = [[]]
    length = 0
    for path in paths:
        more = len(shlex.quote(path).encode("utf-8", "surrogateescape")) + 1
        if groups[-1] and length + more > _COMMAND_BYTES:
            groups.append([])
            length = 0
        groups[-1].append(path)
        length += more
    return [group for group in groups if group]


def _seen(name: str, attributes: Any) -> Seen:
    mode, size = attributes.permissions, attributes.size
    kind = kind_of_mode(mode) if mode is not None and mode > 0o7777 else _KINDS.get(attributes.type, "other")
    seconds = attributes.mtime or 0
    return Seen(name, kind, max(int(size or 0), 0), int(seconds) * 1_000_000_000 + int(attributes.mtime_ns or 0))


def _why(error: Exception, known: Sequence[str], host: Host) -> str:
    """Why a host cannot be used, in words of our own, since the library's may hold addresses."""
    if isinstance(error, (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed)):
        state = _known_as(known, host)
        if state:
            return state
        unknown = isinstance(error, asyncssh.HostKeyNotVerifiable)
        return _UNKNOWN if unknown else "it has no method of encryption in common with us"
    if isinstance(error, asyncssh.PermissionDenied):
        given = "the password or any key" if host.account.password is not None else "any key of yours"
        return f"it does not accept {given}. Check the user, the keys (`key`, an agent), or pass --accounts"
    reasons = (text for kinds, text in _REASONS if isinstance(error, kinds))
    cannot = f"it cannot be reached ({error.strerror or type(error).__name__})" if isinstance(error, OSError) else ""
    unforeseen = f"{cannot}. Check the address and the network" if cannot else ""
    return next(reasons, unforeseen or f"the connection failed ({type(error).__name__})")


def _known_as(files: Sequence[str], host: Host) -> str:
    """What is wrong with the key of a host of which some key is noted; empty if none is."""
    port = host.port or PORT
    try:
        keys = asyncssh.read_known_hosts(list(files))
        found = keys.match(host.address, "", port)
        with_port = host.address if port == PORT else f"[{host.address}]:{port}"
        revoked = keys.match(with_port, "", None)[2]  # given a port, revoked keys alone count for nothing
    except (OSError, ValueError):
        return ""
    return _CHANGED if any(found[:2]) else _REVOKED if revoked else ""


def _line(text: str) -> str:
    """A message of a host in one short line of printable characters."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return plain[:200] or "the host refuses it"
