"""Bars of scopes: where they begin and end, side by side where work runs side by side."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
from runs import BASE_NS, both, sliced

from stepscope import Run
from stepscope.tables import KERNELS, OPERATORS
from stepscope.timeline import TimelineOptions
from stepscope.timeline.scopes import scopes

Work = tuple[str, int, int]


def bars(*work: Work, step: list[int | None] | None = None) -> list[tuple[int, str, int, int]]:
    """The bars of work: full name, start and end."""
    rows = {
        "full_name": [name for name, _, _ in work],
        "start_ns": [start for _, start, _ in work],
        "duration_ns": [end - start for _, start, end in work],
        "step": pl.Series(step or [None] * len(work), dtype=pl.Int32),
    }
    return scopes(pl.DataFrame(rows)).rows()


def test_a_bar_reaches_from_the_first_to_the_last_of_a_scope() -> None:
    found = bars(("Default/a/Add", 0, 10), ("Default/a/Mul", 15, 20), ("Default/b/Add", 30, 40))

    assert found == [(0, "Default", 0, 40), (1, "a", 0, 20), (1, "b", 30, 40)]


def test_a_bar_ends_where_another_scope_begins_while_nothing_of_it_runs() -> None:
    assert [row for row in bars(("D/a/X", 0, 10), ("D/b/X", 10, 12), ("D/a/X", 12, 20)) if row[0] == 1] == [
        (1, "a", 0, 10),
        (1, "b", 10, 12),
        (1, "a", 12, 20),
    ]


def test_work_outside_of_a_scope_ends_its_bar() -> None:
    assert bars(("Default/a/X", 0, 10), ("Default/Cast", 11, 12), ("Default/a/X", 13, 20)) == [
        (0, "Default", 0, 20),
        (1, "a", 0, 10),
        (1, "a", 13, 20),
    ]


def test_scopes_that_run_at_the_same_time_have_bars_side_by_side() -> None:
    streams = [("D/a/X", 0, 10), ("D/b/Y", 5, 15), ("D/a/X", 10, 20), ("D/b/Y", 15, 25)]

    assert bars(*streams) == [(0, "D", 0, 25), (1, "a", 0, 20), (1, "b", 5, 25)]


def test_bars_end_with_their_step() -> None:
    assert bars(("D/X", 0, 10), ("D/X", 12, 20), ("D/X", 30, 40), step=[1, 1, 2]) == [(0, "D", 0, 20), (0, "D", 30, 40)]


def test_equal_names_in_different_scopes_are_different_scopes() -> None:
    assert bars(("a/x/Op", 0, 10), ("b/x/Op", 11, 20))[2:] == [(1, "x", 0, 10), (1, "x", 11, 20)]


def test_work_without_a_length_keeps_its_bar() -> None:
    assert bars(("D/a/X", 5, 5), ("D/a/X", 7, 9), ("D/b/X", 9, 9), ("D/a/X", 9, 12))[1:] == [
        (1, "a", 5, 12),
        (1, "b", 9, 9),
    ]


def test_bars_hold_all_work_of_their_scope_and_lie_within_those_above() -> None:
    generator = random.Random(5)
    work: list[Work] = []
    for _ in range(400):
        start, depth = generator.randrange(3000), generator.randrange(4)
        path = "/".join(generator.choice("abc") for _ in range(depth))
        work.append((f"{path}/Op" if path else "Op", start, start + generator.randrange(12)))

    levels = defaultdict(list)
    for level, name, start, end in bars(*work):
        levels[level].append((name, start, end))

    for name, start, end in work:
        for level, part in enumerate(name.split("/")[:-1]):
            assert any(n == part and s <= start and end <= e for n, s, e in levels[level])
    for level in range(1, len(levels)):
        for _, start, end in levels[level]:
            assert any(s <= start and end <= e for _, s, e in levels[level - 1])


def test_scopes_of_kernels_and_of_operators_have_tracks_of_their_own(tmp_path: Path) -> None:
    kernels = KERNELS.frame(
        kernel=[0, 1],
        start_ns=[BASE_NS, BASE_NS + 5],
        duration_ns=[10, 10],
        kind=["compute", "compute"],
        name=["Default/a/MatMul-op1", "Default/b/Add-op2"],
        stream=[1, 2],
    )
    tables = sliced([{"start": 0, "length": 30, "name": "Default/embed/Lookup-op3"}])
    operators = OPERATORS.frame(
        slice=[0], start_ns=[BASE_NS], duration_ns=[30], self_ns=[30], name=["Default/embed/Lookup-op3"], thread=["1"]
    )
    run = Run.from_frames({0: {**tables, "operators": operators, "kernels": kernels}})

    drawn = both(run, tmp_path, TimelineOptions(scope_names=True, explain=False))
    without = both(run, tmp_path, TimelineOptions(explain=False))

    counts = Counter((row.place.track, row.name) for row in drawn.ranges if row.category == "scope")
    assert counts == {
        ("Scopes: Layer 0", "Default"): 1,
        ("Scopes: Layer 1", "a"): 1,
        ("Scopes: Layer 1 (2)", "b"): 1,
        ("Scopes: Host layer 0", "Default"): 1,
        ("Scopes: Host layer 1", "embed"): 1,
    }
    assert not [row for row in without.ranges if row.category == "scope"]
