"""Copying the files of one host: in parts that can be gone on with, checked before they take their places."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from stepscope.cluster.landing import Arrived, Landing, Part
from stepscope.cluster.layout import Plan
from stepscope.cluster.listing import Bounds, Notes, Wanted
from stepscope.cluster.places import HostFailed, Place
from stepscope.present import size

AT_ONCE = 4
"""Files of one host at a time: while one waits for an answer, the others go on."""
_BATCH_FILES = 64
_BATCH_BYTES = 256 << 20
"""Whole parts are checked together: a command for each would cost more than the files."""

Target = tuple[str, ...]


@dataclass
class Copied:
    """What came of the files of a host.

    Args:
        files: Files in their places that are the same as on the host.
        bytes: Their size.
        fresh_files: Those of them that came this time.
        fresh_bytes: Bytes that came this time, those of unfinished files too.
        missing: What is not there, and why: also files that differ from what is in their place.
        by_size: Files that could only be checked by their size.
        failure: Why the host failed on the way; None if it did not.
    """

    files: int = 0
    bytes: int = 0
    fresh_files: int = 0
    fresh_bytes: int = 0
    missing: Notes = field(default_factory=Notes)
    by_size: int = 0
    failure: str | None = None


@dataclass
class _Whole:
    """A whole part that waits to be checked."""

    wanted: Wanted
    target: Target
    part: str
    sha256: str
    went_on: bool


class HostCopy:
    """Copies the files of one host.

    Args:
        host: Its id.
        place: Its files.
        landing: Where they go.
        bounds: What stays free on our disk.
        advance: Called with the number of bytes that came, and with files that are done.
    """

    def __init__(
        self, host: int, place: Place, landing: Landing, bounds: Bounds, advance: Callable[[int, int], None]
    ) -> None:
        self.host = host
        self.place = place
        self.landing = landing
        self.bounds = bounds
        self.advance = advance
        self.result = Copied()
        self._sums = False
        self._whole: list[_Whole] = []
        self._checking = asyncio.Lock()

    async def copy(self, plan: Plan) -> Copied:
        """Copy the files of a plan; a host that fails leaves what has arrived, and the parts."""
        try:
            self._sums = await self.place.can_checksum()
            left = iter(await self._not_there(plan.targets))
            await together([self._some(left) for _ in range(AT_ONCE)])
            await self._check(self._whole)
        except HostFailed as error:
            self.result.failure = str(error)
        return self.result

    async def _not_there(self, targets: Sequence[tuple[Wanted, Target]]) -> list[tuple[Wanted, Target]]:
        """The files that have not arrived yet; what is in the place of others is compared, and kept in any case."""
        arrived = self.landing.arrived(self.host)
        left: list[tuple[Wanted, Target]] = []
        doubtful: list[tuple[Wanted, Target]] = []
        for wanted, target in targets:
            try:
                there, changed_ns = self.landing.state_of(target) or (None, None)
            except OSError as error:
                self._miss(wanted, f"cannot be put at {'/'.join(target)}: {error.strerror}")
                continue
            noted = arrived.get("/".join(target))
            if there is None:
                left.append((wanted, target))
            elif there != wanted.size:
                self._miss(wanted, f"differs from {'/'.join(target)}, which is kept")
            elif noted is not None and (noted.size, noted.changed_ns) == (wanted.size, wanted.changed_ns):
                # A file that was written to here has another time of change; so it has where times are coarse.
                if changed_ns == noted.changed_ns or await self._sha256_there(target) == noted.sha256:
                    self._have(wanted)
                else:
                    place = "/".join(target)
                    self._miss(wanted, f"{place} was changed after it arrived and is kept. Remove it, then --resume")
            else:
                doubtful.append((wanted, target))
        sums = await self.place.checksums([wanted.path for wanted, _ in doubtful]) if doubtful and self._sums else {}
        for wanted, target in doubtful:
            if wanted.path not in sums:
                self._miss(wanted, f"cannot be compared with {'/'.join(target)}, which is kept")
            elif sums[wanted.path] == await self._sha256_there(target):
                self._have(wanted)
            else:
                self._miss(wanted, f"differs from {'/'.join(target)}, which is kept")
        return left

    async def _sha256_there(self, target: Target) -> str | None:
        """The checksum of the file in a place; None if it cannot be read."""
        try:
            return await asyncio.to_thread(self.landing.sha256_of, target)
        except OSError:
            return None

    async def _some(self, left: Iterator[tuple[Wanted, Target]]) -> None:
        """Copy files until none is left."""
        for wanted, target in left:
            # Without checksums nothing would show that a part is of the same file.
            whole = await self._fetch(wanted, target, go_on=self._sums)
            if whole is not None:
                self._whole.append(whole)
            if len(self._whole) >= _BATCH_FILES or sum(one.wanted.size for one in self._whole) >= _BATCH_BYTES:
                batch, self._whole = self._whole, []
                await self._check(batch)

    async def _fetch(self, wanted: Wanted, target: Target, *, go_on: bool) -> _Whole | None:
        """Bring one file into a part; None, with a note, if that fails."""
        if not self.landing.reserve(wanted.size, self.bounds.free_bytes):
            kept = f": {size(self.bounds.free_bytes)} of it stay free (--keep-gb)" if self.bounds.free_bytes else ""
            self._miss(wanted, f"there is no room for it on the disk{kept}")
            return None
        left = wanted.size
        try:
            about = Part("/".join(target), wanted.size, wanted.changed_ns)
            with self.landing.part(self.host, about, go_on=go_on) as part:
                self.advance(part.was_there, 0)
                self.landing.release(part.was_there)
                left -= part.was_there
                async with aclosing(self.place.content(wanted.path, part.size, wanted.size)) as pieces:
                    async for piece in pieces:
                        part.write(piece)
                        self.landing.release(len(piece))
                        left -= len(piece)
                        self.result.fresh_bytes += len(piece)
                        self.advance(len(piece), 0)
            if part.size == wanted.size and await self.place.state(wanted.path) == (wanted.size, wanted.changed_ns):
                return _Whole(wanted, target, part.name, part.digest.hexdigest(), part.was_there > 0)
            self.landing.forget_part(part.name)
            self._miss(wanted, "changes while it is copied: wait until it is written, then --resume")
        except OSError as error:
            self._miss(wanted, f"cannot be copied: {error.strerror or error}")
        finally:
            self.landing.release(left)
        return None

    async def _check(self, whole: Sequence[_Whole]) -> None:
        """Put whole parts into their places if the host has the same checksums, or computes none."""
        sums = await self.place.checksums([one.wanted.path for one in whole]) if whole and self._sums else {}
        anew: list[_Whole] = []
        for one in whole:
            stated = sums.get(one.wanted.path)
            if stated == one.sha256 or (stated is None and not one.went_on):
                self._settle(one, "size" if stated is None else "sha256")
                continue
            self.landing.forget_part(one.part)
            if one.went_on:  # the part was of another file
                fetched = await self._fetch(one.wanted, one.target, go_on=False)
                anew += [] if fetched is None else [fetched]
            else:
                self._miss(one.wanted, "its checksum is not that of the host's file: it changes, or the copy failed")
        if anew:
            await self._check(anew)

    def _settle(self, one: _Whole, check: str) -> None:
        place = "/".join(one.target)
        arrived = Arrived(place, one.wanted.size, one.wanted.changed_ns, one.sha256, check)
        try:
            settled = self.landing.settle(self.host, one.part, arrived)
        except OSError as error:
            self._miss(one.wanted, f"cannot be put at {place}: {error.strerror or error}")
            return
        if not settled:
            self._miss(one.wanted, f"{place} came into being meanwhile, and is kept")
            return
        self.result.fresh_files += 1
        self.result.by_size += check == "size"
        self._have(one.wanted, counted=True)

    def _have(self, wanted: Wanted, *, counted: bool = False) -> None:
        self.result.files += 1
        self.result.bytes += wanted.size
        self.advance(0 if counted else wanted.size, 1)

    def _miss(self, wanted: Wanted, why: str) -> None:
        self.result.missing.add(wanted.path, why)
        self.advance(0, 1)


async def together(works: Sequence[Awaitable[None]]) -> None:
    """Do several things at a time; if one fails, the others end before its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
