"""Stored light records as a timeline for ui.perfetto.dev and chrome://tracing (Chrome's trace format, JSON).

Each rank is a process, with tracks for its steps, its host threads, its device streams and each group that it
communicates in. No range is dropped: those that overlap are on further tracks. Times are microseconds since `base_ns`.
Files are read twice, in batches: once for the base and the steps, once to write.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from stepscope.errors import StepscopeError, UnreadableInput
from stepscope.json_files import SMALL_BYTES, read_object, value_in
from stepscope.json_values import as_index, object_of, whole_number
from stepscope.live.show.event_types import AnyEvent, VerdictOpened, VerdictOver
from stepscope.live.show.stored_ranges import files_for, ranges_in
from stepscope.live.show.tracks import Lanes
from stepscope.recording_format.element_types import element_bytes
from stepscope.recording_format.light import COMMUNICATION_DOMAIN, GROUP_FILE, STEP_PREFIX, WORKER_FILE, operation_of
from stepscope.recording_format.light_ranges import Assembler, LightRange, Problems
from stepscope.selection import Selection

BATCH = 20_000
"""Ranges that are sorted at a time."""


@dataclass(frozen=True)
class Window:
    """Which ranges are exported: those that overlap it.

    Args:
        from_ns: Since the epoch; None from the beginning.
        to_ns: None to the end.
        steps: Only the time of these steps, on each rank.
    """

    from_ns: int | None = None
    to_ns: int | None = None
    steps: Selection | None = None

    def holds(self, one: LightRange) -> bool:
        """Whether a range overlaps it."""
        end_ns = one.start_ns if one.end_ns is None else one.end_ns
        last_ns = max(end_ns, one.device_end_ns or end_ns)
        return (self.to_ns is None or one.start_ns <= self.to_ns) and (self.from_ns is None or last_ns >= self.from_ns)


@dataclass
class Exported:
    """What was written.

    Args:
        ranges: Ranges of the window; a range that was also timed on the device is one.
        events: Events of the trace that stand for them: one each, and one more if timed on the device.
        by_rank: Ranges of each rank.
    """

    base_ns: int = 0
    ranges: int = 0
    events: int = 0
    by_rank: dict[int, int] = field(default_factory=dict)
    verdicts: int = 0
    problems: Problems = field(default_factory=Problems)


def export(
    ranks: dict[int, Path],
    out: Path,
    window: Window = Window(),
    verdicts: Iterable[AnyEvent] = (),
) -> Exported:
    """Write the records of some ranks as one trace.

    Args:
        ranks: Directory of records of each rank.
        out: File to write, replaced if it exists; compressed if its name ends in `.gz`.
        verdicts: Events; those about verdicts become instants.

    Raises:
        StepscopeError: If there are no ranges in the window, or a file cannot be read or written.
    """
    done = Exported()
    try:
        windows = {rank: _narrowed(directory, window) for rank, directory in sorted(ranks.items())}
        bases = [base for _, base in windows.values() if base is not None]
        if not bases:
            raise StepscopeError("no ranges were recorded in that window. Choose another one, or leave it out for all")
        done.base_ns = min(bases)
        with _written(out) as text:
            text.write(f'{{"displayTimeUnit":"ms","baseTimeNanoseconds":{done.base_ns},"traceEvents":[\n')
            text.write(
                json.dumps({"ph": "M", "name": "trace", "pid": 0, "args": {"made_by": "stepscope live timeline"}})
            )
            for rank, (narrowed, base) in windows.items():
                if narrowed is not None and base is not None:
                    for event in _Rank(rank, ranks[rank], narrowed, done).events():
                        text.write(",\n" + json.dumps(event, separators=(",", ":")))
            for event in _instants(verdicts, done, window):
                text.write(",\n" + json.dumps(event, separators=(",", ":")))
            text.write("\n]}\n")
    except OSError as error:
        raise StepscopeError(
            f"{error.filename or out}: {error.strerror or error}. Check the path, permissions and free disk space"
        ) from error
    return done


def last_ns(ranks: dict[int, Path]) -> int | None:
    """The end of the newest range of all ranks, since the epoch; None without records."""
    ends = [
        one.start_ns if one.end_ns is None else one.end_ns
        for directory in ranks.values()
        for one in ranges_in(files_for(directory)[-2:], Assembler())
    ]
    return max(ends, default=None)


def ranks_below(directory: Path) -> dict[int, Path]:
    """The directories of the ranks of a job: `directory` is that of the job, or of one rank.

    Raises:
        StepscopeError: If it holds no records.
    """
    try:
        if directory.name.isdecimal() and files_for(directory):
            return {int(directory.name): directory}
        found = {
            int(each.name): each
            for each in directory.iterdir()
            if each.name.isdecimal() and len(each.name) < 10 and each.is_dir() and files_for(each)
        }
        if found:
            return found
        jobs = [each for each in directory.iterdir() if each.is_dir() and not each.name.isdecimal()]
    except OSError as error:
        raise StepscopeError(f"{directory}: {error.strerror or error}. Give the directory of a job") from error
    holding = sorted(each.name for each in jobs if any(one.name.isdecimal() for one in each.iterdir() if one.is_dir()))
    there = f"It holds these jobs: {', '.join(holding[:8])}" if holding else "Give the directory of a job"
    raise StepscopeError(f"{directory}: holds no records of ranks. {there}")


def _narrowed(directory: Path, window: Window) -> tuple[Window | None, int | None]:
    """The window of one rank by time alone, and when its first range begins; None if it has none."""
    first: int | None = None
    steps: list[tuple[int, int]] = []
    for one in ranges_in(files_for(directory, window.from_ns, window.to_ns), Assembler()):
        if not window.holds(one):
            continue
        if window.steps is None:
            begins = min(one.start_ns, one.device_start_ns or one.start_ns)
            first = begins if first is None else min(first, begins)
        elif one.end_ns is not None and _step_of(one) in window.steps:
            steps.append((one.start_ns, one.end_ns))
    if window.steps is None:
        return window, first
    if not steps:
        return None, None
    within = Window(min(start for start, _ in steps), max(end for _, end in steps))
    return within, _narrowed(directory, within)[1]


def _step_of(one: LightRange) -> int:
    """Number of the step that a range is; -1 if it is none."""
    number = one.name.removeprefix(STEP_PREFIX)
    is_step = one.domain != COMMUNICATION_DOMAIN and number != one.name and number.isdecimal() and len(number) < 16
    return int(number) if is_step else -1


class _Rank:
    """Turns the ranges of one rank into events."""

    def __init__(self, rank: int, directory: Path, window: Window, done: Exported) -> None:
        self._rank, self._directory, self._window, self._done = rank, directory, window, done
        self._tracks: dict[tuple[int, str], Lanes] = {}
        self._ids: dict[tuple[int, str, int], int] = {}
        self._groups = _object_in(directory / GROUP_FILE)
        self._worker = _object_in(directory / WORKER_FILE)

    def events(self) -> Iterator[dict[str, Any]]:
        """Metadata and ranges."""
        host = self._worker.get("host")
        name = f"rank {self._rank}" + (f" ({host[:100]})" if isinstance(host, str) and host else "")
        yield self._meta("process_name", {"name": name})
        yield self._meta("process_sort_index", {"sort_index": self._rank})
        for one in self._ranges():
            self._done.ranges += 1
            self._done.by_rank[self._rank] = self._done.by_rank.get(self._rank, 0) + 1
            yield from self._range(one)

    def _ranges(self) -> Iterator[LightRange]:
        """Those of the window, sorted by their ends within each batch."""
        files = files_for(self._directory, self._window.from_ns, self._window.to_ns)
        found = (one for one in ranges_in(files, Assembler(problems=self._done.problems)) if self._window.holds(one))
        while batch := list(islice(found, BATCH)):
            yield from sorted(
                batch, key=lambda one: (one.start_ns if one.end_ns is None else one.end_ns, -one.start_ns)
            )

    def _range(self, one: LightRange) -> Iterator[dict[str, Any]]:
        args: dict[str, Any] = {}
        name, order, track = one.name, 1, self._host_track(one.thread)
        group = ""
        if one.domain == COMMUNICATION_DOMAIN:
            name, group, args = self._call(one.name)
            order, track = 3, f"communication: {group}"
        elif (step := _step_of(one)) >= 0:
            order, track, args = 0, "steps", {"step": step}
        if one.end_ns is None:
            yield from self._event(order, track, f"{name} (no end recorded)", one.start_ns, None, args)
        else:
            yield from self._event(order, track, name, one.start_ns, one.end_ns, args)
        if one.device_start_ns is not None and one.device_end_ns is not None:
            place = f"device {one.device} stream {one.stream}"
            on_device = f"{place}: {group}" if group else place if order else f"{place}: steps"
            launch_ns = one.device_start_ns - one.start_ns
            args = {**args, "after_host_start_us": launch_ns / 1000}
            yield from self._event(4, on_device, name, one.device_start_ns, one.device_end_ns, args)

    def _host_track(self, thread: int) -> str:
        return f"host thread {thread}" if thread else "host"

    def _call(self, text: str) -> tuple[str, str, dict[str, Any]]:
        """Operation, group and arguments of a call of communication, whose name is JSON itself."""
        told = value_in(text)
        if not isinstance(told, dict):
            return text[:200] or "communication", "unknown group", {}
        key = str(told.get("groupName", ""))
        known = object_of(self._groups, key)
        named = known.get("group_name")
        group = str(named if isinstance(named, str) and named else key)[:200] or "unknown group"
        count = whole_number(told.get("count"))
        size = whole_number(told.get("sizeBytes"))
        each = element_bytes(str(told.get("dataType", "")))
        if size is None and count is not None and each is not None:
            size = count * each
        members = known.get("global_ranks")
        peer = as_index(told.get("destRank")), as_index(told.get("srcRank"))
        args = {
            "group": key[:200],
            "ranks": members if isinstance(members, list) and len(members) <= 64 else None,
            "group_size": len(members) if isinstance(members, list) else whole_number(told.get("groupSize")),
            "size_bytes": size,
            "count": count,
            "data_type": str(told["dataType"])[:64] if told.get("dataType") else None,
            "to_rank": peer[0],
            "from_rank": peer[1],
        }
        operation = operation_of(str(told.get("opName", "")))
        return operation, group, {name: value for name, value in args.items() if value is not None}

    def _event(
        self, order: int, track: str, name: str, start_ns: int, end_ns: int | None, args: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        """A range, or an instant without an end, on a track where it overlaps nothing."""
        lanes = self._tracks.setdefault((order, track), Lanes())
        lane = lanes.place(start_ns, start_ns if end_ns is None else max(end_ns, start_ns))
        thread = self._ids.get((order, track, lane))
        if thread is None:
            thread = self._ids[order, track, lane] = len(self._ids) + 1
            title = track if not lane else f"{track} ({lane + 1})"
            yield self._meta("thread_name", {"name": title}, thread)
            yield self._meta("thread_sort_index", {"sort_index": order * 10_000 + thread}, thread)
        event: dict[str, Any] = {"ph": "X", "name": name, "pid": self._rank, "tid": thread, "ts": self._us(start_ns)}
        if end_ns is None:
            event |= {"ph": "i", "s": "t"}
        else:
            event["dur"] = max(end_ns - start_ns, 0) / 1000
        if args:
            event["args"] = args
        self._done.events += 1
        yield event

    def _meta(self, name: str, args: dict[str, Any], thread: int = 0) -> dict[str, Any]:
        return {"ph": "M", "name": name, "pid": self._rank, "tid": thread, "args": args}

    def _us(self, at_ns: int) -> float:
        return (at_ns - self._done.base_ns) / 1000


def _instants(events: Iterable[AnyEvent], done: Exported, window: Window) -> Iterator[dict[str, Any]]:
    """Verdicts, as instants over all ranks, when what they are about began and when it was over."""
    for event in events:
        if not isinstance(event, (VerdictOpened, VerdictOver)):
            continue
        over = isinstance(event, VerdictOver)
        verdict = event.verdict
        at_ns = verdict.until_at_ns if over else verdict.since_at_ns
        if at_ns is None or at_ns < max(done.base_ns, window.from_ns or 0) or at_ns > (window.to_ns or at_ns):
            continue
        done.verdicts += 1
        yield {
            "ph": "i",
            "s": "g",
            "name": f"{'over: ' if over else ''}{event.headline}",
            "pid": min(verdict.ranks, default=0),
            "tid": 0,
            "ts": (at_ns - done.base_ns) / 1000,
            "args": {"cause": verdict.cause.value, "ranks": verdict.ranks, "circumstances": event.circumstances},
        }


def _object_in(file: Path) -> dict[str, Any]:
    """A small JSON object beside the records; empty if there is none."""
    try:
        return read_object(file, most_bytes=SMALL_BYTES)
    except UnreadableInput:
        return {}


@contextmanager
def _written(out: Path) -> Iterator[IO[str]]:
    """A text file that is there only once it is complete."""
    draft = out.with_name(f".{out.name}.part")
    try:
        if out.name.endswith(".gz"):
            with gzip.open(draft, "wt", encoding="utf-8", compresslevel=3) as packed:
                yield packed
        else:
            with draft.open("w", encoding="utf-8") as plain:
                yield plain
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)


def chosen(ranks: dict[int, Path], selection: Selection | None) -> dict[int, Path]:
    """Some of the ranks.

    Raises:
        StepscopeError: If none of them has records.
    """
    kept = {rank: directory for rank, directory in ranks.items() if selection is None or rank in selection}
    if not kept:
        there: Sequence[int] = sorted(ranks)
        raise StepscopeError(f"no records of {selection.named('rank') if selection else 'ranks'}. Ranks: {there[:20]}")
    return kept
