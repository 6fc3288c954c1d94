"""From a run to a timeline: family by family, some ranks and a window of time after the other, into a writer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

import polars as pl

from stepscope import present
from stepscope.errors import Cancelled, StepscopeError
from stepscope.paths import input_around, shown
from stepscope.plugins import FAILURES
from stepscope.run import Run
from stepscope.selection import named_numbers, parse_selection
from stepscope.timeline.clocks import Clocks, clocks_of
from stepscope.timeline.drafts import draft_of, is_packed, opened
from stepscope.timeline.lanes import Lanes
from stepscope.timeline.left_out import LeftOut
from stepscope.timeline.limits import GUESSED_BYTES, PACKED, Budget, Everyth, Longest
from stepscope.timeline.options import FORMATS, KINDS, MOST_EXPLAINED, Format, TimelineOptions, Written
from stepscope.timeline.sound import Sound
from stepscope.timeline.tracks import FAMILIES
from stepscope.timeline.tracks.base import JOB, RANGE_COLUMNS, SAMPLE_COLUMNS, TABLE, Family, Part
from stepscope.timeline.writing.base import Process, Track, Writer

WINDOW_ROWS = 500_000
"""Rows of a rank that are written at once, in some 200 MB."""
ROWS_AT_ONCE = 250_000
"""Rows of ranks that are asked together."""
RANKS_AT_ONCE = 64
JSON_ENDINGS = (".json", ".json.gz")
MOST_TRIES = 6
"""How often a file that must stay small is written; each time, less is put into it."""
GOOD_SHARE = 0.7
"""Part of the allowed size that a file should have if not all fits into it."""
MOST_TITLE = 200
"""Characters of the title of a track, chosen by us."""
MOST_ORDER = 2_000_000
"""Places of tracks among their like, so that they fit into 32 bits with those of their lanes."""
JOB_TITLE = "job (all ranks)"


def write_timeline(
    run: Run,
    out: Path | str,
    options: TimelineOptions | None = None,
    *,
    format: Format | None = None,  # noqa: A002 - the word of the command
    extra: Sequence[Family] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Written:
    """Write the timeline of a run: its ranks as processes, on one clock.

    Args:
        run: The run, narrowed to the ranks and steps to show.
        out: The file to write, whole or not at all; replaced if it exists. Compressed if its name ends in `.gz`.
        options: What to show.
        format: `perfetto` or `json`. Default: by the name of the file, JSON for `.json` and `.json.gz`.
        extra: Further families of tracks, shown above the others: what the run itself does not know.
        progress: Told what is being written.

    Raises:
        StepscopeError: If there is nothing with a time to show, an option is not possible, the file lies in an input of
            the run, or it cannot be written.
    """
    file = Path(out)
    wanted, unexplained = explained(run, options or TimelineOptions())
    form = format or format_of(file)
    _check(run, file, wanted, form)
    narrowed = with_graphs(run, wanted)
    families = (*extra, *FAMILIES)
    clocks = clocks_of(narrowed, align=wanted.align)
    limit = share = wanted.limit_bytes
    packed = is_packed(file)
    known: dict[str, float] = {}
    with draft_of(file) as draft:
        for tried in range(MOST_TRIES):
            written = Written(file, form)
            budget = Budget(share and share * (PACKED if packed else 1), GUESSED_BYTES[form], known)
            with opened(draft, packed=packed) as stream:
                _Building(narrowed, wanted, families, clocks, budget).write(stream, written, progress)
            written.size_bytes = size = draft.stat().st_size
            written.notes += unexplained
            if limit is None or share is None:
                return written
            # What rows take is known once they were written: then more of them may fit.
            is_good = tried or not written.left_out or (size > GOOD_SHARE * limit and not budget.was_spent)
            if size <= limit and is_good:
                return written
            known = {**known, **budget.learned}
            if packed or size > limit:
                share = max(int(share * 0.9 * limit / size), 1)
    raise _too_small(file, limit or 0)


def _too_small(file: Path, limit: int) -> StepscopeError:
    return StepscopeError(f"{shown(file)}: not even the steps fit into {present.size(limit)}. Allow a larger file")


def format_of(file: Path) -> Format:
    """The format that a file's name asks for."""
    return "json" if file.name.lower().endswith(JSON_ENDINGS) else "perfetto"


