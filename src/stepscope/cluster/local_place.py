"""Files of this machine: local directories, mounted shares, and what a command has copied."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from stepscope.cluster.places import Kind, NoAnswer, Ran, Seen

CHUNK_BYTES = 4 << 20
_SHOWN_BYTES = 1 << 20


class LocalPlace:
    """The files below a directory of this machine; paths are relative to it, or absolute and below it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def entries(self, folder: str) -> AsyncIterator[Seen]:
        """See `Place`."""
        with os.scandir(self.root / folder) as scan:
            for entry in scan:
                with suppress(OSError):  # gone since
                    yield _seen(entry.name, entry.stat(follow_symlinks=False))

    async def look(self, path: str) -> Seen | None:
        """See `Place`: what lies outside the directory counts as a link, as whoever fills a share could place one."""
        try:
            place = (self.root / path).resolve(strict=True)
            found = _seen(Path(path).name, place.lstat())
        except (OSError, RuntimeError):  # nothing there, or a link to itself
            return None
        return found if place.is_relative_to(self.root.resolve()) else replace(found, kind="link")

    async def content(self, path: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """See `Place`."""
        with os.fdopen(_opened(self.root / path), "rb", buffering=0) as stream:
            stream.seek(start)
            while start < end and (piece := await asyncio.to_thread(stream.read, min(CHUNK_BYTES, end - start))):
                start += len(piece)
                yield piece

    async def state(self, path: str) -> tuple[int, int]:
        """See `Place`."""
        info = (self.root / path).lstat()
        return info.st_size, info.st_mtime_ns

    async def checksums(self, paths: Sequence[str]) -> Mapping[str, str]:
        """See `Place`: the files are read again."""
        found = {}
        for path in paths:
            with suppress(OSError):
                found[path] = await asyncio.to_thread(sha256_of, self.root / path)
        return found

    async def can_checksum(self) -> bool:
        """See `Place`."""
        return True

    async def run(self, words: Sequence[str], timeout_s: float) -> Ran:
        """See `Place`."""
        try:
            return await run_here(words, timeout_s)
        except (asyncio.TimeoutError, TimeoutError):
            raise NoAnswer(f"{words[0]} took longer than {timeout_s:.0f} s") from None
        except OSError as error:
            return Ran(127, "", error.strerror or str(error))

    async def close(self) -> None:
        """See `Place`."""


def sha256_of(file: Path) -> str:
    """The SHA-256 of a regular file, without following a link."""
    digest = hashlib.sha256()
    with os.fdopen(_opened(file), "rb", buffering=0) as stream:
        while piece := stream.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


async def run_here(words: Sequence[str], timeout_s: float, folder: Path | None = None) -> Ran:
    """Run a command of this machine without a shell; one that takes too long is killed, with all that it started.

    Raises:
        OSError: If it cannot be started.
        asyncio.TimeoutError: If it takes longer.
    """
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
    )
    try:
        out, err = await asyncio.wait_for(asyncio.gather(_first(process.stdout), _first(process.stderr)), timeout_s)
        await asyncio.wait_for(process.wait(), timeout_s)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)  # also what it left running behind itself
        await process.wait()
    status = process.returncode
    return Ran(None if status is not None and status < 0 else status, out, err)


async def _first(stream: asyncio.StreamReader | None) -> str:
    """The beginning of what a command prints; all of it is read, so that it never waits."""
    kept = bytearray()
    while stream is not None and (piece := await stream.read(1 << 16)):
        kept += piece[: max(_SHOWN_BYTES - len(kept), 0)]
    return kept.decode("utf-8", "replace")


def _opened(file: Path) -> int:
    """A regular file, opened; a link or a pipe in its place is refused instead of followed or waited for.

    Raises:
        OSError: If it is something else.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("is no regular file any more")
    return descriptor


def _seen(name: str, info: os.stat_result) -> Seen:
    return Seen(name, kind_of_mode(info.st_mode), info.st_size, info.st_mtime_ns)


def kind_of_mode(mode: int) -> Kind:
    """What a mode of a file stands for."""
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "folder"
    return "link" if stat.S_ISLNK(mode) else "other"
