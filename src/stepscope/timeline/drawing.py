"""Rows of families onto the tracks of a file: processes, tracks and lanes get their numbers at their first use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from stepscope import present
from stepscope.timeline.lanes import Lanes
from stepscope.timeline.tracks.base import JOB, Family
from stepscope.timeline.writing.base import Process, Track, Writer

MOST_ORDER = 2_000_000
"""Places of tracks among their like, so that they fit into 32 bits with those of their lanes."""
MOST_TITLE = 200
"""Characters of the title of a track, chosen by us."""
JOB_TITLE = "job (all ranks)"


class Drawing:
    """What is in the file so far.

    Args:
        writer: Of the file.
        families: In the order in which viewers show them.
        ranks: What is known of each rank that is shown (`ranks`).
        shifts_ns: What was subtracted from the times of a rank, if anything.
    """

    def __init__(
        self,
        writer: Writer,
        families: tuple[Family, ...],
        ranks: Mapping[int, Mapping[str, Any]],
        shifts_ns: Mapping[int, int],
    ) -> None:
        self.writer = writer
        self.events: dict[tuple[int, str, str], int] = {}
        """Events by rank, family and category."""
        self._families, self._ranks, self._shifts_ns = families, ranks, shifts_ns
        self._places = {rank: place for place, rank in enumerate(sorted(ranks), 1)}
        self._numbers: dict[tuple[int, str, str], int] = {}
        """Tracks by rank, family and title, before lanes."""
        self._tracks: dict[tuple[int, int], Track] = {}
        """Tracks of the file by these numbers and lane."""
        self._processes: set[int] = set()

    @property
    def tracks(self) -> int:
        """Tracks of the file."""
        return len(self._tracks)

    def ranges(self, family: Family, rows: pl.DataFrame, until: int | None, lanes: Lanes) -> None:
        """Write ranges, each on a lane where the viewer can draw it."""
        numbered = self._numbered(family, rows).rename({"track": "title", "number": "track"})
        ended = numbered.with_columns(is_point=pl.col("end_ns").is_null(), end_ns=pl.coalesce("end_ns", "start_ns"))
        placed = lanes.place(ended, until)
        placed = placed.with_columns(end_ns=pl.when(~pl.col("is_point")).then("end_ns")).drop("is_point")
        self._open_tracks(family, placed.rename({"track": "number"}))
        keys = self._keys(placed)
        drawn = placed.with_columns(number=keys).drop("title", "track", "order", "rank", "lane", "duration_ns")
        self.writer.ranges(drawn, until)
        self._count(family, rows, pl.col("category"))

    def samples(self, family: Family, rows: pl.DataFrame) -> None:
        """Write samples."""
        placed = self._numbered(family, rows.sort("rank", "start_ns", maintain_order=True)).with_columns(
            lane=pl.lit(0, pl.Int64), title="track"
        )
        self._open_tracks(family, placed)
        keys = self._keys(placed.rename({"track": "text", "number": "track"}))
        self.writer.samples(placed.select("start_ns", "value", number=keys))
        self._count(family, rows, pl.lit("counter"))

    def _numbered(self, family: Family, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows with the `number` of their track, before lanes."""
        used = rows.select("rank", "track").unique(maintain_order=True)
        numbers = [
            self._numbers.setdefault((rank, family.name, title), len(self._numbers)) for rank, title in used.iter_rows()
        ]
        used = used.with_columns(number=pl.Series(numbers, dtype=pl.Int64))
        return rows.join(used, on=["rank", "track"], how="left", nulls_equal=True, maintain_order="left")

    def _open_tracks(self, family: Family, rows: pl.DataFrame) -> None:
        """Tell the writer of tracks that are new: `number`, `lane`, `rank`, `title`, `order`."""
        used = rows.group_by("number", "lane", maintain_order=True).agg(
            pl.col("rank", "title").first(), pl.col("order").min()
        )
        place = self._families.index(family)
        for number, lane, rank, title, order in used.sort("rank", "order", "number", "lane").iter_rows():
            if (number, lane) in self._tracks:
                continue
            process = self._process(rank)
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
            self.writer.track(track)

    def _keys(self, rows: pl.DataFrame) -> pl.Series:
        """The number in the file of each row's track: of `track` and `lane`."""
        used = rows.select("track", "lane").unique()
        numbers = [self._tracks[number, lane].number for number, lane in used.iter_rows()]
        used = used.with_columns(number=pl.Series(numbers, dtype=pl.Int64))
        return rows.select("track", "lane").join(used, on=["track", "lane"], how="left", maintain_order="left")[
            "number"
        ]

    def _process(self, rank: int) -> int:
        """The number of a rank's process; the writer is told of it when it is first used."""
        highest = max(self._ranks)
        number = rank if rank != JOB else highest + 1
        if number not in self._processes:
            self._processes.add(number)
            self.writer.process(self._described(rank, number, highest))
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
        if shift := self._shifts_ns.get(rank):
            labels.append(f"clock corrected by {'-' if shift > 0 else '+'}{present.duration(abs(shift))}")
        return Process(number, name, self._places[rank], tuple(label for label in labels if label))

    def _count(self, family: Family, rows: pl.DataFrame, category: pl.Expr) -> None:
        counts = rows.group_by("rank", category.alias("category")).len()
        for rank, name, count in counts.iter_rows():
            key = (rank, family.name, name)
            self.events[key] = self.events.get(key, 0) + count


def _short(title: str) -> str:
    return title if len(title) <= MOST_TITLE else f"{title[:MOST_TITLE]}…"
