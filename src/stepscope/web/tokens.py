"""The token that clients must know: where it comes from, and what makes a good one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from stepscope.errors import StepscopeError
from stepscope.paths import shown

VARIABLE = "STEPSCOPE_TOKEN"
SHORTEST = 16
"""Shorter tokens can be guessed."""

MOST_BYTES = 4096
"""Of a file with a token: more is another file."""


def stated(literal: str | None, file: Path | None, roots: Iterable[Path] = ()) -> tuple[str | None, list[str]]:
    """The token of the options, else of the environment (`STEPSCOPE_TOKEN`), and what to print about it.

    Args:
        literal: The token itself.
        file: File with the token. If it does not exist, it is created with a new token.
        roots: Directories in which nothing may be written.

    Raises:
        StepscopeError: If both are given, the file cannot be used, or the token is too short.
    """
    if literal is not None and file is not None:
        raise StepscopeError("--token and --token-file are both given; give one of them")
    if file is not None:
        return _in_file(file.expanduser(), roots)
    if literal is not None:
        return _good(literal.strip(), "--token"), [
            "warning: other users of this machine can see --token in the list of processes. Use --token-file FILE or "
            f"{VARIABLE} instead"
        ]
    text = os.environ.get(VARIABLE, "").strip()
    return (_good(text, VARIABLE) if text else None), []


def _good(token: str, where: str) -> str:
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise StepscopeError(
            f"{where}: the token must have at least {SHORTEST} characters: ASCII letters, digits and signs, no spaces. "
            "To make one: openssl rand -hex 32"
        )
    return token


def _in_file(file: Path, roots: Iterable[Path]) -> tuple[str, list[str]]:
    name = f"--token-file {shown(str(file))}"
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return _new(file, name, roots)
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
    return _good(text, name), []


def _new(file: Path, name: str, roots: Iterable[Path]) -> tuple[str, list[str]]:
    place = file.parent.resolve()
    if any(place == root or root in place.parents for root in (root.resolve() for root in roots)):
        raise StepscopeError(
            f"{name}: does not exist, and no token is written beside recordings. Give a file in another directory"
        )
    token = secrets.token_urlsafe(32)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise StepscopeError(f"{name}: cannot be created ({error.strerror}). Give a file that can be") from None
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(token + "\n")
    return token, [f"wrote a new token to {shown(str(file))}"]
