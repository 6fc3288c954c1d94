"""The directory that files are collected into: nothing is ever overwritten, and no name leads out of it.

Files grow under `.stepscope-collect/parts` and are linked to their place when they are whole and checked. Each step
into a directory is made by its descriptor and follows no link, so that also a directory that is exchanged meanwhile for
a link leads nowhere. What has arrived is noted per host in `.stepscope-collect/host-<id>.jsonl`.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from stepscope.errors import StepscopeError
from stepscope.sources.collected import ABOUT, OWN

MAPPING = "host_ips_mapping.txt"
_BESIDE = (OWN, MAPPING)
"""What an attempt leaves of which nothing arrived; another one may start where it did."""
_LARGEST_BYTES = 1 << 30
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_Noted = TypeVar("_Noted", bound=msgspec.Struct)


class Arrived(msgspec.Struct, frozen=True):
    """A file that has arrived: its place, size and time of change on the host, its SHA-256, and how it was checked."""

    target: str
    size: int
    changed_ns: int
    sha256: str
    check: str


class About(msgspec.Struct, frozen=True):
    """What a directory was made by: to be gone on with by `--resume`."""

    version: int = 1
    layout: str = ""


class Part(msgspec.Struct, frozen=True):
    """What a file that has not wholly arrived is a part of."""

    target: str
    size: int
    changed_ns: int


class Landing:
    """A directory that takes files.

    Raises:
        StepscopeError: If there is something already and it is not to be gone on with, or it cannot be made.
    """

    def __init__(self, directory: Path, *, resume: bool) -> None:
        self.directory = directory
        self._reserved = 0
        try:
            self._prepare(resume)
        except OSError as error:
            raise StepscopeError(
                f"{directory}: cannot be written: {error.strerror or error}. Choose a directory that you can write to"
            ) from error

    def _prepare(self, resume: bool) -> None:
        directory = self.directory
        made_here = (directory / OWN / ABOUT).is_file()
        if made_here and not resume and any(each.name not in _BESIDE for each in directory.iterdir()):
            raise StepscopeError(f"{directory}: holds what was collected before. Pass --resume to go on with it")
        if not made_here and directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            what = "was not made by `stepscope collect`" if resume else "is there already, and nothing is overwritten"
            raise StepscopeError(f"{directory}: {what}. Choose a new directory")
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._own = self._folder((OWN,))
        self._parts = self._folder((OWN, "parts"))
        self._lock = os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._own)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StepscopeError(f"{directory}: another `stepscope collect` is at work on it. Wait for it") from None
        for left in (directory / OWN).glob("quarantine-*"):  # by a call that was killed
            shutil.rmtree(left, ignore_errors=True)
        about = _decoded(self._read(self._own, ABOUT), About)
        self.layout = "" if about is None else about.layout
        if about is None:
            self._replace(ABOUT, msgspec.json.encode(About()))

    def close(self) -> None:
        """Let other processes at it."""
        for descriptor in (self._lock, self._parts, self._own, self._root):
            os.close(descriptor)

    def decide(self, layout: str) -> None:
        """Note the layout, which stays for the next time."""
        self.layout = layout
        self._replace(ABOUT, msgspec.json.encode(About(layout=layout)))

    def reserve(self, size: int, free_bytes: int) -> bool:
        """Reserve room on the disk for what comes of any host; False if less than `free_bytes` would stay free."""
        room = os.fstatvfs(self._root)
        if room.f_bavail * room.f_frsize - self._reserved - size < free_bytes:
            return False
        self._reserved += size
        return True

    def release(self, size: int) -> None:
        """Give back room that was reserved: it is taken by now, or not needed."""
        self._reserved -= size

    def quarantine(self, host: int) -> Path:
        """A new directory for what a command copies, to be looked at before anything of it is taken."""
        name = f"quarantine-{host}-{os.getpid()}"
        os.mkdir(name, 0o700, dir_fd=self._own)
        return self.directory / OWN / name

    def mapping(self) -> dict[str, int]:
        """The ids of hosts by name, as noted earlier."""
        lines = self._read(self._root, MAPPING).decode("utf-8", "replace").splitlines()
        pairs = (line.rpartition(" ") for line in lines)
        return {name: int(number) for name, _, number in pairs if name and number.isdecimal() and len(number) < 10}

    def write_mapping(self, ids: Sequence[tuple[str, int]]) -> None:
        """Note the ids of hosts: readable by the owner only, since it holds the addresses."""
        text = "".join(f"{name} {number}\n" for name, number in ids)
        self._write_new(self._root, MAPPING, text.encode(), 0o600, replace=True)

    def add_file(self, name: str, content: bytes) -> bool:
        """Add a small file of ours, unless there is one with another content; returns whether it is there now."""
        if (there := self._read(self._root, name)) or self._exists(self._root, name):
            return there == content
        self._write_new(self._root, name, content, 0o600)
        return True

    def arrived(self, host: int) -> dict[str, Arrived]:
        """What has arrived of a host, by target; damaged lines count for nothing."""
        lines = self._read(self._own, f"host-{host}.jsonl").splitlines()
        return {one.target: one for line in lines if (one := _decoded(line, Arrived)) is not None}

    def state_of(self, target: Sequence[str]) -> tuple[int, int] | None:
        """The size and the time of change of the file at a place; None if nothing is there, size -1 if it is no file.

        Raises:
            OSError: If the place cannot be looked at.
        """
        try:
            folder = self._folder(target[:-1], make=False)
        except FileNotFoundError:
            return None
        try:
            info = os.stat(target[-1], dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        finally:
            os.close(folder)
        return info.st_size if stat.S_ISREG(info.st_mode) else -1, info.st_mtime_ns

    def sha256_of(self, target: Sequence[str]) -> str:
        """The SHA-256 of the file at a place."""
        folder = self._folder(target[:-1], make=False)
        try:
            return _hashed(os.open(target[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder))[
                0
            ].hexdigest()
        finally:
            os.close(folder)

    def part(self, host: int, wanted: Part, *, go_on: bool) -> GrowingPart:
        """The part of a file that is there, to be gone on with if it is of the same file; else a new one."""
        return GrowingPart(self, self._parts, host, wanted, go_on=go_on)

    def settle(self, host: int, name: str, arrived: Arrived) -> bool:
        """Put a whole part into its place; False if something is there already."""
        target = arrived.target.split("/")
        folder = self._folder(target[:-1])
        try:
            os.utime(name, ns=(arrived.changed_ns, arrived.changed_ns), dir_fd=self._parts)
            self._link(name, folder, target[-1])
        except FileExistsError:
            return False
        finally:
            os.close(folder)
        self.forget_part(name)
        line = msgspec.json.encode(arrived) + b"\n"
        journal = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(f"host-{host}.jsonl", journal, 0o600, dir_fd=self._own), "ab") as out:
            out.write(line)
        return True

    def forget_part(self, name: str) -> None:
        """Remove a part."""
        for one in (name, f"{name}.json"):
            with suppress(FileNotFoundError):
                os.unlink(one, dir_fd=self._parts)

    def _link(self, part: str, folder: int, name: str) -> None:
        try:
            os.link(part, name, src_dir_fd=self._parts, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without links, where a race with others is left to them
            if self._exists(folder, name):
                raise FileExistsError(name) from None
            os.rename(part, name, src_dir_fd=self._parts, dst_dir_fd=folder)

    def _folder(self, names: Sequence[str], *, make: bool = True) -> int:
        """A descriptor of a directory below ours, made if it is missing; no link is followed.

        Raises:
            OSError: If a link or a file is in the way.
        """
        at = os.dup(self._root)
        for name in names:
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, 0o700, dir_fd=at)
                below = os.open(name, _FOLDER, dir_fd=at)
            finally:
                os.close(at)
            at = below
        return at

    @staticmethod
    def _exists(folder: int, name: str) -> bool:
        try:
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    @staticmethod
    def _read(folder: int, name: str) -> bytes:
        """A small file of ours; empty if there is none."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        except OSError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            return file.read(_LARGEST_BYTES)

    def _replace(self, name: str, content: bytes) -> None:
        self._write_new(self._own, name, content, 0o600, replace=True)

    @staticmethod
    def _write_new(folder: int, name: str, content: bytes, mode: int, *, replace: bool = False) -> None:
        """Write a file whole or not at all."""
        draft = f".{name}.{os.getpid()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=folder)
        with os.fdopen(os.open(draft, flags, mode, dir_fd=folder), "wb") as out:
            out.write(content)
        if not replace and Landing._exists(folder, name):
            os.unlink(draft, dir_fd=folder)
            raise FileExistsError(name)
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


