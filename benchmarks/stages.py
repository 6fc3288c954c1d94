"""Do one part of what `stepscope analyze` does, with all that precedes it: `python benchmarks/stages.py rows PATH`.

Parts, in order: `imported`, `decoded` (a trace's text to columns), `rows` (columns to rows of tables), `opened` (rows
to the store, or found there), `answered` (the page of `analyze`), `advised`. What `decoded` and `rows` make is dropped
at once, so the difference of two parts, each measured in a fresh process, is what the later one adds.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import polars as pl

import stepscope
from stepscope.ingest.inputs import worker_count
from stepscope.pages.answering import answer
from stepscope.pages.job import PAGE
from stepscope.report.answers import answers
from stepscope.sources.discover import discover
from stepscope.sources.kineto.layout import LAYOUT
from stepscope.sources.registry import all_sources
from stepscope.sources.trace_events.reader import TraceEvents
from stepscope.store.sinks import MemorySink
from stepscope.tables import Table


class Dropping(MemorySink):
    """Checks rows as any other sink and then drops them."""

    def _add(self, table: Table, frame: pl.DataFrame) -> None:
        pass


def decoded(path: Path) -> None:
    """Decode the text of every trace to columns."""
    for item in discover([path]).inputs:
        for _ in TraceEvents(item.path, LAYOUT, Dropping(item.source, worker_count())):
            pass


def rows(path: Path) -> None:
    """Read every input in this process, keeping nothing."""
    sources = {source.name: source for source in all_sources()}
    inputs = discover([path]).inputs
    for item in inputs:
        sink = Dropping(item.source, worker_count() if len(inputs) == 1 else 1)
        sources[item.source].read(item, sink)
        sink.close()


STAGES: dict[str, Callable[[Path], object]] = {
    "imported": Path.exists,
    "decoded": decoded,
    "rows": rows,
    "opened": stepscope.open_run,
    "answered": lambda path: answer(stepscope.open_run(path), PAGE),
    "advised": lambda path: answers(stepscope.open_run(path)),
}


def main() -> None:
    """Do it; nothing is printed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("path", type=Path)
    chosen = parser.parse_args()
    STAGES[chosen.stage](chosen.path)


if __name__ == "__main__":
    main()
