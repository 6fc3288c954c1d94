"""From the recorded step to what is left: the rows add up, agree with the answers about each cause, and count no time
twice."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.errors import Unavailable
from stepscope.figures import figure_named
from stepscope.run import Run
from tests.analysis.jobs import MS, job
from tests.analysis.rank_tables import links


def adds_up(rows: pl.DataFrame) -> bool:
    steps = rows["step_ns"].to_list()
    savings = [saving or 0 for saving in rows["saving_ns"]]
    return all(before - saving == after for before, saving, after in zip(steps, savings[1:], steps[1:], strict=False))


def test_a_slow_rank_saves_what_suspect_costs_says_and_the_rest_follows() -> None:
    run = job(8, 5, compute={3: 1.5}, data_ns=dict.fromkeys(range(8), 4 * MS))
    rows = run.analyse("improvements")

    assert rows["what"][0] == "recorded"
    assert rows["step_ns"][0] == round(run.analyse("replay")["replayed_ns"].mean())
    slow = rows.row(1, named=True)
    assert (slow["what"], slow["name"], slow["kind"]) == ("rank", "3", "computing")
    assert slow["saving_ns"] == pytest.approx(run.analyse("suspect_costs")["cost_ns"][0], rel=0.02)
    times = dict(rows.filter(pl.col("what") == "time").select("kind", "saving_ns").iter_rows())
    known = dict(run.analyse("savings").select("kind", "saving_ns").iter_rows())
    assert times
    assert all(known[kind] == saving for kind, saving in times.items())
    assert adds_up(rows)
    assert rows["step_ns"].min() >= 0


def with_slow_link(**more: object) -> Run:
    """A job whose link between ranks 0 and 1 is slow."""
    whole = job(4, 4, **more)  # type: ignore[arg-type]
    frames = {one.rank: {n: one.table(n).collect() for n in one.rows if n != "ranks"} for one in whole.ranks}
    ends = [(a, b) for a in range(4) for b in range(4) if a != b]
    for rank, tables in frames.items():
        own = {pair: (80_000_000, (8 if set(pair) == {0, 1} else 2) * MS) for pair in ends if pair[0] == rank}
        call = whole.analyse("arrival").row(0, named=True)
        of = {name: pl.lit(call[name]) for name in ("group", "operation")}
        tables["links"] = links(own, count=4, named=False).with_columns(**of)
    return Run.from_frames(frames)


def test_links_are_mended_before_kinds_of_time_are_taken_away() -> None:
    run = with_slow_link(data_ns=dict.fromkeys(range(4), 4 * MS))
    rows = run.analyse("improvements")

    assert adds_up(rows)
    assert rows["what"].to_list()[0] == "recorded"
    assert "link" in rows["what"]
    claimed = rows["saving_ns"].sum()
    assert claimed == rows["step_ns"][0] - rows["step_ns"][-1]
    assert claimed < rows["step_ns"][0]


def test_the_figure_has_a_bar_for_each_row_and_falls_from_step_to_step() -> None:
    run = job(8, 5, compute={3: 1.5})
    one = figure_named("savings").drawn(run)
    rows, bars = run.analyse("improvements"), one.spec["data"][0]

    assert one.spec["layout"]["yaxis"]["ticktext"][:2] == ["recorded step", "rank 3: computing"]
    assert bars["base"][0] == bars["base"][-1] == 0
    ends = [base + length for base, length in zip(bars["base"], bars["x"], strict=True)]
    steps = [step / 1e6 for step in rows["step_ns"]]
    assert ends[1:-1] == pytest.approx(steps[:-2], rel=1e-4)
    assert bars["x"][-1] == pytest.approx(steps[-1], rel=1e-4)
    assert one.table.rows["saving_ns"].to_list() == rows["saving_ns"].to_list()


def test_a_single_rank_has_none() -> None:
    with pytest.raises(Unavailable):
        figure_named("savings").drawn(job(1, 3))
