"""What a piece of work waits for in its own rank, reason by reason."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis import dependencies
from stepscope.analysis.registry import ANALYSES
from stepscope.tables import COLLECTIVES, SLICES, SYNCHRONIZATIONS

US = 1000
PIECES = ANALYSES["work"].schema


def pieces(*rows: tuple[object, ...], rank: int = 0) -> pl.DataFrame:
    """Rows of `work` (lane, kind, start and end in us, launch in us if any, collective if any), in order of start."""
    filled = [(*row, *[None] * (6 - len(row))) for row in rows]
    facts = [
        {"rank": rank, "work": n, "step": 1, "lane": lane, "kind": kind, "name": kind, "start_ns": start * US,
         "end_ns": end * US, "waited": kind == "waiting", "launch_ns": None if launch is None else launch * US,
         "collective": call}
        for n, (lane, kind, start, end, launch, call) in enumerate(filled)
    ]  # fmt: skip
    return pl.DataFrame(facts, schema=PIECES)


def edges(rows: pl.DataFrame, *tables: pl.LazyFrame | None) -> list[tuple[int, int, str]]:
    calls, waits, slices = [*tables, None, None, None][:3]
    return dependencies(rows, calls, waits, slices).select("work", "before", "why").rows()


def calls(*kinds: str) -> pl.LazyFrame:
    count = len(kinds)
    columns = {"collective": range(count), "group": ["dp"] * count, "operation": kinds}
    return COLLECTIVES.unchecked(**columns).lazy().with_columns(rank=pl.lit(0, pl.Int32))


def test_pieces_of_a_lane_follow_one_another() -> None:
    rows = pieces(("stream 7", "computing", 0, 10), ("stream 8", "memory", 5, 8), ("stream 7", "computing", 20, 30))

    assert edges(rows) == [(2, 0, "lane")]


def test_of_pieces_of_a_lane_that_overlap_neither_waits() -> None:
    rows = pieces(("stream 7", "computing", 0, 10), ("stream 7", "computing", 9, 30))

    assert edges(rows) == []


def test_a_kernel_waits_for_the_host_that_launched_it() -> None:
    rows = pieces(("host", "dispatch", 0, 10), ("host", "dispatch", 10, 50), ("stream 7", "computing", 12, 40, 10))

    assert edges(rows) == [(1, 0, "lane"), (2, 0, "launch")]


def test_a_kernel_of_unknown_launch_waits_for_how_far_the_host_had_come() -> None:
    rows = pieces(("host", "dispatch", 0, 10), ("host", "dispatch", 10, 30), ("stream 7", "computing", 31, 40))

    assert (2, 1, "launch") in edges(rows)


def test_a_host_that_waited_goes_on_when_its_device_is_through() -> None:
    rows = pieces(
        ("host", "dispatch", 0, 5),
        ("stream 7", "computing", 6, 40, 5),
        ("stream 9", "memory", 6, 20, 5),
        ("host", "waiting", 40, 42),
    )

    assert edges(rows) == [(1, 0, "launch"), (2, 0, "launch"), (3, 0, "lane"), (3, 1, "synchronisation")]


def test_a_wait_that_began_when_nothing_ended_waits_for_nothing_known() -> None:
    rows = pieces(("host", "dispatch", 0, 5), ("stream 7", "computing", 6, 30, 5), ("host", "waiting", 40, 42))

    assert [edge for edge in edges(rows) if edge[2] == "synchronisation"] == []


def test_calls_and_computing_follow_the_order_of_their_launches() -> None:
    """The call waits for the first kernel, and the second kernel, which never overlaps such calls, for the call."""
    rows = pieces(
        ("stream 7", "computing", 10, 20, 1),
        ("stream 20", "communication", 21, 40, 2, 0),
        ("stream 7", "computing", 41, 50, 3),
    )

    assert edges(rows, calls("all_reduce")) == [(1, 0, "order"), (2, 0, "lane"), (2, 1, "order")]


def test_computing_does_not_wait_for_calls_of_a_kind_that_it_overlaps() -> None:
    rows = pieces(
        ("stream 7", "computing", 10, 20, 1),
        ("stream 20", "communication", 21, 40, 2, 0),
        ("stream 7", "computing", 30, 45, 3),
        ("stream 20", "communication", 46, 60, 4, 1),
        ("stream 7", "computing", 61, 70, 5),
    )
    held = {(2, 1, "order"), (4, 3, "order")}

    assert held.isdisjoint(edges(rows, calls("all_reduce", "all_reduce")))
    assert held & set(edges(rows, calls("all_reduce", "all_gather"))) == {(4, 3, "order")}


def test_a_start_that_nothing_known_explains_follows_what_ended_just_then() -> None:
    """The kernel could begin at 10 us by its launch; the copy, of which nothing is recorded, ended at 98 us."""
    launched = [("host", "dispatch", 0, 10), ("stream 9", "memory", 8, 98, 5)]
    waits = pieces(*launched, ("stream 7", "computing", 100, 120, 10))
    soon = pieces(*launched, ("stream 7", "computing", 29, 120, 10))
    nearer = pieces(launched[0], ("stream 9", "memory", 8, 50, 5), ("stream 7", "computing", 100, 120, 10))

    assert (2, 1, "time") in edges(waits)
    assert [edge for edge in edges(soon) + edges(nearer) if edge[2] == "time"] == []


def waited(*rows: tuple[int, int, int, int]) -> pl.LazyFrame:
    """Recorded waits: stream and correlation of the wait, stream and correlation of the record of the event."""
    names = ("stream", "correlation", "waited_stream", "waited_correlation")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return SYNCHRONIZATIONS.unchecked(**columns).lazy().with_columns(rank=pl.lit(0, pl.Int32))


def called(**at_us: int) -> pl.LazyFrame:
    """Host calls by correlation (`c5=20`: correlation 5 at 20 us)."""
    columns = {"correlation": [int(name[1:]) for name in at_us], "start_ns": [at * US for at in at_us.values()]}
    rows = SLICES.unchecked(category=["runtime"] * len(at_us), **columns).lazy()
    return rows.with_columns(rank=pl.lit(0, pl.Int32))


def test_what_is_launched_after_a_wait_of_its_stream_waits_for_what_was_launched_before_the_event() -> None:
    rows = pieces(
        ("stream 9", "memory", 5, 60, 1),
        ("stream 9", "memory", 60, 65, 7),
        ("stream 7", "memory", 61, 70, 6),
        ("stream 7", "memory", 71, 80, 8),
    )
    event, wait = called(c1=3, c2=4), waited((7, 2, 9, 1))

    assert edges(rows, None, wait, event) == [(1, 0, "lane"), (2, 0, "stream_wait"), (3, 2, "lane")]
    assert "stream_wait" not in [why for _, _, why in edges(rows, None, wait, None)]
    assert "stream_wait" not in [why for _, _, why in edges(rows, None, waited((8, 2, 9, 1)), event)]


@pytest.mark.parametrize("event_us", [3, 9])
def test_a_recorded_wait_that_the_times_contradict_is_no_dependency(event_us: int) -> None:
    """The stream went on before the other one was through: the record is wrong, or of another event."""
    rows = pieces(("stream 9", "memory", 5, 60, 1), ("stream 7", "memory", 20, 70, 10))

    assert edges(rows, None, waited((7, 2, 9, 1)), called(c1=event_us, c2=event_us)) == []


def test_on_a_cpu_a_call_begins_when_the_host_has_come_so_far_and_the_host_waits_for_it() -> None:
    rows = pieces(
        ("host", "computing", 0, 30),
        ("communication", "communication", 30, 80, None, 0),
        ("host", "waiting", 80, 90),
        ("communication", "communication", 82, 95, None, 1),
        ("communication", "communication", 200, 210, None, 2),
    )

    assert edges(rows, calls("all_reduce", "all_reduce", "all_reduce")) == [
        (1, 0, "launch"),
        (2, 0, "lane"),
        (2, 1, "call"),
        (3, 1, "lane"),  # it began as soon as the call before had ended, so it does not wait for the host
        (4, 2, "launch"),
        (4, 3, "lane"),
    ]


def test_ranks_do_not_wait_for_pieces_of_other_ranks() -> None:
    one = pieces(("stream 7", "computing", 0, 10), ("stream 7", "computing", 10, 20))
    both = pl.concat([one, pieces(("stream 7", "computing", 5, 15), ("stream 7", "computing", 15, 20), rank=3)])

    found = dependencies(both, None, None)

    assert found.rows() == [(0, 1, 0, "lane"), (3, 1, 0, "lane")]


def test_nothing_depends_on_nothing() -> None:
    assert dependencies(pieces(), None, None).is_empty()
