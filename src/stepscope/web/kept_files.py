"""Files that the server makes for clients: each made once, kept for the next who asks, few enough for the disk."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from stepscope.errors import StepscopeError

T = TypeVar("T")

KEPT_MB = 2_000.0
"""Size of all kept files together, in MB, unless a server is given another: several timelines of large jobs."""

THREADS = 2
"""Files that are made at the same time: making one keeps several cores busy."""


ENDING = "the server is ending. Ask again when it runs"


class TooManyFiles(StepscopeError):
    """The files that are being sent leave no room for another one."""


@dataclass
class _Kept:
    """A file and what its maker says of it."""

    path: Path
    about: Any
    size_bytes: int
    holds: int = 0


@dataclass
class Hold(Generic[T]):
    """A file that stays until it is released, also if the disk's share is used up meanwhile.

    Args:
        path: The file.
        about: What its maker returned.
        size_bytes: Its size.
    """

    path: Path
    about: T
    size_bytes: int
    _release: Callable[[], None]
    _is_held: bool = field(default=True, init=False)

    def release(self) -> None:
        """Let the file go; a second call does nothing."""
        if self._is_held:
            self._is_held = False
            self._release()

    def __enter__(self) -> Hold[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self.release()


class KeptFiles:
    """Makes files in a directory of its own, which nobody else can read, and deletes them at the end.

    Two who ask for one file at the same time wait for the same work. Of files that nobody holds, those that were not
    asked for longest go first when all together become larger than allowed.

    Args:
        limit_mb: Size of all files together, in MB.
    """

    def __init__(self, limit_mb: float = KEPT_MB) -> None:
        self._limit_bytes = round(limit_mb * 1e6)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._making: dict[Hashable, Future[_Kept]] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="stepscope files")
        self._directory: Path | None = None
        self._made = 0
        self._is_closed = False

    @property
    def limit_bytes(self) -> int:
        """Size that all files may have together."""
        return self._limit_bytes

    @property
    def used_bytes(self) -> int:
        """Size of all files that are kept."""
        with self._lock:
            return sum(each.size_bytes for each in self._kept.values())

    async def get(self, key: Hashable, name: str, write: Callable[[Path], T]) -> Hold[T]:
        """The file of a key, made in a thread if there is none.

        Args:
            key: All on which its content depends.
            name: Its name, whose ending may decide about the format.
            write: Writes it and returns what there is to say of it, small enough to be kept.

        Raises:
            TooManyFiles: If the files that are held leave no room.
            StepscopeError: What `write` raises, or that the server is ending.
        """
        while True:
            found = self._held(key) or self._begun(key, name, write)
            if isinstance(found, Hold):
                return found
            await _made(found)

    def close(self) -> None:
        """Delete all files, and make no more; those that are being made go as soon as they are whole."""
        with self._lock:
            self._is_closed = True
            self._kept.clear()
            directory, self._directory = self._directory, None
        self._threads.shutdown(wait=False, cancel_futures=True)
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)

    def _held(self, key: Hashable) -> Hold[Any] | None:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            kept.holds += 1
        return Hold(kept.path, kept.about, kept.size_bytes, lambda: self._let_go(kept))

    def _let_go(self, kept: _Kept) -> None:
        with self._lock:
            kept.holds -= 1
            self._make_room()

    def _begun(self, key: Hashable, name: str, write: Callable[[Path], Any]) -> Future[_Kept]:
        with self._lock:
            if self._is_closed:
                raise StepscopeError(ENDING)
            if key in self._making:
                return self._making[key]
            if sum(each.size_bytes for each in self._kept.values() if each.holds) > self._limit_bytes:
                raise TooManyFiles("other files are being sent that leave no room for this one. Try again in a minute")
            self._made += 1
            target = self._place() / f"{self._made}-{name}"
            making = self._making[key] = self._threads.submit(self._make, key, target, write)
            return making

    def _place(self) -> Path:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="stepscope-web-"))
        return self._directory

    def _make(self, key: Hashable, target: Path, write: Callable[[Path], Any]) -> _Kept:
        try:
            kept = _Kept(target, write(target), target.stat().st_size)
        except BaseException as error:
            with self._lock:
                del self._making[key]
            with suppress(OSError):
                target.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise StepscopeError(
                    f"a file for this answer could not be written: {error.strerror or error}. Free some space, or set "
                    "TMPDIR to a disk with more room"
                ) from error
            raise
        with self._lock:
            del self._making[key]
            if self._is_closed:
                target.unlink(missing_ok=True)
                raise StepscopeError(ENDING)
            self._kept[key] = kept
            self._make_room(but=key)
        return kept

    def _make_room(self, but: Hashable = None) -> None:
        """Delete files that nobody holds until the others are small enough; the newest is for who waits for it."""
        used = sum(each.size_bytes for each in self._kept.values())
        for key, kept in list(self._kept.items()):
            if used <= self._limit_bytes:
                return
            if kept.holds or (but is not None and key == but):
                continue
            del self._kept[key]
            kept.path.unlink(missing_ok=True)
            used -= kept.size_bytes


async def _made(making: Future[_Kept]) -> None:
    """Wait until a file is made; who goes away leaves the work to the others that wait for it."""
    waiting = asyncio.wrap_future(making)
    waiting.add_done_callback(lambda done: None if done.cancelled() else done.exception())  # it need not be read
    try:
        await asyncio.shield(waiting)
    except asyncio.CancelledError:
        if making.cancelled():
            raise StepscopeError(ENDING) from None
        raise