def explained(run: Run, options: TimelineOptions) -> tuple[TimelineOptions, list[str]]:
    """The options with `explain` decided, and what to say of that."""
    if options.explain is not None:
        return options, []
    rows = sum(rank.rows.get(name, 0) for rank in run.ranks for name in ("slices", "kernels"))
    explain = rows <= MOST_EXPLAINED
    untold = (
        "Idle time by cause, the critical path and findings are left out: in so large a recording they take longer "
    )
    notes = [f"{untold}than all else. --explain adds them."] if not explain and options.kind == "detail" else []
    return replace(options, explain=explain), notes


def with_graphs(run: Run, options: TimelineOptions) -> Run:
    """The run with the steps of the wanted graphs only.

    Raises:
        StepscopeError: If graphs are wanted, and none of them has steps.
    """
    chosen = parse_selection(options.graphs, "graphs")
    if chosen is None:
        return run
    known = run.table("steps").select("graph", "step").drop_nulls().unique().sort("graph", "step").collect()
    there = known["graph"].unique().sort()
    if there.is_empty():
        raise StepscopeError(f"{shown(run.path)}: its steps are not counted by graph (model). Leave out --graphs")
    steps = known.filter(chosen.expression("graph"))["step"].unique().sort()
    if steps.is_empty():
        raise StepscopeError(
            f"{shown(run.path)}: no step is of {chosen.named('graph')}; it has {named_numbers('graph', there)}. "
            "Choose from them"
        )
    return run.select(steps=steps.to_list())


def _check(run: Run, file: Path, options: TimelineOptions, form: Format) -> None:
    if options.kind not in KINDS:
        raise StepscopeError(f"{options.kind!r} is no kind of timeline. Choose {' or '.join(KINDS)}")
    if form not in FORMATS:
        raise StepscopeError(f"{form!r} is no format of timelines. Choose {' or '.join(FORMATS)}")
    if options.limit_bytes is not None and options.limit_bytes <= 0:
        raise StepscopeError("The limit of the file's size must be above 0")
    around = input_around(file, {rank.path for rank in run.whole.ranks})
    if around is not None:
        raise StepscopeError(
            f"{shown(file)}: this is in the recording {shown(around)}, into which nothing is written. Give "
            "another place"
        )
    if file.is_dir():
        raise StepscopeError(f"{shown(file)}: this is a directory. Give the name of a file")