class GrowingPart:
    """A part of a file, open to be written; a context manager that closes it and keeps what there is.

    Args:
        landing: What it belongs to.
        folder: Descriptor of the directory of parts.
        host: Id of the host.
        wanted: The file.
        go_on: Whether a part of the same size and time of change is gone on with.
    """

    def __init__(self, landing: Landing, folder: int, host: int, wanted: Part, *, go_on: bool) -> None:
        self.name = f"{host}-{hashlib.sha256(wanted.target.encode()).hexdigest()[:24]}.part"
        there = _decoded(landing._read(folder, f"{self.name}.json"), Part)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        if there != wanted or not go_on:
            landing.forget_part(self.name)
            flags |= os.O_EXCL
        descriptor = os.open(self.name, flags, 0o600, dir_fd=folder)
        self.digest, self.size = _hashed(os.dup(descriptor))
        self._file = os.fdopen(descriptor, "r+b", buffering=0)
        if self.size > wanted.size:
            self._file.truncate(0)
            self.digest, self.size = hashlib.sha256(), 0
        self.was_there = self.size
        self._file.seek(self.size)
        landing._write_new(folder, f"{self.name}.json", msgspec.json.encode(wanted), 0o600, replace=True)

    def write(self, piece: bytes) -> None:
        """Add bytes.

        Raises:
            OSError: If the disk is full.
        """
        view = memoryview(piece)
        while view:
            view = view[self._file.write(view) or 0 :]
        self.digest.update(piece)
        self.size += len(piece)

    def __enter__(self) -> GrowingPart:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _hashed(descriptor: int) -> tuple[hashlib._Hash, int]:
    """The SHA-256 of what a descriptor is of, which is closed, and its length."""
    digest, length = hashlib.sha256(), 0
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        file.seek(0)
        while piece := file.read(4 << 20):
            digest.update(piece)
            length += len(piece)
    return digest, length


def _decoded(text: bytes, kind: type[_Noted]) -> _Noted | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.MsgspecError:
        return None
