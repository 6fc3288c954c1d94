"""The process that reads and analyses runs for the server, which so stays small and has its time for pages."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from stepscope import plugins
from stepscope.analysis.registry import ANALYSES
from stepscope.errors import StepscopeError
from stepscope.ingest import ingest
from stepscope.ingest.read import printable, throttled
from stepscope.processes import connected, send
from stepscope.run import watched
from stepscope.run.encoding import encoded
from stepscope.store import Store
from stepscope.web.catalogue.orders import (
    ORDERS,
    Analysed,
    Progressed,
    Read,
    ReadOrder,
    Ready,
    RunOrder,
    Summarised,
    ordered_run,
)
from stepscope.web.catalogue.summary import mark_warm, summary
from stepscope.web.catalogue.warming import warm

_NICENESS = 10

_SUMMARY_SHARE = 0.7
"""Share of an analysis that a summary takes, as measured on jobs of 8 to 64 ranks: what pages ask uses its answers."""

_LEAST_PROGRESS = 0.01
"""Progress that is worth a message."""


def main() -> None:
    """Serve orders until standard input ends."""
    with suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    messages, out = connected()
    plugins.install()
    send(out, Ready())
    while True:
        order = ORDERS.decode(messages.get())
        send(out, _read(order, out) if isinstance(order, ReadOrder) else _analyse(order, out))


def _read(order: ReadOrder, out: BinaryIO) -> Read:
    places = {item: number for number, item in enumerate(order.inputs)}
    last = 0.0
    throttle = throttled(lambda _: send(out, Progressed(last)))

    def progress(done: int, total: int, _: str) -> None:
        nonlocal last
        last = done / total if total else 0.0
        throttle(0)

    done = ingest(order.inputs, use_store=Store(order.store), progress=progress)
    return Read({places[item]: issue for item, issue in done.refused.items()}, done.warnings)


def _analyse(order: RunOrder, out: BinaryIO) -> Analysed:
    try:
        run = ordered_run(order)
        with watched(_Summarising(lambda ratio: send(out, Progressed(ratio * _SUMMARY_SHARE)))):
            found = summary(run)
        send(out, Summarised(encoded(found)))
    except StepscopeError as error:
        return Analysed(printable(str(error)))
    except Exception as error:
        return Analysed(printable(f"its findings could not be computed ({type(error).__name__}: {error})"))
    warm(run, lambda ratio: send(out, Progressed(_SUMMARY_SHARE + ratio * (1 - _SUMMARY_SHARE))))
    mark_warm(run)
    return Analysed()


class _Summarising:
    """Progress of a summary: how many of the questions about ranks that rules may ask are answered.

    Args:
        report: Called with the ratio, which never falls.
    """

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report = report
        self._expected = sum(one.scope == "rank" for one in ANALYSES.values()) or 1
        self._answered: set[str] = set()
        self._last = 0.0

    def __call__(self, question: str, done: int, total: int) -> None:
        """A part of a question is answered."""
        if done >= total:
            self._answered.add(question)
        part = 0.0 if done >= total else done / total
        ratio = min((len(self._answered) + part) / self._expected, 1.0)
        if ratio > self._last + _LEAST_PROGRESS:
            self._last = ratio
            self._report(ratio)