class _Building:
    """The work on one file."""

    def __init__(
        self, run: Run, options: TimelineOptions, families: tuple[Family, ...], clocks: Clocks, budget: Budget
    ) -> None:
        self._run, self._options, self._clocks, self._budget = run, options, clocks, budget
        self._families = families
        self._ranks = {each.rank: each.facts for each in run.ranks}
        self._reasons: dict[str, str] = {}
        self._numbers: dict[tuple[int, str, str], int] = {}
        """Tracks by rank, family and title, before lanes."""
        self._tracks: dict[tuple[int, int], Track] = {}
        """Tracks of the file by these numbers and lane."""
        self._processes: set[int] = set()
        self._events: dict[tuple[int, str, str], int] = {}
        self._left = LeftOut()
        self._sound = Sound(clocks.first_ns, self._left)
        self._following = 0
        """About how many rows there are of the families that follow."""

    def write(self, stream: BinaryIO, written: Written, progress: Callable[[str], None]) -> None:
        """Write the file, and what there is to say of it."""
        written.base_ns = self._clocks.first_ns
        written.offsets_ns = {rank: shift for rank, shift in sorted(self._clocks.by_rank.items()) if shift}
        writer = writer_of(written.format, stream, written.base_ns)
        families = sorted(filter(self._is_wanted, self._families), key=_before)
        for place, family in enumerate(families):
            progress(family.title)
            self._following = sum(self._about(each) for each in families[place + 1 :])
            self._family(family, writer)
        writer.close()
        written.left_out = self._left.said()
        if not self._events:
            raise self._empty(written)
        written.events = dict(sorted(self._events.items()))
        written.tracks = len(self._tracks)
        written.notes += [*self._clocks.notes, *self._sound.notes(written.format)]

    def _empty(self, written: Written) -> StepscopeError:
        """Why there is nothing in the file."""
        if self._budget.limit_bytes is not None and self._left.is_limited:
            return _too_small(written.file, self._options.limit_bytes or 0)
        if written.left_out:
            why = "; ".join(f"{title}: {reason}" for title, reason in written.left_out.items())
            return StepscopeError(f"{shown(self._run.path)}: there is no timeline, since all was left out. {why}")
        return StepscopeError(
            f"{shown(self._run.path)}: nothing with a time was recorded of these ranks, steps and moments, so "
            "there is no timeline. `stepscope info` lists what was recorded"
        )

    def _is_wanted(self, family: Family) -> bool:
        return (family.kind == "summary" or self._options.kind == "detail") and family.wanted(self._options)

    def _family(self, family: Family, writer: Writer) -> None:
        """Write all rows of a family."""
        chosen = self._chosen(family, writer)
        for part in self._parts(family):
            lanes = Lanes()
            until: int | None = None
            for found, until in self._windows(family, part):
                rows = self._sound.rows(family, found)
                kept = rows if chosen is None else chosen(rows)
                why = ""
                if self._budget.is_spent(family.name, writer.size_bytes, kept.height):
                    kept, why = kept.clear(), "the file is as large as allowed"
                if kept.height < rows.height:
                    self._left.add(family.title, rows.height - kept.height, why, limited=True)
                self._write(family, kept, until, lanes, writer)
            if until is not None:  # the last window failed: what is open in the writer ends there
                nothing = pl.DataFrame(schema={"number": pl.Int64, **RANGE_COLUMNS, "end_ns": pl.Int64})
                writer.ranges(nothing.drop("rank", "track", "order", "duration_ns"), None)

    def _write(self, family: Family, rows: pl.DataFrame, until: int | None, lanes: Lanes, writer: Writer) -> None:
        before = writer.size_bytes
        if family.shape == "samples":
            self._samples(family, rows, writer)
        else:
            self._ranges(family, rows, until, lanes, writer)
        self._budget.wrote(family.name, rows.height, writer.size_bytes - before)

    def _about(self, family: Family) -> int:
        """The rows of the tables that a family shows."""
        return sum(rank.rows.get(name, 0) for rank in self._run.ranks for name in family.tables)

    def _parts(self, family: Family) -> Iterator[Part]:
        """Some ranks after the other: many small ones at once, large ones alone."""
        run = self._run
        held: list[int] = []
        rows = 0
        groups = []
        for rank in run.ranks:
            # What is asked whole may be an answer made of any rows of the rank.
            own = sum(rank.rows.get(name, 0) for name in family.paged or rank.rows)
            if held and (rows + own > ROWS_AT_ONCE or len(held) >= RANKS_AT_ONCE):
                groups.append(held)
                held, rows = [], 0
            held.append(rank.rank)
            rows += own
        groups.append(held)
        for group in groups:
            alone = len(groups) == 1
            part = run if alone else run.select(ranks=group)
            yield Part(
                part,
                self._options,
                job=None if alone else run,
                shifts_ns=self._clocks.by_rank,
                reasons=self._reasons,
            )

    def _windows(self, family: Family, part: Part) -> Iterator[tuple[pl.DataFrame, int | None]]:
        """The rows of some ranks, a window of time after the other, each with the start of the next one.

        A family that fails costs only its own rows, unless errors are to be seen (`--debug`).
        """
        try:
            cuts = self._cuts(family, part)
            for window in zip_longest([None, *cuts], cuts):
                found = family.rows(part.within(window, family.paged) if cuts else part)
                if found is None:
                    return
                rows = self._checked(family, found.collect())
                until = window[1]
                if until is not None:
                    until -= self._clocks.of(part.ranks[0], family.tables)
                if rows.height or cuts:
                    yield rows, until
        except (*FAILURES, pl.exceptions.PanicException) as error:
            if os.environ.get("STEPSCOPE_DEBUG") or isinstance(error, Cancelled):
                raise
            why = str(error) if isinstance(error, StepscopeError) else f"{type(error).__name__}: {error}"
            self._left.add(family.title, 0, f"it failed: {why}", failed=True)

    def _cuts(self, family: Family, part: Part) -> list[int]:
        """Where windows of a rank with many rows begin, but for the first one."""
        if len(part.ranks) > 1 or not family.paged:
            return []
        if len({self._clocks.of(part.ranks[0], (name,)) for name in family.paged}) > 1:  # they share no window
            return []
        tables = [part.table(name).select("start_ns") for name in family.paged if part.has(name)]
        if sum(part.run.ranks[0].rows.get(name, 0) for name in family.paged) <= WINDOW_ROWS or not tables:
            return []
        times = pl.concat(pl.collect_all(tables)).to_series().drop_nulls().sort()
        every = self._budget.window_rows(family.name, WINDOW_ROWS)
        cuts: list[int] = times.gather_every(every).unique(maintain_order=True).to_list()
        return cuts[1:]

    def _shifted(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows on the common clock, each moved as the table is from which its time comes."""
        ranks, key = [*self._ranks, JOB], ["rank"]
        shifts = self._clocks.frame(ranks, family.tables)
        if TABLE in rows.columns:
            of_tables = [self._clocks.frame(ranks, (name,)).with_columns(table=pl.lit(name)) for name in family.tables]
            shifts, key = pl.concat(of_tables), ["rank", TABLE]
        moved = rows.join(shifts, on=key, how="inner", maintain_order="left")
        return moved.with_columns(pl.col("start_ns") - pl.col("shift_ns")).drop("shift_ns", TABLE, strict=False)

    def _checked(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the columns that all have, on the common clock."""
        declared = SAMPLE_COLUMNS if family.shape == "samples" else RANGE_COLUMNS
        rows = rows.cast({name: kind for name, kind in declared.items() if name in rows.columns})
        rows = self._shifted(family, rows)
        if family.shape == "samples":
            return self._in_window(rows.filter(pl.col("value").is_not_null()), pl.col("start_ns"))
        return self._in_window(rows, pl.col("start_ns") + pl.col("duration_ns").fill_null(0).clip(lower_bound=0))

    def _in_window(self, rows: pl.DataFrame, end: pl.Expr) -> pl.DataFrame:
        """The rows that overlap the window of time that is wanted."""
        first, last = self._options.window_ns or (None, None)
        rows = rows if first is None else rows.filter(end >= first)
        return rows if last is None else rows.filter(pl.col("start_ns") <= last)

    def _chosen(self, family: Family, writer: Writer) -> Callable[[pl.DataFrame], pl.DataFrame] | None:
        """What is kept of the rows if not all fit: the longest ranges, or every n-th sample; None for all."""
        left = self._budget.rows_left(family.name, writer.size_bytes)
        if left is None:
            return None
        if family.priority:  # up to half of it is for what follows
            left -= min(left // 2, self._following)
        sizes = [
            rows["duration_ns"] if family.shape == "ranges" else rows["start_ns"]
            for part in self._parts(family)
            for rows, _ in self._windows(family, part)
        ]
        total = sum(len(each) for each in sizes)
        if total <= left:
            return None
        if family.shape == "samples":
            every = Everyth(-(-total // left) if left else total)
            self._left.add(family.title, 0, f"of samples, one in {every.every} is kept")
            return lambda rows: rows.filter(every.kept(rows["value"].is_not_null()))
        longest = Longest(pl.concat(sizes), left)
        self._left.add(family.title, 0, longest.left_out)
        return longest.kept

    def _ranges(self, family: Family, rows: pl.DataFrame, until: int | None, lanes: Lanes, writer: Writer) -> None:
        """Write ranges, each on a lane where the viewer can draw it."""
        numbered = self._numbered(family, rows).rename({"track": "title", "number": "track"})
        ended = numbered.with_columns(is_point=pl.col("end_ns").is_null(), end_ns=pl.coalesce("end_ns", "start_ns"))
        placed = lanes.place(ended, until)
        placed = placed.with_columns(end_ns=pl.when(~pl.col("is_point")).then("end_ns")).drop("is_point")
        self._open_tracks(family, placed.rename({"track": "number"}), writer)
        keys = self._keys(placed)
        drawn = placed.with_columns(number=keys).drop("title", "track", "order", "rank", "lane", "duration_ns")
        writer.ranges(drawn, until)
        self._count(family, rows, pl.col("category"))

    def _samples(self, family: Family, rows: pl.DataFrame, writer: Writer) -> None:
        """Write samples."""
        placed = self._numbered(family, rows.sort("rank", "start_ns", maintain_order=True)).with_columns(
            lane=pl.lit(0, pl.Int64), title="track"
        )
        self._open_tracks(family, placed, writer)
        keys = self._keys(placed.rename({"track": "text", "number": "track"}))
        writer.samples(placed.select("start_ns", "value", number=keys))
        self._count(family, rows, pl.lit("counter"))

    def _numbered(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the `number` of their track, before lanes."""
        used = rows.select("rank", "track").unique(maintain_order=True)
        numbers = [
            self._numbers.setdefault((rank, family.name, title), len(self._numbers)) for rank, title in used.iter_rows()
        ]
        used = used.with_columns(number=pl.Series(numbers, dtype=pl.Int64))
        return rows.join(used, on=["rank", "track"], how="left", nulls_equal=True, maintain_order="left")

    def _open_tracks(self, family: Family, rows: pl.DataFrame, writer: Writer) -> None:
        """Tell the writer of tracks that are new: `number`, `lane`, `rank`, `title`, `order`."""
        used = rows.group_by("number", "lane", maintain_order=True).agg(
            pl.col("rank", "title").first(), pl.col("order").min()
        )
        place = self._families.index(family)
        for number, lane, rank, title, order in used.sort("rank", "order", "number", "lane").iter_rows():
            if (number, lane) in self._tracks:
                continue
            process = self._process(rank, writer)
            name = _short(title or family.title)
            track = Track(
                len(self._tracks) + 1,
                process,
                "" if family.single else family.title,
                f"{name} ({lane + 1})" if lane else name,
                (place, min(max(order or 0, 0), MOST_ORDER), lane),
                family.shape == "samples",
            )
            self._tracks[number, lane] = track
            writer.track(track)

    def _keys(self, rows: pl.DataFrame) -> pl.Series:
        """The number in the file of each row's track: of `track` and `lane`."""
        used = rows.select("track", "lane").unique()
        numbers = [self._tracks[number, lane].number for number, lane in used.iter_rows()]
        used = used.with_columns(number=pl.Series(numbers, dtype=pl.Int64))
        return rows.select("track", "lane").join(used, on=["track", "lane"], how="left", maintain_order="left")[
            "number"
        ]

    def _process(self, rank: int, writer: Writer) -> int:
        """The number of a rank's process; the writer is told of it when it is first used."""
        highest = max(self._ranks)
        number = rank if rank != JOB else highest + 1
        if number not in self._processes:
            self._processes.add(number)
            writer.process(self._described(rank, number, highest))
        return number

    def _described(self, rank: int, number: int, highest: int) -> Process:
        if rank == JOB:
            return Process(number, JOB_TITLE, 0, is_rank=False)
        facts = self._ranks[rank]
        kind, device = facts.get("device_kind"), facts.get("device")
        place = f"{kind.upper()} {device}" if kind and kind != "cpu" and device is not None else (kind or "").upper()
        about = ", ".join(part for part in (facts.get("host") or "", place) if part)
        # Viewers sort processes by their names: blanks put 2 before 10.
        name = f"rank {rank:>{len(str(highest))}}" + (f" ({about})" if about else "")
        labels = [facts.get("framework") or ""]
        if shift := self._clocks.by_rank.get(rank):
            labels.append(f"clock corrected by {'-' if shift > 0 else '+'}{present.duration(abs(shift))}")
        return Process(number, name, sorted(self._ranks).index(rank) + 1, tuple(label for label in labels if label))

    def _count(self, family: Family, rows: pl.DataFrame, category: pl.Expr) -> None:
        counts = rows.group_by("rank", category.alias("category")).len()
        for rank, name, count in counts.iter_rows():
            key = (rank, family.name, name)
            self._events[key] = self._events.get(key, 0) + count


def _short(title: str) -> str:
    return title if len(title) <= MOST_TITLE else f"{title[:MOST_TITLE]}…"


def _before(family: Family) -> tuple[bool, int]:
    """What is written first, and thus kept if the file must stay small."""
    return family.kind != "summary", family.priority


def writer_of(form: Format, file: BinaryIO, base_ns: int) -> Writer:
    """The writer of a format."""
    if form == "json":
        from stepscope.timeline.writing.chrome import ChromeWriter  # noqa: PLC0415 - one of them is needed

        return ChromeWriter(file, base_ns)
    from stepscope.timeline.writing.perfetto import PerfettoWriter  # noqa: PLC0415

    return PerfettoWriter(file, base_ns)
