"""The ranges of one process, as marks of the recorder: read in blocks, whatever the size of the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import polars as pl

from stepscope.present import plural
from stepscope.recording_format.light import Call, call_in, kind_of
from stepscope.recording_format.light_ranges import Assembler, LightRange, WholeLines
from stepscope.recording_format.marks import CHECKPOINT, COLLECTIVE, DATA, STEP
from stepscope.sources.base import Sink
from stepscope.sources.light.stored import StoredRanges

_BLOCK = 4 << 20
_HELD = 2_000
"""The last ranges of a part wait for the next one, since those that were timed on the device are complete later."""
_COLUMNS = {
    "kind": pl.String,
    "name": pl.String,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "step": pl.Int64,
    "thread": pl.String,
    "detail": pl.String,
}
LOADER = "DataLoader"
"""What a loader of unknown name is called, as by PyTorch's profiler."""
LOADS = {"time_ns": pl.Int64, "duration_ns": pl.Int64}


@dataclass
class Ranges:
    """Reads the ranges of one process.

    Args:
        files: In the order in which they were written.
        process: Only what this process has written; None if there is only one.
    """

    files: Sequence[Path]
    process: int | None
    sink: Sink
    stored: StoredRanges
    """Takes all ranges as they are stored."""
    others: int = 0
    """Ranges of other names than the five kinds."""
    on_device: int = 0
    """Ranges whose times are those of the device."""
    loads: list[pl.DataFrame] = field(default_factory=list)
    """When the training loop got a batch, and how long it had waited for it, as `LOADS`."""
    _assembler: Assembler = field(default_factory=Assembler)
    _step_end_ns: int | None = None
    _between_ns: int | None = None

    def marks(self) -> Iterator[pl.DataFrame]:
        """The ranges as marks, in parts, in the order in which they began to be written."""
        held: list[LightRange] = []
        for lines in self._blocks():
            held += self._wanted(self._assembler.feed(lines))
            held.sort(key=lambda one: one.place)
            if len(held) > _HELD:
                yield self._frame(held[:-_HELD])
                del held[:-_HELD]
        held += self._wanted(self._assembler.finish())
        held.sort(key=lambda one: one.place)
        yield self._frame(held)

    def report(self) -> None:
        """Report what could not be read, and what is no light tracing."""
        path, problems = self.files[0], self._assembler.problems
        if problems.bad_lines:
            problem = f"{plural(problems.bad_lines, 'line')} damaged, cut off or too long, and left out"
            self.sink.issue("warning", path, problem, "The rest is complete", lost=problems.bad_lines)
        if problems.unended:
            problem = f"{plural(problems.unended, 'range')} without a recorded end left out of all but the timeline"
            remedy = "Nothing to do: the process ended, or the job still runs"
            self.sink.issue("note", path, problem, remedy, lost=problems.unended)
        if problems.startless:
            problem = f"{plural(problems.startless, 'range')} without a recorded start left out"
            remedy = "Nothing to do if older files were deleted by ageing"
            self.sink.issue("note", path, problem, remedy, lost=problems.startless)
        rest = problems.others + self.others
        if rest:
            problem = f"{plural(rest, 'record')} of other kinds or names left out, of names only of analyses"
            remedy = "Nothing to do: they are a user's own marks, or of a newer version"
            self.sink.issue("note", path, problem, remedy, lost=rest)

    def _wanted(self, ranges: Iterator[LightRange]) -> list[LightRange]:
        """Those of the process that have an end."""
        own = [one for one in ranges if self.process in (None, one.process)]
        if own:
            self.stored.add(own)
        return [one for one in own if one.end_ns is not None]

    def _blocks(self) -> Iterator[bytes]:
        """Whole lines, block by block; the last line of each file also where it has no end."""
        for file in self.files:
            lines = WholeLines(self._assembler.problems)
            try:
                with file.open("rb") as text:
                    while block := text.read(_BLOCK):
                        self.sink.advance(len(block))
                        if whole := lines.take(block):
                            yield whole
            except OSError as error:
                problem = f"cannot be read: {error.strerror or error}"
                self.sink.issue("error", file, problem, "Check the file and its disk")
            if lines.rest.strip():
                yield lines.rest + b"\n"

    def _frame(self, ranges: Sequence[LightRange]) -> pl.DataFrame:
        rows, loads = [], []
        for one in ranges:
            known = kind_of(one.name, one.domain)
            if known is None:
                self.others += 1
                continue
            kind, number = known
            start_ns, end_ns = self._times(one)
            name, detail = None, None
            if kind == COLLECTIVE:
                call = call_in(one.name)
                name, detail = call.operation, detail_of(call)
            elif kind == STEP:
                name = str(number)
                start_ns = self._begun_ns(start_ns, end_ns)
            elif kind in (DATA, CHECKPOINT) and (self._step_end_ns is None or start_ns >= self._step_end_ns):
                self._between_ns = min(start_ns, self._between_ns or start_ns)
            if kind == DATA:
                name = LOADER
                loads.append((end_ns, end_ns - start_ns))
            step = number if kind == STEP else None
            rows.append((kind, name, start_ns, end_ns, step, str(one.thread), detail))
        if loads:
            self.loads.append(pl.DataFrame(loads, schema=LOADS, orient="row"))
        return pl.DataFrame(rows, schema=_COLUMNS, orient="row")

    def _times(self, one: LightRange) -> tuple[int, int]:
        """When a range ran: on the device if that is known, since the host only launches it."""
        if one.device_start_ns is not None and one.device_end_ns is not None:
            self.on_device += 1
            return one.device_start_ns, one.device_end_ns
        return one.start_ns, one.end_ns or one.start_ns

    def _begun_ns(self, start_ns: int, end_ns: int) -> int:
        """When a step began. TaskD marks the body of the loop; a step of ours also holds what comes before it: loading
        its batch, and saving a checkpoint."""
        before, self._between_ns = self._between_ns, None
        last, self._step_end_ns = self._step_end_ns, end_ns
        return before if before is not None and (last or 0) <= before < start_ns else start_ns


@lru_cache(maxsize=4096)
def detail_of(call: Call) -> str:
    """The `detail` that the recorder's mark of a call would have. Calls repeat, so this is cached."""
    known = {
        "group": call.group,
        "group_size": call.group_size,
        "size_bytes": call.size_bytes,
        "element_type": call.element_type,
        "peer": call.peer,
        "async": call.is_async,
    }
    return json.dumps({key: value for key, value in known.items() if value is not None})
