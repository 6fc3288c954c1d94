"""Figures of operators, links, calls and steps: their marks are the answers, and names of a recording stay names."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.operators.operator_shares import KINDS
from stepscope.errors import Unavailable
from stepscope.figures import figure_named, fragment, to_json
from stepscope.figures.base import Drawn
from stepscope.figures.style import COLOURS
from stepscope.figures.words import word
from stepscope.run import Run
from stepscope.tables import KERNELS, LINKS, OPERATORS
from tests.analysis.jobs import MS, job

HOSTILE = "</script><script>alert(1)</script><b>%{x}</b> $x^2$ &amp; \x1b[31m " + "n" * 300


def with_kernels(*names: str, ranks: int = 2) -> Run:
    """Ranks with one kernel of each name, the first one the longest."""
    frames = {}
    for rank in range(ranks):
        one = job(ranks, 2).rank(rank)
        tables = {name: one.table(name).collect() for name in one.rows if name not in ("ranks", "kernels")}
        count = len(names)
        tables["kernels"] = KERNELS.frame(
            kernel=list(range(count)),
            start_ns=[1000000 * MS + 1000 * place for place in range(count)],
            duration_ns=[1000 + count - place for place in range(count)],
            kind=["compute"] * count,
            name=list(names),
        )
        frames[rank] = tables
    return Run.from_frames(frames)


def drawn(name: str, run: Run, **options: object) -> Drawn:
    return figure_named(name).drawn(run, **options)


def test_operators_of_all_ranks_are_bars_and_areas_with_the_same_times() -> None:
    run = with_kernels("gemm", "add", "mul")
    bars, tree = drawn("operator-bars", run), drawn("operator-tree", run)

    assert bars.spec["layout"]["yaxis"]["ticktext"] == ["gemm", "add", "mul"]
    assert bars.spec["data"][0]["x"] == [2.006, 2.004, 2.002]
    area = tree.spec["data"][0]
    assert area["labels"] == ["computing", "gemm", "add", "mul"]
    assert area["values"] == [0, 2.006, 2.004, 2.002]  # an area is as large as those in it
    assert area["parents"] == ["", "0", "0", "0"]
    assert bars.table.rows["total_ns"].to_list() == run.analyse("operator_shares")["total_ns"].to_list()


def test_of_many_operators_those_with_most_time_are_shown_and_the_rest_is_counted() -> None:
    run = with_kernels(*(f"kernel_{chr(97 + k // 26)}{chr(97 + k % 26)}_{'x' * k}" for k in range(500)), ranks=1)
    bars, tree = drawn("operator-bars", run), drawn("operator-tree", run)

    assert bars.table.rows.height == 20
    assert "20 of 500 operators" in bars.notes[0]
    assert tree.spec["data"][0]["labels"][-1] == "others"
    assert sum(tree.table.rows["total_ns"]) == run.analyse("operator_shares")["total_ns"].sum()
    assert len(to_json(tree)) < 20_000


def test_without_a_device_operators_of_the_host_count_with_their_own_time() -> None:
    tables = {
        "operators": OPERATORS.frame(
            slice=[0, 1], name=["aten::linear", "aten::addmm"], start_ns=[0, 1], duration_ns=[9, 7], self_ns=[2, 7]
        )
    }
    run = Run.from_frames({0: tables, 1: tables})
    bars, tree = drawn("operator-bars", run), drawn("operator-tree", run)

    assert bars.table.rows.select("name", "total_ns", "max_ns").rows() == [
        ("aten::addmm", 14, 7),
        ("aten::linear", 4, 2),
    ]
    assert bars.spec["data"][0]["name"] == "host operators"
    assert tree.spec["data"][0]["labels"] == ["host operators", "aten::addmm", "aten::linear"]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_word_and_a_colour(kind: str) -> None:
    assert kind in COLOURS
    assert word(kind, "zh", "kind") != kind


@pytest.mark.parametrize("name", ["operator-bars", "operator-tree"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_hostile_names_are_shown_as_they_are(name: str, language: str) -> None:
    one = drawn(name, with_kernels(HOSTILE, "plain"), language=language)
    page = fragment(one)

    assert page.count("</script>") == 1
    assert "<script>alert" not in page
    assert "\x1b" not in page
    spec = one.spec
    templates = [trace["hovertemplate"] for trace in spec["data"]]
    assert not any("alert" in template for template in templates)
    texts = [*spec["data"][0].get("labels", []), *spec["layout"].get("yaxis", {}).get("ticktext", [])]
    assert any("&lt;/script&gt;" in text for text in texts)
    assert all("<" not in text and len(text) < 200 for text in texts)
    one.figure()


def test_steps_are_a_line_with_their_outliers_marked() -> None:
    run = job(3, 12, once_ns={("compute", 7, 1): 300 * MS})
    one = drawn("step-times", run)
    answer = run.analyse("step_spread")

    marks = one.spec["data"][-1]
    assert marks["x"] == [7]
    line = one.spec["data"][-2]
    assert line["y"] == pytest.approx((answer["median_ns"] / 1e6).to_list(), rel=1e-4)
    assert answer.filter("is_outlier")["kind"].to_list() == ["computing"]
    assert marks["y"] == pytest.approx([answer["max_ns"].max() / 1e6], rel=1e-4)


def test_of_many_steps_the_longest_and_all_outliers_stay() -> None:
    rows = pl.DataFrame({"step": range(5000)}).with_columns(
        ranks=pl.lit(2),
        min_ns=pl.lit(MS),
        median_ns=pl.when(pl.col("step") == 4321).then(9 * MS).otherwise(2 * MS),
        max_ns=pl.lit(9 * MS),
        max_rank=pl.lit(1),
        is_outlier=pl.col("step").is_in([100, 101, 102]),
        kind=pl.lit("computing"),
    )
    from tests.figures.test_figures import Answering

    one = drawn("step-times", Answering({"step_spread": rows}))

    assert {100, 101, 102, 4321} <= {*one.table.rows["step"]}
    assert one.table.rows.height < 610
    assert len(to_json(one)) < 40_000


def test_a_step_that_tables_show_shorter_is_named_with_the_reason() -> None:
    from tests.figures.test_figures import Answering

    spread = {"ranks": 1, "min_ns": MS, "median_ns": MS, "max_ns": MS, "max_rank": 0, "is_outlier": False, "kind": None}
    rows = pl.DataFrame([{"step": step, **spread} for step in (3, 4)])
    lengths = pl.DataFrame({"step": [3, 4], "outside_ns": [MS, 0]})
    one = drawn("step-times", Answering({"step_spread": rows, "step_lengths": lengths}))

    (note,) = one.notes
    assert "time on the host before the device's first work" in note
    assert note.endswith("leave out: 3.")


def test_one_step_is_no_curve() -> None:
    with pytest.raises(Unavailable, match="only one step"):
        drawn("step-times", job(2, 1))


def test_the_slowest_link_leads_the_table_and_its_cell_is_its_bandwidth() -> None:
    rows = [(0, 1, 8 * MS, 80_000_000), (1, 0, 1 * MS, 80_000_000), (0, 2, 1 * MS, 80_000_000)]
    table = LINKS.frame(
        rank=[0] * 3,
        step=[1] * 3,
        source=[row[0] for row in rows],
        destination=[row[1] for row in rows],
        duration_ns=[row[2] for row in rows],
        size_bytes=[row[3] for row in rows],
        transport=["<b>HCCS"] * 3,
    )
    whole = job(3, 2)
    frames = {r.rank: {n: r.table(n).collect() for n in r.rows if n != "ranks"} for r in whole.ranks}
    frames[0]["links"] = table.drop("rank")
    one = drawn("link-matrix", Run.from_frames(frames))
    heat = one.spec["data"][0]

    assert one.table.rows.row(0)[:2] == ("0", "1")
    assert heat["z"][0] == [None, 10, 80]
    assert heat["text"][0][1] == "&lt;b&gt;HCCS"
    titles = [button["label"] for button in one.spec["layout"]["updatemenus"][0]["buttons"]]
    assert titles == ["bandwidth (GB/s)", "bytes a step (MB)", "time a step (ms)"]


def test_collectives_are_marks_by_size_and_transports_lines() -> None:
    run = job(4, 3)
    one = drawn("bandwidth", run)
    answer = run.analyse("bus_bandwidth")

    trace = one.spec["data"][0]
    assert trace["x"] == answer["size_bytes"].to_list()
    assert trace["y"] == pytest.approx((answer["bus_bytes_per_s"] / 1e3).to_list(), rel=1e-4)
    assert "Links were not recorded" in one.notes[0]
