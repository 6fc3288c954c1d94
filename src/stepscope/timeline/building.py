"""From a run to a timeline: family by family, some ranks and a window of time after the other, into a writer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import polars as pl

from stepscope import present
from stepscope.errors import StepscopeError
from stepscope.paths import shown
from stepscope.run import Run
from stepscope.timeline.asking import Asking
from stepscope.timeline.clocks import Clocks, clocks_of
from stepscope.timeline.drafts import draft_of, is_packed, opened
from stepscope.timeline.drawing import Drawing
from stepscope.timeline.lanes import Lanes
from stepscope.timeline.left_out import LeftOut
from stepscope.timeline.limits import GUESSED_BYTES, PACKED, Budget, Everyth, Longest
from stepscope.timeline.narrowing import check, explained, with_graphs
from stepscope.timeline.options import Format, TimelineOptions, Written
from stepscope.timeline.sound import Sound
from stepscope.timeline.tracks import FAMILIES
from stepscope.timeline.tracks.base import RANGE_COLUMNS, Family
from stepscope.timeline.writing.base import Writer

JSON_ENDINGS = (".json", ".json.gz")
MOST_TRIES = 6
"""How often a file that must stay small is written; each time, less is put into it."""
GOOD_SHARE = 0.7
"""Part of the allowed size that a file should have if not all fits into it."""


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
    check(run, file, wanted, form)
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


class _Building:
    """The work on one file."""

    def __init__(
        self, run: Run, options: TimelineOptions, families: tuple[Family, ...], clocks: Clocks, budget: Budget
    ) -> None:
        self._run, self._options, self._clocks, self._budget = run, options, clocks, budget
        self._families = families
        self._left = LeftOut()
        self._asking = Asking(run, options, clocks, budget, self._left)
        self._sound = Sound(clocks.first_ns, self._left)

    def write(self, stream: BinaryIO, written: Written, progress: Callable[[str], None]) -> None:
        """Write the file, and what there is to say of it."""
        written.base_ns = self._clocks.first_ns
        written.offsets_ns = {rank: shift for rank, shift in sorted(self._clocks.by_rank.items()) if shift}
        writer = writer_of(written.format, stream, written.base_ns)
        ranks = {each.rank: each.facts for each in self._run.ranks}
        drawing = Drawing(writer, self._families, ranks, self._clocks.by_rank)
        families = sorted(filter(self._is_wanted, self._families), key=_before)
        for place, family in enumerate(families):
            progress(family.title)
            self._family(family, families[place + 1 :], drawing)
        writer.close()
        written.left_out = self._left.said()
        if not drawing.events:
            raise self._empty(written)
        written.events = dict(sorted(drawing.events.items()))
        written.tracks = drawing.tracks
        written.notes += [*self._clocks.notes, *self._sound.notes(written.format)]

    def _empty(self, written: Written) -> StepscopeError:
        """Why there is nothing in the file."""
        if self._budget.limit_bytes is not None and self._left.is_limited:
            return _too_small(written.file, self._options.limit_bytes or 0)
        if written.left_out:
            why = "; ".join(f"{title}: {reason}" for title, reason in written.left_out.items())
            return StepscopeError(f"{shown(self._run.path)}: there is no timeline, since all was left out. {why}")
        return StepscopeError(
            f"{shown(self._run.path)}: nothing with a time was recorded in the chosen ranks, steps and time range, "
            "so there is no timeline. `stepscope info` lists what was recorded"
        )

    def _is_wanted(self, family: Family) -> bool:
        return (family.kind == "summary" or self._options.kind == "detail") and family.wanted(self._options)

    def _family(self, family: Family, following: Sequence[Family], drawing: Drawing) -> None:
        """Write all rows of a family, as far as they leave room for those that follow."""
        chosen, writer = self._chosen(family, following, drawing.writer), drawing.writer
        for part in self._asking.parts(family):
            lanes = Lanes()
            until: int | None = None
            for found, until in self._asking.windows(family, part):
                rows = self._sound.rows(family, found)
                kept = rows if chosen is None else chosen(rows)
                why = ""
                if self._budget.is_spent(family.name, writer.size_bytes, kept.height):
                    kept, why = kept.clear(), "the file is as large as allowed"
                if kept.height < rows.height:
                    self._left.add(family.title, rows.height - kept.height, why, limited=True)
                self._write(family, kept, until, lanes, drawing)
            if until is not None:  # the last window failed: what is open in the writer ends there
                nothing = pl.DataFrame(schema={"number": pl.Int64, **RANGE_COLUMNS, "end_ns": pl.Int64})
                writer.ranges(nothing.drop("rank", "track", "order", "duration_ns"), None)

    def _write(self, family: Family, rows: pl.DataFrame, until: int | None, lanes: Lanes, drawing: Drawing) -> None:
        before = drawing.writer.size_bytes
        if family.shape == "samples":
            drawing.samples(family, rows)
        else:
            drawing.ranges(family, rows, until, lanes)
        self._budget.wrote(family.name, rows.height, drawing.writer.size_bytes - before)

    def _about(self, family: Family) -> int:
        """The rows of the tables that a family shows."""
        return sum(rank.rows.get(name, 0) for rank in self._run.ranks for name in family.tables)

    def _chosen(
        self, family: Family, following: Sequence[Family], writer: Writer
    ) -> Callable[[pl.DataFrame], pl.DataFrame] | None:
        """What is kept of the rows if not all fit: the longest ranges, or every n-th sample; None for all."""
        left = self._budget.rows_left(family.name, writer.size_bytes)
        if left is None:
            return None
        if family.priority:  # up to half of it is for what follows
            left -= min(left // 2, sum(map(self._about, following)))
        sizes = [
            rows["duration_ns"] if family.shape == "ranges" else rows["start_ns"]
            for part in self._asking.parts(family)
            for rows, _ in self._asking.windows(family, part)
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
