"""The process that answers SQL queries: apart from the server, as a query may take any time and any memory."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec
import polars as pl

from stepscope import plugins
from stepscope.errors import StepscopeError
from stepscope.ingest.read import printable
from stepscope.plugins import FAILURES
from stepscope.present import plural
from stepscope.processes import connected, decoder, send
from stepscope.run import Run
from stepscope.web.catalogue.orders import RunOrder, ordered_run

MOST_BYTES = 64 << 20
"""Size of the largest result, chosen by us: nobody reads more than its first pages, and the server keeps it."""

MEMORY_BYTES = 4 << 30
"""Memory that a query may take beyond what the process takes at its start, chosen by us."""


class QueryOrder(msgspec.Struct, frozen=True, tag=True):
    """A query about a run."""

    run: RunOrder
    sql: str


class Rows(msgspec.Struct, frozen=True, tag=True):
    """The result, as a stream of Arrow."""

    content: bytes


class Refused(msgspec.Struct, frozen=True, tag=True):
    """Why there is none."""

    problem: str


ORDERS: msgspec.msgpack.Decoder[QueryOrder] = decoder(QueryOrder)
ANSWERS: msgspec.msgpack.Decoder[Rows | Refused] = decoder(Rows | Refused)


def main() -> None:
    """Serve queries until standard input ends; an empty message says that it has begun."""
    messages, out = connected()
    plugins.install()
    _limit_memory()
    send(out, "")
    while True:
        payload = messages.get()
        send(out, _answered(ORDERS.decode(payload)))


def _answered(order: QueryOrder) -> Rows | Refused:
    try:
        found = _opened(msgspec.msgpack.encode(order.run, enc_hook=str)).query(order.sql)
        if (size := found.estimated_size()) > MOST_BYTES:
            return Refused(
                f"the result has {plural(found.height, 'row')} and takes {size / 1e6:.0f} MB; at most "
                f"{MOST_BYTES / 1e6:.0f} MB are shown. Ask for fewer rows or columns, e.g. with LIMIT"
            )
        return Rows(found.write_ipc_stream(None, compression="lz4").getvalue())
    except StepscopeError as error:
        return Refused(printable(str(error)))
    except (*FAILURES, pl.exceptions.PanicException) as error:
        return Refused(printable(f"the query failed ({type(error).__name__}: {error}). Ask in another way"))


@lru_cache(maxsize=2)
def _opened(order: bytes) -> Run:
    """A run that was asked lately, or anew; an order with its paths as texts is what tells runs apart."""
    return ordered_run(msgspec.msgpack.decode(order, type=RunOrder, dec_hook=lambda kind, text: kind(text)))


def _limit_memory() -> None:
    with suppress(ImportError, OSError, ValueError):  # only where there are such limits
        import resource  # noqa: PLC0415 - not on Windows

        status = Path("/proc/self/statm").read_text()
        pages = int(status.split()[5])  # data and stack, which the limit is about
        most = pages * resource.getpagesize() + MEMORY_BYTES
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard < 0 else min(most, hard), hard))
