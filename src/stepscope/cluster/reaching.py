"""Reaching a host, in whatever way, and listing what is to be copied of it."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.cluster.hosts import Host
from stepscope.cluster.landing import Landing
from stepscope.cluster.listing import Bounds, Listing, Notes, list_files
from stepscope.cluster.local_place import LocalPlace, run_here
from stepscope.cluster.places import HostFailed, Place, Ran
from stepscope.cluster.summaries import packed_on
from stepscope.errors import StepscopeError
from stepscope.present import printable, size

if TYPE_CHECKING:
    from stepscope.cluster.ssh_place import Connections

_WATCH_S = 1.0
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]+\}")
_PLACEHOLDERS = ("{host}", "{source}", "{target}")
_LAST_LINES = 2
"""Of what a command prints: the last line alone often states no more than that something failed."""
_NAME_S = 20.0


@dataclass
class Reached:
    """A host that was reached.

    Args:
        place: Its files.
        listing: What is to be copied of them.
        own_names: Its names, also the one that it has for itself.
        unread: Recordings that it could not summarise.
        quarantine: What a command has copied, to be removed.
        scratch: A directory of the host, to be removed.
    """

    place: Place
    listing: Listing = field(default_factory=Listing)
    own_names: tuple[str, ...] = ()
    unread: Notes = field(default_factory=Notes)
    quarantine: Path | None = None
    scratch: str | None = None

    async def leave(self) -> None:
        """Remove what was made on the way, and end the connection."""
        if self.scratch is not None:
            with suppress(HostFailed, OSError, asyncio.TimeoutError):
                await self.place.run(["rm", "-rf", "--", self.scratch], _NAME_S)
        await self.place.close()
        if self.quarantine is not None:
            await asyncio.to_thread(shutil.rmtree, self.quarantine, ignore_errors=True)


def open_connections(known_hosts: Path | None) -> Connections:
    """What connects by SSH.

    Raises:
        StepscopeError: If the library for it is not installed.
    """
    try:
        from stepscope.cluster.ssh_place import Connections  # noqa: PLC0415 - an extra, only for hosts reached by SSH
    except ImportError as error:
        raise StepscopeError(
            f"copying by SSH needs asyncssh ({error}). Run `pip install 'stepscope[cluster]'`; hosts with `path` or "
            "`command` do without it"
        ) from None
    return Connections(known_hosts)


async def reach(
    host: Host,
    number: int,
    sources: Sequence[str],
    landing: Landing,
    bounds: Bounds,
    ssh: Connections | None,
    summaries: bool,
) -> Reached:
    """Reach a host and list its files.

    Raises:
        HostFailed: If that fails.
    """
    patterns = host.sources or tuple(sources)
    if not patterns:
        raise HostFailed(
            "it is not said which directories to copy. Pass --source, or state a `source` in the hosts file"
        )
    if host.command:
        if summaries:
            raise HostFailed("it is reached by a command, which copies files only. Collect it without --summaries")
        return await _by_command(host, number, patterns, landing, bounds)
    if host.path is not None:
        if not host.path.is_dir():
            raise HostFailed(f"there is no directory {host.path}. Check that the share is mounted")
        reached = Reached(LocalPlace(host.path), own_names=host.names)
    else:
        assert ssh is not None
        reached = Reached(await ssh.open(host), own_names=host.names)
    try:
        if host.address:
            reached.own_names = (*host.names, *await _own_name(reached.place))
        if summaries:
            await _have_packed(reached, host, patterns, bounds)
        else:
            reached.listing = await list_files(reached.place, patterns, bounds)
    except BaseException:
        await reached.leave()
        raise
    if not reached.listing.files and not reached.listing.refused.count:
        await reached.leave()
        raise HostFailed(f"no file there matches {', '.join(map(printable, patterns))}. Check --source")
    return reached


async def _have_packed(reached: Reached, host: Host, patterns: Sequence[str], bounds: Bounds) -> None:
    """Have a host read its recordings, and list what it packed.

    Raises:
        HostFailed: If that fails.
    """
    packed = await packed_on(reached.place, host, patterns)
    reached.scratch, reached.unread = packed.folder, packed.unread
    if host.path is not None:
        reached.place = LocalPlace(Path(packed.folder))
    found = await list_files(reached.place, [f"{packed.folder}/packed"], bounds)
    found.files = [replace(file, match=()) for file in found.files]
    if (count := len(found.files) + found.refused.count) < packed.count:
        found.refused.add(packed.folder, f"has {count} of the {packed.count} recordings that its stepscope packed")
    reached.listing = found


async def _own_name(place: Place) -> tuple[str, ...]:
    """What a host calls itself, if it says so."""
    try:
        ran = await place.run(["uname", "-n"], _NAME_S)
    except (HostFailed, OSError):
        return ()
    name = ran.out.strip().rpartition("\n")[2]  # what a login prints comes before
    whole = (name,) if ran.status == 0 and name.isprintable() and " " not in name and 0 < len(name) < 254 else ()
    return tuple(dict.fromkeys(part for one in whole for part in (one, one.partition(".")[0])))


async def _by_command(host: Host, number: int, patterns: Sequence[str], landing: Landing, bounds: Bounds) -> Reached:
    """Have a command copy into a directory of its own, from which only regular files with plain names are taken."""
    if not any("{target}" in word for word in host.command):
        raise HostFailed("its command has no {target}. Add it where the command takes the directory to copy into")
    if wrong := _misspelt(host.command):
        raise HostFailed(f"its command has {wrong[0]}, which stands for nothing. Did you mean {wrong[1]}?")
    quarantine, warnings = landing.quarantine(number), list[str]()
    reached = Reached(LocalPlace(quarantine), own_names=host.names, quarantine=quarantine)
    try:
        for at, pattern in enumerate(patterns):
            folder = quarantine / str(at)
            folder.mkdir(mode=0o700)
            name = Path(pattern).name.replace("*", "_") or "files"
            known = {"{host}": host.name, "{source}": pattern, "{target}": str(folder / name)}
            ran = await _run_bounded([_filled(word, known) for word in host.command], host, quarantine, bounds)
            warnings += [line.strip() for line in ran.err.splitlines() if line.lower().startswith("warning")]
        reached.listing = await list_files(reached.place, [f"{at}/*" for at in range(len(patterns))], bounds)
        for line in warnings:
            reached.listing.skipped.add(line, "a warning of its command")
    except BaseException:
        await reached.leave()
        raise
    if not reached.listing.files and not reached.listing.refused.count:
        await reached.leave()
        others = reached.listing.skipped.count
        only = f" but links or devices ({others}), which are not taken" if others else ""
        raise HostFailed(f"its command copied nothing{only}. Run it by hand to see why")
    return reached


def _misspelt(words: Sequence[str]) -> tuple[str, str] | None:
    """A placeholder that is nearly one of ours, and ours; other braces may mean something to the command."""
    for name in (name for word in words for name in _PLACEHOLDER.findall(word) if name not in _PLACEHOLDERS):
        if near := difflib.get_close_matches(name, _PLACEHOLDERS, 1):
            return name, near[0]
    return None


def _filled(word: str, known: dict[str, str]) -> str:
    """A word with its placeholders replaced, each once: what is filled in is not looked at again."""
    parts = [word]
    for name, value in known.items():
        parts = [piece for part in parts for piece in _split(part, name, value)]
    return "".join(str(part) for part in parts)


class _Value(str):
    """A text that was filled in."""


def _split(part: str, name: str, value: str) -> list[str]:
    if isinstance(part, _Value) or name not in part:
        return [part]
    pieces: list[str] = []
    for piece in part.split(name):
        pieces += [piece, _Value(value)]
    return pieces[:-1]


async def _run_bounded(words: Sequence[str], host: Host, folder: Path, bounds: Bounds) -> Ran:
    """Run a command until it ends, takes too long, or has copied too much.

    Raises:
        HostFailed: Unless it succeeds.
    """
    run = asyncio.ensure_future(run_here(words, host.timeout_s))
    excess = ""
    while not run.done() and not excess:
        await asyncio.wait([run], timeout=_WATCH_S)
        excess = await asyncio.to_thread(_excess, folder, bounds)
    if excess and not run.done():
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
    if excess:
        raise HostFailed(f"its command was stopped: {excess}")
    try:
        ran = await run
    except (asyncio.TimeoutError, TimeoutError):
        raise HostFailed(f"its command took longer than {host.timeout_s:.0f} s (`timeout_s`)") from None
    except FileNotFoundError:
        raise HostFailed(
            f"there is no command {printable(words[0])} on this machine. Install it, or give its full path in `command`"
        ) from None
    except PermissionError:
        raise HostFailed(
            f"its command {printable(words[0])} is not a program that you may run. Check its path and permissions"
        ) from None
    except OSError as error:
        raise HostFailed(
            f"its command {printable(words[0])} cannot be run: {error.strerror or error}. Check `command` in the hosts "
            "file"
        ) from None
    if ran.status != 0:
        lines = [line.strip() for line in ran.err.splitlines() if line.strip()]
        last = "; ".join(printable(line)[:200] for line in lines[-_LAST_LINES:])
        how = "a signal ended it" if ran.status is None else f"exit status {ran.status}"
        raise HostFailed(f"its command failed ({how}){': ' if last else ''}{last}")
    return ran


def _excess(folder: Path, bounds: Bounds) -> str:
    """Why a command has copied too much; empty if it has not."""
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < bounds.free_bytes // 2:
        return f"less than {size(bounds.free_bytes // 2)} of the disk are free (--keep-gb)"
    files = total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118 - many files
            files += 1
        if total > bounds.bytes:
            return f"it has copied more than {size(bounds.bytes)} (--max-gb)"
        if files > bounds.files:
            return f"it has copied more than {bounds.files} files (--max-files)"
    return ""
