"""Where in a trace file a finding shows: the file of its rank, and from when to when by the clock of a viewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepscope.advice.messages import Text, fill
from stepscope.paths import shown
from stepscope.report.unread import below
from stepscope.tables import TIMELINES

if TYPE_CHECKING:
    from stepscope.advice import Finding
    from stepscope.present import Language
    from stepscope.run import Run

LINE = Text("Timeline: {place}", "时间线：{place}")
IN_FILE = Text("rank {rank}, {file}, {start} to {end}", "rank {rank}，{file}，{start} 至 {end}")
NO_FILE = Text(
    "rank {rank}, {start} to {end} UTC (no trace file in {file})",
    "rank {rank}，{start} 至 {end} UTC（{file} 中没有 trace 文件）",
)

IN_SECONDS_NS = 10_000_000_000
"""From this time on, seconds are easier to find on the axis of a viewer than milliseconds."""


@dataclass(frozen=True)
class Timeline:
    """A stretch of a rank's timeline.

    Args:
        rank: The rank.
        file: The trace file, from the path of the run on; without one, what was read of the rank.
        start_ns: Start since the first event of the file, which viewers show as 0; without a file, since the epoch.
        end_ns: End, likewise.
        has_file: Whether there is a trace file.
    """

    rank: int
    file: str
    start_ns: int
    end_ns: int
    has_file: bool = True

    def words(self, language: Language = "en") -> str:
        """The stretch in words."""
        ends = (self.start_ns, self.end_ns)
        start, end = _on_axis(*ends) if self.has_file else map(_moment, ends)
        known = {"rank": self.rank, "file": self.file, "start": start, "end": end}
        return fill(IN_FILE if self.has_file else NO_FILE, known, language)

    def line(self, language: Language = "en") -> str:
        """The stretch in a line of its own."""
        return fill(LINE, {"place": self.words(language)}, language)

    def plain(self) -> dict[str, Any] | None:
        """The stretch for programs; None without a file: `span_ns` of the finding is all that is known."""
        known = asdict(self)
        return known if known.pop("has_file") else None


class Timelines:
    """The trace files of a run.

    Args:
        files: Of each rank, its trace files and when they begin, in order of time.
        without: Of ranks without such files whose times count since the epoch, what was read of them.
        folder: The path of the run, from which on files are named.
    """

    def __init__(
        self,
        files: Mapping[int, Sequence[tuple[int, str]]] | None = None,
        without: Mapping[int, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._files, self._without, self._folder = files or {}, without or {}, folder or Path()

    @classmethod
    def of(cls, run: Run) -> Timelines:
        """Those of all ranks of a run."""
        ranks = run.whole.ranks
        files: dict[int, list[tuple[int, str]]] = {}
        if run.whole.has(TIMELINES.name):
            rows = (
                run.whole.table(TIMELINES.name)
                .select("rank", "zero_ns", "file")
                .collect()
                .sort("rank", "zero_ns", "file")
            )
            for rank, zero_ns, file in rows.iter_rows():
                files.setdefault(rank, []).append((zero_ns, file))
        dated = [
            rank
            for rank in ranks
            if rank.rank not in files and rank.facts.get("start_ns") is not None and rank.path.exists()
        ]
        return cls(files, {rank.rank: str(rank.path) for rank in dated}, run.path)

    def at(self, finding: Finding) -> Timeline | None:
        """Where a finding costs most; None if it has no moment, or if it is unknown on which timeline."""
        rank = finding.span_rank
        if finding.span_ns is None or rank is None:
            return None
        start, end = finding.span_ns
        if rank in self._without:
            return Timeline(rank, _named(self._without[rank], self._folder), start, end, has_file=False)
        begun = [(zero, file) for zero, file in self._files.get(rank, ()) if zero <= start]
        if not begun:
            return None
        zero, file = begun[-1]
        return Timeline(rank, _named(file, self._folder), start - zero, end - zero)


def _named(file: str, run: Path) -> str:
    """A file from the path of the run on; the run itself by its name."""
    return shown(Path(file).name) if Path(file) == run else below(file, run)


def _on_axis(*moments_ns: int) -> tuple[str, ...]:
    """Times as viewers write them beside their axis: all in one unit, to the microsecond."""
    if max(moments_ns) >= IN_SECONDS_NS:
        return tuple(f"{moment / 1e9:.6f} s" for moment in moments_ns)
    return tuple(f"{moment / 1e6:.3f} ms" for moment in moments_ns)


def _moment(ns: int) -> str:
    seconds, rest = divmod(ns, 10**9)
    return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M:%S}.{rest // 1000:06d}"
