"""The store: a cache directory with one entry per input, shared by all processes of a user.

An entry is a directory of Parquet parts and a manifest. It is built under a temporary name and renamed, so
that it is there as a whole or not at all. Beside the entries are answers about runs of them (`answers.py`). Deleting
anything in here is always safe.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from stepscope.errors import StepscopeError
from stepscope.processes import is_running
from stepscope.store.answers import SHARE, AnswerFile, drop_answers, drop_stale_answers, list_answers
from stepscope.store.drafts import DRAFT, HOUR_S, draft_name, is_abandoned
from stepscope.store.manifest import Manifest, is_whole, read_manifest
from stepscope.store.recording import StoredRecording

_TEMPORARY = "stepscope-store-"
_OURS = re.compile(r"[0-9a-f]{40}(\..+\.tmp)?")
_DEFAULT_MAX_GB = 20.0


def cache_directory() -> Path:
    """Directory of the store: `STEPSCOPE_CACHE`, otherwise the platform's user cache."""
    chosen = os.environ.get("STEPSCOPE_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("stepscope"))


def max_bytes() -> int:
    """Maximum size of the store: `STEPSCOPE_CACHE_MAX_GB`, otherwise 20 GB."""
    text = os.environ.get("STEPSCOPE_CACHE_MAX_GB", "")
    try:
        return int(float(text or _DEFAULT_MAX_GB) * 1e9)
    except (ValueError, OverflowError):
        raise StepscopeError(
            f"STEPSCOPE_CACHE_MAX_GB: {text!r} is not a number of gigabytes. Set it to one, e.g. 20"
        ) from None


@dataclass(frozen=True)
class StoreEntry:
    """One entry, as listed by `list_entries`; `used` is seconds since the epoch."""

    key: str
    directory: Path
    manifest: Manifest
    used: float


class Store:
    """A store in `directory`.

    Raises:
        OSError: If the directory cannot be made or written to.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(directory, os.R_OK | os.W_OK | os.X_OK):
            raise PermissionError(f"{directory} is not writable")
        self.directory = directory

    @classmethod
    def temporary(cls) -> Store:
        """A store that ends with this process.

        Raises:
            OSError: If there is no directory for temporary files.
        """
        _sweep_temporary()
        directory = Path(tempfile.mkdtemp(prefix=f"{_TEMPORARY}{socket.gethostname()}-{os.getpid()}-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        return cls(directory)

    def find(self, key: str) -> StoredRecording | None:
        """The entry under `key`; a damaged one is removed and not returned."""
        directory = self.directory / key
        if not directory.is_dir():
            return None
        manifest = read_manifest(directory)
        if manifest is None or not is_whole(directory, manifest):
            self._remove(directory)
            return None
        with suppress(OSError):  # once a minute is enough, and a read-only store need not know
            if time.time() - directory.stat().st_mtime > 60:
                os.utime(directory)
        return StoredRecording(directory, manifest)

    @contextmanager
    def drafting(self, key: str) -> Iterator[Path]:
        """A private directory in which to build the entry `key`; removed at the end unless kept by `publish`."""
        draft = self.directory / draft_name(key)
        draft.mkdir(mode=0o700)
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def publish(self, key: str, draft: Path) -> StoredRecording | None:
        """Make a finished draft the entry `key`; if another process was first, its entry is taken instead.

        Returns:
            The entry, or None if another process cleared it away at this very moment.

        Raises:
            OSError: If the directory cannot be renamed.
        """
        for _ in range(2):  # the second time if the entry in the way was damaged, which `find` removes
            try:
                draft.rename(self.directory / key)
            except OSError:
                if not (self.directory / key).is_dir():
                    raise
            found = self.find(key)
            if found is not None:
                return found
        return None

    def list_entries(self) -> list[StoreEntry]:
        """All whole entries, the most recently used first."""
        entries = []
        for directory in self._directories():
            manifest = None if directory.name.endswith(DRAFT) else read_manifest(directory)
            with suppress(OSError):
                if manifest is not None:
                    used = directory.stat().st_mtime
                    entries.append(StoreEntry(directory.name, directory, manifest, used))
        return sorted(entries, key=lambda entry: (-entry.used, entry.key))

    def clear(self, *, unused_s: float = 0.0) -> tuple[int, int]:
        """Remove entries with the answers about them, and what killed builders left.

        Args:
            unused_s: Keep entries used within this many seconds.

        Returns:
            Number of removed entries, and their size in bytes with that of the answers.
        """
        self.sweep()
        limit = time.time() - unused_s
        old = [entry for entry in self.list_entries() if unused_s <= 0 or entry.used <= limit]
        freed = sum(self._remove(entry.directory, entry.manifest.size_bytes) for entry in old)
        before = sum(one.size_bytes for one in self.list_answers())
        if unused_s <= 0:
            drop_answers(self.directory, 0)
        drop_stale_answers(self.directory)
        return len(old), freed + before - sum(one.size_bytes for one in self.list_answers())

    def list_answers(self) -> list[AnswerFile]:
        """All files of answers, the most recently used first."""
        return list_answers(self.directory)

    def evict(self, limit_bytes: int) -> None:
        """Remove what was used the least recently until the rest fits; never an entry used in the last hour."""
        entries = self.list_entries()
        total = sum(entry.manifest.size_bytes for entry in entries)
        total += drop_answers(self.directory, int(limit_bytes * SHARE))
        recent = time.time() - HOUR_S
        for entry in reversed(entries):
            if total <= limit_bytes or entry.used > recent:
                break
            total -= self._remove(entry.directory, entry.manifest.size_bytes)
        drop_stale_answers(self.directory)

    def sweep(self) -> None:
        """Remove what killed builders left behind, and entries whose manifest cannot be read."""
        for directory in self._directories():
            if not directory.name.endswith(DRAFT):
                if read_manifest(directory) is None:
                    self._remove(directory)
            elif is_abandoned(directory):
                shutil.rmtree(directory, ignore_errors=True)

    def _directories(self) -> list[Path]:
        """Entries and drafts; anything else in the directory is left alone."""
        with suppress(OSError):
            return sorted(path for path in self.directory.iterdir() if _OURS.fullmatch(path.name))
        return []

    def _remove(self, directory: Path, size: int = 0) -> int:
        """Remove an entry at once for all others: by renaming it first."""
        doomed = directory.with_name(draft_name(directory.name))
        with suppress(OSError):  # another process may have been faster
            directory.rename(doomed)
            shutil.rmtree(doomed, ignore_errors=True)
        return size


def _sweep_temporary() -> None:
    """Remove temporary stores left by killed processes of this user on this host."""
    prefix = f"{_TEMPORARY}{socket.gethostname()}-"
    for left in Path(tempfile.gettempdir()).glob("stepscope-store-*"):
        pid = left.name.removeprefix(prefix).partition("-")[0]
        with suppress(OSError):
            ours = left.name.startswith(prefix) and left.stat().st_uid == os.getuid()
            if ours and pid.isdigit() and not left.is_symlink() and not is_running(int(pid)):
                shutil.rmtree(left, ignore_errors=True)
