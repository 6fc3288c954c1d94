"""Reading what the runtime profiler wrote of one process."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.json_values import as_index
from stepscope.sources.base import Input, Sink
from stepscope.sources.runtime_profiler.events import STATED, read_detail, read_json_events
from stepscope.sources.runtime_profiler.tables import RuntimeTables, steps_of
from stepscope.sources.windows import around
from stepscope.tables import RANKS, STEPS

_RANK = re.compile(r"rank_(\d{1,9})")


def read_events(item: Input, kinds: Mapping[str, Path], sink: Sink) -> None:
    """Read the events of one process.

    Args:
        item: The input.
        kinds: Its files by kind: `Detail`, `Json` or `Summary`. A detail passed alone may have any name.
        sink: Takes the rows.

    Raises:
        UnreadableInput: If no event can be read.
    """
    tables = RuntimeTables(sink)
    lengths = [pl.DataFrame(schema=STATED)]
    file = kinds.get("Detail") or kinds.get("Json") or item.files[0]
    for events, stated in _events(item, file, file == kinds.get("Json"), sink):
        lengths.append(stated)
        tables.write(events)
    tables.report(file)
    if tables.span is None:
        raise UnreadableInput(file, "has no event of the runtime profiler", "Copy it again, or record again")
    steps = steps_of(tables.steps(), pl.concat(lengths))
    if not steps.is_empty():
        sink.write(STEPS, steps)
    whole = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0) if steps.height else None
    sink.write(RANKS, _rank_row(item, tables, around([tables.span, whole])))


def _events(item: Input, file: Path, is_json: bool, sink: Sink) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Events and lengths of steps, from the detail, otherwise from the JSON file."""
    if not is_json:
        try:
            yield from read_detail(file, sink)
        except OSError as error:
            raise UnreadableInput(file, f"cannot be read: {error.strerror}", "Check the file and its disk") from error
        return
    problem = "the detail file is missing, so steps are unknown; events are read from the JSON file"
    sink.issue("warning", item.path, problem, "Copy RuntimeProfilerDetail*.csv too", place="steps")
    for frame in read_json_events(file, sink):
        yield frame, pl.DataFrame(schema=STATED)


def _rank_row(item: Input, tables: RuntimeTables, span: tuple[int, int] | None) -> pl.DataFrame:
    folder = item.path if item.path.is_dir() else item.path.parent
    match = _RANK.fullmatch(folder.name)
    start_ns, end_ns = span or (None, None)
    return RANKS.unchecked(
        rank=[as_index(match[1]) if match else None],
        rank_origin=["file name" if match else None],
        process=[tables.process],
        framework=["mindspore"],
        format=[item.source],
        takes_functions=[False],
        start_ns=[start_ns],
        end_ns=[end_ns],
    )
