"""Passwords: where they may come from, and a type that never shows one."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stepscope.errors import StepscopeError

_LARGEST_BYTES = 16 << 20
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Secret:
    """A text that no message, log or `repr` shows.

    Examples:
        >>> f"{Secret('swordfish')} {Secret('swordfish')!r}"
        '*** ***'
    """

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def revealed(self) -> str:
        """The text, for the library that logs in."""
        return self._text

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> Any:
        raise TypeError("a secret is not written anywhere")


@dataclass(frozen=True)
class Account:
    """Who logs in on a host."""

    user: str | None
    password: Secret | None


class _Login(msgspec.Struct):
    user: str | None = None
    passwd: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return "_Login(***)"


class _Accounts(msgspec.Struct):
    cluster: dict[str, _Login]


def read_accounts(file: Path) -> dict[str, Account]:
    """The accounts in a file `{"cluster": {ADDRESS: {"user": ..., "passwd": ...}}}`, by address.

    Raises:
        StepscopeError: If it cannot be read, is not such a file, or others than its owner may read it.
    """
    text = _private_bytes(file)
    try:
        logins = msgspec.json.decode(text, type=_Accounts).cluster
    except (msgspec.MsgspecError, UnicodeDecodeError):  # whose text might quote the file
        raise StepscopeError(
            f'{file}: is not an accounts file. Write JSON like {{"cluster": {{"10.0.0.1": {{"user": "train", '
            '"passwd": "..."}}}'
        ) from None
    return {address: _account(login) for address, login in logins.items()}


def _account(login: _Login) -> Account:
    text = login.passwd if login.passwd is not None else login.password
    return Account(login.user, Secret(text) if text else None)


def _private_bytes(file: Path) -> bytes:
    """The content of a file that only its owner, who runs this process, can read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise StepscopeError(f"{file}: cannot be read: {error.strerror}. Check the path and its permissions") from None
    with os.fdopen(descriptor, "rb") as stream:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise StepscopeError(f"{file}: is not a file. Pass the accounts file itself")
        if info.st_mode & _OTHERS or info.st_uid not in (os.geteuid(), 0):
            raise StepscopeError(
                f"{file}: holds passwords, but others than you can read it (mode {stat.S_IMODE(info.st_mode):o}). "
                f"Run `chmod 600 {file}`, and change the passwords if others may have seen them"
            )
        return stream.read(_LARGEST_BYTES)
