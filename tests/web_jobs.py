"""Small jobs on disk for the web application, and waiting for what it makes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kineto_job import RankTrace
from stepscope.web.catalogue import Catalogue, Entry, survey

PATIENCE_S = 60.0
DAY_NS = 86_400 * 10**9


def write_rank(directory: Path, rank: int = 0, world: int = 1, *, day: int = 0, steps: int = 3, slow: int = 1) -> Path:
    """A rank whose device works for a part of each step; jobs of other days are other jobs."""
    trace = RankTrace(rank, world)
    trace.header["baseTimeNanoseconds"] += day * DAY_NS
    for number in range(steps):
        start = number * 10_000
        trace.step(number, start, 9_900)
        trace.operator("aten::mm", start + 50, 40, [[64, 64], [64, 64]])
        for k in range(4):
            trace.kernel("gemm", start + 200 + k * 2000, 400 * slow)
    return trace.write(directory)


def write_job(directory: Path, world: int = 2, *, day: int = 0) -> Path:
    """A job of some ranks, the last of which is slow."""
    for rank in range(world):
        write_rank(directory, rank, world, day=day, slow=3 if rank == world - 1 else 1)
    return directory


@contextmanager
def catalogue_of(*roots: Path, analyse: bool = False, rest_s: float = 0.1, **options: Any) -> Iterator[Catalogue]:
    """A started catalogue that looks often; it reads what has come to rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "REST_S", rest_s)
        catalogue = Catalogue(roots, rescan_s=0.05, analyse=analyse, **options)
        catalogue.start()
        try:
            yield catalogue
        finally:
            catalogue.close()


def wait_for(check: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """What a check gives, once it is true."""
    end = time.monotonic() + patience_s
    while not (found := check()):
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
    return found


def settled(catalogue: Catalogue, count: int) -> dict[str, Entry]:
    """So many entries by their path below the root, once nothing more is to be done for them."""

    def check() -> list[Entry] | None:
        entries = catalogue.entries()
        is_over = all(entry.state in ("ready", "failed", "gone") for entry in entries)
        return entries if len(entries) == count and is_over else None

    return {entry.relative: entry for entry in wait_for(check)}
