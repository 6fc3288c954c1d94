"""The token that clients must know: where it comes from, and what makes a good one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from stepscope.errors import StepscopeError
from stepscope.paths import lies_within, shown

VARIABLE = "STEPSCOPE_TOKEN"
SHORTEST = 16
"""Shorter tokens can be guessed."""

MOST_BYTES = 4096
"""Of a file with a token: more is another file."""


class Stated(NamedTuple):
    """A token, and what is to be done about it.

    Args:
        token: What clients must know; None lets in everybody.
        warning: What the user should know.
        new_file: File that the token is to be written to, see `keep`.
    """

    token: str | None
    warning: str = ""
    new_file: Path | None = None

    def keep(self) -> str:
        """Write a new token to its file, which only its owner can read; what was done, if anything.

        Raises:
            StepscopeError: If the file cannot be created.
        """
        if self.new_file is None or self.token is None:
            return ""
        name = shown(str(self.new_file))
        try:
            descriptor = os.open(self.new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as opened:
                opened.write(self.token + "\n")
        except OSError as error:
            raise StepscopeError(
                f"--token-file {name}: cannot be created ({error.strerror}). Give a file in a directory that exists"
            ) from None
        return f"wrote a new token to {name}"


def stated(literal: str | None, file: Path | None, roots: Iterable[Path] = ()) -> Stated:
    """The token of the options, else of the environment (`STEPSCOPE_TOKEN`).

    Args:
        literal: The token itself.
        file: File with the token. If it does not exist, there is a new token to write to it.
        roots: Directories in which nothing may be written.

    Raises:
        StepscopeError: If both are given, the file cannot be used, or the token is too short.
    """
    if literal is not None and file is not None:
        raise StepscopeError("--token and --token-file are both given; give one of them")
    if file is not None:
        return _in_file(file.expanduser(), roots)
    if literal is not None:
        return Stated(
            _good(literal.strip(), "--token"),
            "other users of this machine can see --token in the list of processes. Use --token-file FILE or "
            f"{VARIABLE} instead",
        )
    text = os.environ.get(VARIABLE, "").strip()
    return Stated(_good(text, VARIABLE) if text else None)


def _good(token: str, where: str) -> str:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise StepscopeError(
            f"{where}: the token must have at least {SHORTEST} characters: ASCII letters, digits and signs, no spaces. "
            "To make one: openssl rand -hex 32"
        )
    return token


def _in_file(file: Path, roots: Iterable[Path]) -> Stated:
    name = f"--token-file {shown(str(file))}"
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        if lies_within(file, roots):
            raise StepscopeError(
                f"{name}: does not exist, and no token is written beside recordings. Give a file in another directory"
            ) from None
        return Stated(secrets.token_urlsafe(32), new_file=file)
    except OSError as error:
        raise StepscopeError(f"{name}: cannot be read ({error.strerror}). Check its permissions") from None
    about = os.fstat(descriptor)  # what is checked is what is read, whatever the path names meanwhile
    if stat.S_ISDIR(about.st_mode):
        os.close(descriptor)
        raise StepscopeError(f"{name}: is a directory. Give a file with the token on one line")
    with os.fdopen(descriptor, "rb") as opened:
        if os.name != "nt" and stat.S_IMODE(about.st_mode) & 0o077:
            raise StepscopeError(
                f"{name}: other users may read or change it. Restrict it to its owner: chmod 600 {shown(str(file))}"
            )
        content = opened.read(MOST_BYTES + 1) or b""
    try:
        text = content.decode("utf-8").strip()
    except UnicodeDecodeError:
        text = ""
    if len(content) > MOST_BYTES or not text or "\n" in text:
        raise StepscopeError(f"{name}: this is not a file with a token. It must contain the token alone, on one line")
    return Stated(_good(text, name))
