"""The hosts of a job, from a hosts file (YAML, TOML, JSON), a rank table or an accounts file."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from stepscope.cluster.hosts_fields import At, check_fields, parsed_address
from stepscope.cluster.secrets import Account, read_accounts
from stepscope.errors import StepscopeError
from stepscope.present import printable

PORT = 22
COMMAND_TIMEOUT_S = 3600.0
_LARGEST_BYTES = 16 << 20
_PASSWORDS = {"password", "passwd", "pass", "secret"}
_LINE = re.compile(r"\S+")


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A host in a hosts file, or what holds for all of them."""

    address: str | None = None
    name: str | None = None
    server_id: str | None = None
    user: str | None = None
    port: int | None = None
    key: str | list[str] | None = None
    jump: str | None = None
    known_hosts: str | None = None
    source: str | list[str] | None = None
    path: str | None = None
    command: list[str] | None = None
    timeout_s: float | None = None
    stepscope: str | None = None


class _HostsFile(msgspec.Struct, forbid_unknown_fields=True):
    hosts: list[Entry | str]
    defaults: Entry = msgspec.field(default_factory=Entry)


@dataclass(frozen=True)
class Host:
    """One host, and how its files are reached: by SSH, unless it has a `path` or a `command`.

    Args:
        name: How the user knows it; unique.
        address: Where SSH connects to; empty if it does not.
        known_as: Its names in rank tables and in names of files.
        path: Directory of this machine where its files are: a mounted share, or local.
        command: Words of a command of this machine that copies them, with `{host}`, `{source}` and `{target}`.
        sources: Patterns of its directories; empty to take those of the call.
        stepscope: The command that runs stepscope there.
    """

    name: str
    address: str = ""
    known_as: tuple[str, ...] = ()
    user: str | None = None
    port: int | None = None
    keys: tuple[str, ...] = ()
    jump: str | None = None
    known_hosts: str | None = None
    path: Path | None = None
    command: tuple[str, ...] = ()
    timeout_s: float = COMMAND_TIMEOUT_S
    sources: tuple[str, ...] = ()
    stepscope: str = "stepscope"
    account: Account = field(default=Account(None, None), repr=False)

    @property
    def label(self) -> str:
        """What the mapping calls it: as the rank table does, else where it is reached."""
        at = _with_port(self.address, self.port)
        return next((name for name in (*self.known_as, self.address and at) if name), self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """All names of it that are known from the start."""
        every = (self.label, self.name, self.address, *self.known_as)
        return tuple(dict.fromkeys(name for name in every if name))


@dataclass(frozen=True)
class Hosts:
    """The hosts, in order, and the rank table if they were read from one."""

    hosts: tuple[Host, ...]
    rank_table: Path | None = None


def read_hosts(file: Path) -> Hosts:
    """The hosts in a file.

    Raises:
        StepscopeError: If it cannot be read, or something in it is wrong; the text names it.
    """
    content = _decoded(file)
    if isinstance(content.get("server_list"), list):
        listed = [str(one.get("server_id") or "") for one in content["server_list"] if isinstance(one, Mapping)]
        entries: Sequence[Entry | str] = [name for name in listed if name]
        return Hosts(_named(file, [_host(file, one, Entry()) for one in entries]), rank_table=file)
    if isinstance(content.get("cluster"), Mapping):
        accounts = read_accounts(file)
        return Hosts(_named(file, with_accounts([_host(file, name, Entry()) for name in accounts], accounts)))
    if "hosts" not in content:
        raise StepscopeError(
            f"{file}: has neither `hosts`, nor the `server_list` of a rank table. Write a list of hosts, e.g. "
            "`hosts: [10.0.0.1, 10.0.0.2]`; see docs/collect.md"
        )
    _refuse_passwords(file, content)
    check_fields(file, content)
    found = msgspec.convert(content, _HostsFile)
    return Hosts(_named(file, [_host(file, one, found.defaults) for one in found.hosts]))


def with_accounts(hosts: Sequence[Host], accounts: Mapping[str, Account]) -> tuple[Host, ...]:
    """The hosts with the accounts of a file, by any of their names."""
    found = []
    for host in hosts:
        account = next((accounts[name] for name in host.names if name in accounts), None)
        found.append(host if account is None else replace(host, account=account, user=account.user or host.user))
    return tuple(found)


def _decoded(file: Path) -> Mapping[str, Any]:
    try:
        with file.open("rb") as stream:
            text = stream.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise StepscopeError(f"{file}: cannot read the hosts: {error.strerror or error}. Check the path") from None
    if len(text) > _LARGEST_BYTES:
        raise StepscopeError(f"{file}: is larger than {_LARGEST_BYTES >> 20} MiB. Pass the list of hosts")
    try:
        content = _parsed(file, text)
    except ImportError:
        raise StepscopeError(
            f"{file}: reading YAML needs PyYAML. Run `pip install 'stepscope[cluster]'`, or write the hosts as TOML or "
            "JSON"
        ) from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        place = "" if _may_hold_passwords(text) else f" ({' '.join(str(error).split())})"
        raise StepscopeError(f"{file}: is not valid{place}. Check its syntax") from None
    if isinstance(content, list):
        return {"hosts": content}
    if not isinstance(content, Mapping):
        raise StepscopeError(f"{file}: has no list of hosts. Write one, e.g. `hosts: [10.0.0.1]`")
    return content


def _parsed(file: Path, text: bytes) -> Any:
    if file.suffix.lower() == ".json":
        return msgspec.json.decode(text.removeprefix(b"\xef\xbb\xbf"))
    if file.suffix.lower() == ".toml":
        if sys.version_info >= (3, 11):
            import tomllib  # noqa: PLC0415 - few commands read a hosts file
        else:
            import tomli as tomllib  # noqa: PLC0415
        return tomllib.loads(text.decode())
    return msgspec.yaml.decode(text)


def _may_hold_passwords(text: bytes) -> bool:
    """Whether an error about the text might quote a password."""
    return any(word.encode() in text.lower() for word in _PASSWORDS)


def _refuse_passwords(file: Path, content: Any) -> None:
    """Refuse passwords in a file whose permissions nobody looks after."""
    entries = [content.get("defaults"), *content["hosts"]] if isinstance(content.get("hosts"), list) else []
    for entry in entries:
        if isinstance(entry, Mapping) and _PASSWORDS & {str(key).lower() for key in entry}:
            raise StepscopeError(
                f"{file}: a hosts file has no passwords. Use keys or an agent; or put passwords into a file that only "
                "you can read and pass it with --accounts; or use --ask-password"
            )


def _host(file: Path, entry: Entry | str, defaults: Entry) -> Host:
    """A host with the defaults where it states nothing.

    Raises:
        StepscopeError: If it is not said where its files are, or a value cannot be used.
    """
    own = Entry(address=entry) if isinstance(entry, str) else entry
    fields = Entry.__struct_fields__
    one = Entry(**{f: value if (value := getattr(own, f)) is not None else getattr(defaults, f) for f in fields})
    path = None if own.path is None else (file.parent / Path(own.path).expanduser()).absolute()
    command = () if path is not None or one.command is None else tuple(one.command)
    reached = _reached(file, own, path is None and not command)
    address, port = (own.address or "") if reached is None else reached.host, one.port
    if reached is not None and reached.port is not None:
        port = reached.port
    name = own.name or _with_port(address, port) or (str(path) if path is not None else "")
    where = f"{file}: host {name or '?'}"
    if not name:
        raise StepscopeError(f"{where}: has neither address, name nor path. Give one of them")
    for one_name in filter(None, (name, address, own.server_id)):
        if not _LINE.fullmatch(one_name) or not one_name.isprintable():
            raise StepscopeError(f"{where}: a name may not have spaces or control characters. Give it another `name`")
    if one.command is not None and not one.command:
        raise StepscopeError(f"{where}: `command` is empty. List the program and its arguments")
    return Host(
        name=name,
        address="" if reached is None else address,
        known_as=(own.server_id,) if own.server_id else (),
        user=(reached.user if reached is not None else None) or one.user,
        port=port,
        keys=_texts(one.key),
        jump=one.jump,
        known_hosts=one.known_hosts,
        path=path,
        command=command,
        timeout_s=one.timeout_s or COMMAND_TIMEOUT_S,
        sources=_texts(one.source),
        stepscope=one.stepscope or "stepscope",
    )


def _reached(file: Path, own: Entry, by_ssh: bool) -> At | None:
    """Where SSH connects to; None for hosts that are reached otherwise, or state no address.

    Raises:
        StepscopeError: If the address is no address, or contradicts the other fields.
    """
    text = own.address or own.name
    if not by_ssh or not text:
        return None
    at = parsed_address(text)
    if at is None:
        raise StepscopeError(
            f"{file}: host {printable(text)[:80]}: is no address. Write e.g. `10.0.0.1`, `me@node-a:2222` or "
            "`[fd00::1]:2222`"
        )
    for field_name, inside, beside in (("port", at.port, own.port), ("user", at.user, own.user)):
        if inside is not None and beside is not None and inside != beside:
            raise StepscopeError(
                f"{file}: host {printable(text)[:80]}: `{field_name}` is {beside}, but the address has {inside}. "
                "Remove one"
            )
    return at


def _with_port(address: str, port: int | None) -> str:
    """An address as it is written with a port that is not the usual one."""
    if not address or port in (None, PORT):
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _texts(value: str | list[str] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)


def _named(file: Path, hosts: Sequence[Host]) -> tuple[Host, ...]:
    """The hosts, if each has names of its own.

    Raises:
        StepscopeError: If there is none, or two are the same.
    """
    if not hosts:
        raise StepscopeError(f"{file}: lists no host. Add at least one")
    for names in ([host.name for host in hosts], [host.label for host in hosts]):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise StepscopeError(f"{file}: {twice} is listed twice. Remove one, or give each a `name` and `server_id`")
    return tuple(hosts)
