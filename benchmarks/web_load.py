"""Many clients that click through the pages of `stepscope serve` for a while: errors, how long pages take, memory."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp

from web_page import Failed, Tab
from web_servers import Memory, Served

APART = ("/timeline", "/perfetto", "/what-if", "/query", "/live")
"""Pages that clients of the load do not go to: they start work for one client, or belong to a viewer."""

STRAYS = 0.15
"""Share of clicks that go to the list of runs or the overview of a run."""


@dataclass
class Load:
    """What happened.

    Args:
        opened: Seconds of each page that was opened, until all its parts were there.
        clicked: Seconds of each click within a page.
        failures: Why pages were not shown, and how often.
        before, after: Memory of the server.
        during: Resident memory of its largest process at some moments, bytes.
        slowest: Seconds and address of each.
        cpu_s: Processor time that the server took, seconds.
    """

    opened: list[float] = field(default_factory=list)
    clicked: list[float] = field(default_factory=list)
    slowest: list[tuple[float, str]] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    before: Memory | None = None
    after: Memory | None = None
    during: list[int] = field(default_factory=list)
    cpu_s: float = 0.0

    def lines(self) -> list[str]:
        """The figures for people."""
        every = sorted([*self.opened, *self.clicked])
        found = [
            f"{len(every)} clicks ({len(self.opened)} pages opened, {len(self.clicked)} clicks within a page), "
            f"{sum(self.failures.values())} errors",
            f"until a page is whole: p50 {_percentile(every, 0.5):.3f} s, p95 {_percentile(every, 0.95):.3f} s, "
            f"p99 {_percentile(every, 0.99):.3f} s, longest {every[-1] if every else 0.0:.3f} s",
            f"processor time of the server: {self.cpu_s:.0f} s, {1e3 * self.cpu_s / max(len(every), 1):.0f} ms a click",
            f"memory before: {self.before}; after: {self.after}",
            "largest process meanwhile: " + ", ".join(f"{size / 1e6:.0f}" for size in self.during) + " MB",
        ]
        found += [f"error, {count} times: {what}" for what, count in self.failures.most_common(10)]
        return found + [f"slow: {seconds:.2f} s {url}" for seconds, url in sorted(self.slowest, reverse=True)[:8]]


def load(served: Served, starts: Sequence[str], *, clients: int, seconds: float, think_s: float, seed: int) -> Load:
    """Let clients click, each at random, from page to page.

    Args:
        served: The server.
        starts: Pages where clients begin and to which they return.
        clients: Number of clients.
        seconds: How long they click.
        think_s: Mean pause between a page and the next click, seconds.
        seed: Of the random choices.
    """
    return asyncio.run(_load(served, starts, clients, seconds, think_s, seed))


async def _load(served: Served, starts: Sequence[str], clients: int, seconds: float, think_s: float, seed: int) -> Load:
    found, used_s = Load(before=served.memory()), served.cpu_s()
    end = time.monotonic() + seconds
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        at_work = [
            _client(Tab(session, served.base), starts, random.Random(seed + number), end, think_s, found)
            for number in range(clients)
        ]
        watching = asyncio.create_task(_watch(served, end, found))
        await asyncio.gather(*at_work)
        await watching
    found.cpu_s = served.cpu_s() - used_s
    await asyncio.sleep(5)
    found.after = served.memory()
    return found


async def _watch(served: Served, end: float, found: Load) -> None:
    while time.monotonic() < end:
        memory = await asyncio.to_thread(served.memory)
        found.during.append(memory.largest_bytes)
        await asyncio.sleep(15)


async def _client(
    tab: Tab, starts: Sequence[str], chance: random.Random, end: float, think_s: float, found: Load
) -> None:
    await asyncio.sleep(chance.uniform(0, think_s))
    async with tab:
        url = chance.choice(starts)
        while time.monotonic() < end:
            is_within = tab.is_change(url)
            start, faults = time.perf_counter(), tab.faults
            try:
                await tab.click(url)
            except (Failed, aiohttp.ClientError, OSError) as error:
                found.failures[str(error) or type(error).__name__] += 1
                tab.links, tab.changes = set(), set()
            else:
                taken = time.perf_counter() - start
                (found.clicked if is_within else found.opened).append(taken)
                found.slowest.append((taken, url))
                if tab.faults > faults:
                    found.failures[f"{url}: a part could not be shown"] += 1
            await asyncio.sleep(chance.expovariate(1 / think_s) if think_s else 0)
            url = _next(tab, starts, chance)


def _next(tab: Tab, starts: Sequence[str], chance: random.Random) -> str:
    """Where a client goes next."""
    links = sorted(link for link in tab.links if _is_page(link) and link != tab.url)
    return chance.choice(starts) if not links or chance.random() < STRAYS else chance.choice(links)


def _is_page(link: str) -> bool:
    path = urlsplit(link).path
    return (path == "/" or path.startswith("/runs/")) and not any(part in path for part in APART)


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0
