"""Files for clients: made once, kept within a share of the disk, never taken from who reads them."""

from __future__ import annotations

import asyncio
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import StepscopeError
from stepscope.web.kept_files import KeptFiles, TooManyFiles


@pytest.fixture
def files() -> Iterator[KeptFiles]:
    """Room for 1,000 bytes."""
    kept = KeptFiles(0.001)
    yield kept
    kept.close()


def _writing(size: int, made: list[Path] | None = None) -> Any:
    def write(target: Path) -> str:
        target.write_bytes(b"x" * size)
        if made is not None:
            made.append(target)
        return f"{size} bytes"

    return write


def test_a_file_is_made_once(files: KeptFiles) -> None:
    made: list[Path] = []

    async def ask() -> None:
        holds = await asyncio.gather(*(files.get("a", "a.txt", _writing(10, made)) for _ in range(8)))
        holds.append(await files.get("a", "a.txt", _writing(10, made)))
        assert len(made) == 1 and {hold.path for hold in holds} == {made[0]}
        assert holds[0].about == "10 bytes" and holds[0].size_bytes == 10 == files.used_bytes
        assert made[0].name.endswith("a.txt")
        assert stat.S_IMODE(made[0].parent.stat().st_mode) == 0o700

    asyncio.run(ask())


def test_old_files_make_room_for_new_ones(files: KeptFiles) -> None:
    async def ask() -> None:
        first, second = [await files.get(name, name, _writing(400)) for name in ("a", "b")]
        first.release(), second.release()
        (await files.get("a", "a", _writing(400))).release()  # the second is now the one not asked for longest
        with await files.get("c", "c", _writing(400)) as third:
            assert first.path.exists() and not second.path.exists() and third.path.exists()
        assert files.used_bytes == 800

    asyncio.run(ask())


def test_a_held_file_stays(files: KeptFiles) -> None:
    async def ask() -> None:
        held = await files.get("a", "a", _writing(900))
        again = await files.get("a", "a", _writing(900))
        with await files.get("b", "b", _writing(900)):
            assert held.path.exists() and files.used_bytes == 1_800
            with pytest.raises(TooManyFiles, match="no room"):
                await files.get("c", "c", _writing(1))
        held.release()
        held.release()
        assert again.path.exists()
        again.release()
        with await files.get("c", "c", _writing(500)) as last:
            assert last.path.exists() and not again.path.exists() and files.used_bytes <= 1_000

    asyncio.run(ask())


def test_a_file_larger_than_all_room_is_there_as_long_as_it_is_held(files: KeptFiles) -> None:
    async def ask() -> None:
        hold = await files.get("a", "a", _writing(5_000))
        assert hold.path.exists()
        hold.release()
        assert not hold.path.exists() and files.used_bytes == 0

    asyncio.run(ask())


def test_what_fails_is_tried_again_and_leaves_nothing(files: KeptFiles) -> None:
    tried: list[Path] = []

    def fail(target: Path) -> None:
        target.write_bytes(b"half")
        tried.append(target)
        raise StepscopeError("there is nothing to write") if len(tried) < 3 else OSError(28, "No space left on device")

    async def ask() -> None:
        for _ in range(2):
            with pytest.raises(StepscopeError, match="nothing to write"):
                await files.get("a", "a", fail)
        with pytest.raises(StepscopeError, match=r"No space left.*Free some space"):
            await files.get("a", "a", fail)
        assert len(tried) == 3 and not any(each.exists() for each in tried)
        with await files.get("a", "a", _writing(1)) as hold:
            assert hold.path.exists()

    asyncio.run(ask())


def test_who_goes_away_takes_nothing_from_others(files: KeptFiles) -> None:
    waiting, made = threading.Event(), list[Path]()

    def slow(target: Path) -> None:
        assert waiting.wait(10)
        _writing(1, made)(target)

    async def ask() -> None:
        impatient = asyncio.create_task(files.get("a", "a", slow))
        patient = asyncio.create_task(files.get("a", "a", slow))
        await asyncio.sleep(0.05)
        impatient.cancel()
        waiting.set()
        with await patient as hold:
            assert hold.path.exists() and len(made) == 1
        with pytest.raises(asyncio.CancelledError):
            await impatient

    asyncio.run(ask())


def test_all_files_go_at_the_end(files: KeptFiles) -> None:
    started, waiting, made = threading.Event(), threading.Event(), list[Path]()

    def slow(target: Path) -> None:
        started.set()
        assert waiting.wait(10)
        _writing(1, made)(target)

    async def ask() -> None:
        kept = await files.get("a", "a", _writing(10))
        being_made = asyncio.create_task(files.get("b", "b", slow))
        await asyncio.to_thread(started.wait, 10)
        files.close()
        waiting.set()
        with pytest.raises(StepscopeError):
            await being_made
        assert not kept.path.exists() and not kept.path.parent.exists()
        assert not any(each.exists() for each in made)
        with pytest.raises(StepscopeError, match="ending"):
            await files.get("c", "c", _writing(1))

    asyncio.run(ask())
