"""The process that reads and analyses runs for the server, which so stays small and has its time for pages."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import BinaryIO

from stepscope import plugins
from stepscope.errors import StepscopeError
from stepscope.ingest import ingest
from stepscope.ingest.read import printable, throttled
from stepscope.processes import connected, send
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
        send(out, Summarised(encoded(summary(run))))
    except StepscopeError as error:
        return Analysed(printable(str(error)))
    except Exception as error:
        return Analysed(printable(f"its findings could not be computed ({type(error).__name__}: {error})"))
    warm(run, lambda ratio: send(out, Progressed(ratio)))
    mark_warm(run)
    return Analysed()
