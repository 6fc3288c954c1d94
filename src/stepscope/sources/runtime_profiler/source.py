"""The reader of MindSpore's runtime profiler."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from stepscope.errors import UnreadableInput
from stepscope.json_values import as_index
from stepscope.paths import natural
from stepscope.sources.base import PROFILER_REASONS, Found, Input, Sink
from stepscope.sources.runtime_profiler.events import STATED, read_detail, read_json_events
from stepscope.sources.runtime_profiler.tables import RuntimeTables, steps_of
from stepscope.sources.windows import around
from stepscope.tables import RANKS, STEPS

_NAME = re.compile(r"RuntimeProfiler(Detail|Json|Summary)(\d+)\.(?:csv|json)")
_RANK = re.compile(r"rank_(\d{1,9})")
_FIRST_LINE = re.compile(rb"^\[Step:\d+,? step_time:\d+ns, module_total_time:\d+ns\]\s*\n\s*(?:module|stage):")


class RuntimeProfilerSource:
    """Reads what the runtime profiler wrote of one process."""

    name = "runtime_profiler"
    version = 2
    family = "runtime"
    reasons: Mapping[str, str] = {
        **PROFILER_REASONS,
        **dict.fromkeys(("kernels", "allocations", "memory_curve", "stacks"), "it records host ranges only"),
    }
    own_tables = frozenset({"host_events"})

    def find(self, directory: Path, names: Sequence[str]) -> Found | None:
        """A directory with its files: an input for each process, which share the number in their names."""
        files: dict[str, list[Path]] = defaultdict(list)
        rest = []
        for name in names:
            if match := _NAME.fullmatch(name):
                files[match[2]].append(directory / name)
            else:
                rest.append(name)
        found = [
            Input(self.name, directory, tuple(sorted(files[stamp])), stamp if len(files) > 1 else "")
            for stamp in sorted(files, key=natural)
        ]
        inputs = tuple(item for item in found if {"Detail", "Json"} & _kinds(item).keys())
        return Found(inputs, tuple(rest)) if inputs else None

    def sniff(self, file: Path, head: bytes) -> Input | None:
        """A detail by its first lines; the other files by their names."""
        match = _NAME.fullmatch(file.name)
        known = match is not None and match[1] != "Summary"
        return Input(self.name, file, (file,)) if known or _FIRST_LINE.match(head) else None

    def read(self, item: Input, sink: Sink) -> None:
        """Read the events of one process.

        Raises:
            UnreadableInput: If no event can be read.
        """
        tables = RuntimeTables(sink)
        lengths = [pl.DataFrame(schema=STATED)]
        for events, stated in _events(item, sink):
            lengths.append(stated)
            tables.write(events)
        file = _file_of(item)
        tables.report(file)
        if tables.span is None:
            raise UnreadableInput(file, "has no event of the runtime profiler", "Copy it again, or record again")
        steps = steps_of(tables.steps(), pl.concat(lengths))
        if not steps.is_empty():
            sink.write(STEPS, steps)
        whole = steps.select(pl.min("start_ns"), pl.max("end_ns")).row(0) if steps.height else None
        sink.write(RANKS, _rank_row(item, tables, around([tables.span, whole])))


def _events(item: Input, sink: Sink) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Events and lengths of steps, from the detail, otherwise from the JSON file."""
    file = _file_of(item)
    if _kinds(item).get("Json") != file:
        try:
            yield from read_detail(file, sink)
        except OSError as error:
            raise UnreadableInput(file, f"cannot be read: {error.strerror}", "Check the file and its disk") from error
        return
    problem = "the detail file is missing, so steps are unknown; events are read from the JSON file"
    sink.issue("warning", item.path, problem, "Copy RuntimeProfilerDetail*.csv too", place="steps")
    for frame in read_json_events(file, sink):
        yield frame, pl.DataFrame(schema=STATED)


def _kinds(item: Input) -> dict[str, Path]:
    return {match[1]: file for file in item.files if (match := _NAME.fullmatch(file.name))}


def _file_of(item: Input) -> Path:
    """The file that is read: the detail, with any name if it is passed alone, otherwise the JSON file."""
    kinds = _kinds(item)
    return kinds.get("Detail") or kinds.get("Json") or item.files[0]


def _rank_row(item: Input, tables: RuntimeTables, span: tuple[int, int] | None) -> pl.DataFrame:
    folder = item.path if item.path.is_dir() else item.path.parent
    match = _RANK.fullmatch(folder.name)
    start_ns, end_ns = span or (None, None)
    return RANKS.unchecked(
        rank=[as_index(match[1]) if match else None],
        rank_origin=["file name" if match else None],
        process=[tables.process],
        framework=["mindspore"],
        format=[RuntimeProfilerSource.name],
        takes_functions=[False],
        start_ns=[start_ns],
        end_ns=[end_ns],
    )
