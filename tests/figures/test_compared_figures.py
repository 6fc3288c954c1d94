"""Figures of two sides that are compared, and of parallel strategies: their marks are the answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.compare import compare
from stepscope.compare.noise import VERDICTS
from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import FIGURES, drawn_all, figure_named, fragment, to_json
from stepscope.figures.words import word
from stepscope.run.opening import open_run
from tests.analysis.jobs import MS, job
from tests.analysis.rank_tables import job as tables_only
from tests.compare.test_pair import BASE, NEW, kernels_run
from tests.figures.test_figures_of_work import HOSTILE
from tests.strategy_files import node, write_graph


def test_parts_of_both_sides_are_bars_side_by_side() -> None:
    pair = compare(job(4, 5), job(4, 5, compute={2: 1.5}))
    one = figure_named("compared-parts").drawn(pair)
    answer = pair.analyse("time_differences")

    base, new = one.spec["data"]
    assert (base["name"], new["name"]) == ("base", "new")
    assert base["x"] == pytest.approx((answer["base_ns"] / 1e6).to_list(), rel=1e-4)
    assert new["x"] == pytest.approx((answer["new_ns"] / 1e6).to_list(), rel=1e-4)
    assert one.spec["layout"]["yaxis"]["ticktext"][0] == "step"
    assert [row[0] for row in new["customdata"]] == answer["part"].to_list()
    assert new["customdata"][0][3] == word(answer["verdict"][0], "en", "verdict")
    assert one.table.rows.height == answer.height
    chinese = figure_named("compared-parts").drawn(pair, language="zh")
    assert [trace["name"] for trace in chinese.spec["data"]] == ["基准", "新"]
    one.figure("dark")


def test_sides_of_one_run_have_the_names_of_their_ranks() -> None:
    run = job(4, 5, data_ns={1: 20 * MS})
    one = figure_named("compared-parts").drawn(compare(run, run).select())

    assert [trace["name"] for trace in one.spec["data"]][1] == "rank 1 (slow)"


def test_kernels_that_differ_lead_to_the_right_or_left_and_noise_is_grey() -> None:
    pair = compare(kernels_run(BASE), kernels_run(NEW))
    one = figure_named("compared-operators").drawn(pair)
    answer = pair.analyse("kernel_differences")

    found = {
        row[0]: (trace["name"], x)
        for trace in one.spec["data"]
        for row, x in zip(trace["customdata"], trace["x"], strict=True)
    }
    assert found["MatMul"] == ("longer", 10)
    assert found["Add"][0] == "not beyond noise"
    assert found["Old"][0] == "shorter"
    assert set(found) == set(answer["name"])
    with pytest.raises(Unavailable, match="all kernels take the same time"):
        figure_named("compared-operators").drawn(compare(kernels_run(BASE), kernels_run(BASE)))
    assert one.spec["layout"]["yaxis"]["ticktext"][0] == "MatMul"
    with pytest.raises(StepscopeError, match="kernels"):
        figure_named("compared-operators").drawn(pair, of="kernel")
    with pytest.raises(Unavailable):
        figure_named("compared-operators").drawn(pair, of="modules")


def test_of_many_kernels_those_that_differ_most_are_shown_and_hostile_names_stay_names() -> None:
    base = [{f"kernel{'x' * k}": 1.0 for k in range(60)} for _ in range(4)]
    new = [{f"kernel{'x' * k}": 1.0 + k / 200 for k in range(60)} for _ in range(4)]
    names = {f"kernel{'x' * 59}": HOSTILE}
    one = figure_named("compared-operators").drawn(
        compare(kernels_run(base, names=names), kernels_run(new, names=names))
    )

    assert sum(len(trace["x"]) for trace in one.spec["data"]) == 20
    assert "20 of 59" in one.notes[0]  # the first one takes as long on both sides
    page = fragment(one)
    assert page.count("</script>") == 1
    assert "<script>alert" not in page
    assert any("&lt;/script&gt;" in text for text in one.spec["layout"]["yaxis"]["ticktext"])
    assert not any("alert" in trace["hovertemplate"] for trace in one.spec["data"])


def test_a_figure_of_a_pair_is_not_drawn_of_a_run_nor_the_reverse() -> None:
    run = job(2, 3)
    pair = compare(run, job(2, 3))

    with pytest.raises(StepscopeError, match="two sides"):
        figure_named("compared-parts").drawn(run)
    with pytest.raises(StepscopeError, match="one run"):
        figure_named("job-time").drawn(pair)
    assert [figure.name for figure, _ in drawn_all(pair)] == [figure.name for figure in FIGURES if figure.of_pair]


def test_what_a_side_cannot_answer_is_said_with_the_side() -> None:
    with pytest.raises(Unavailable, match="new: no computing was recorded"):
        figure_named("compared-operators").drawn(compare(kernels_run(BASE), tables_only()), of="kernels")


@pytest.mark.parametrize("verdict", VERDICTS)
def test_each_verdict_has_words(verdict: str) -> None:
    assert word(verdict, "zh", "verdict") != verdict


GRAPH = [
    node("1", "GetNext", shape=(32, 64)),
    node("2", "MatMul", ["1", "w"], shape=(32, 64), in_strategy=((2, 1), (1, 1))),
    node("3", "AllGather", ["2"], instance="redistribution_op_1", group="g"),
    node("4", "ReLU", ["3"]),
]


def test_nodes_of_a_stage_stand_in_the_order_of_the_data_with_their_strategy(tmp_path: Path) -> None:
    for rank in (0, 1):
        write_graph(tmp_path, rank, GRAPH, stages=[[0, 1]], parameters=["w"])
    run = open_run(tmp_path)
    one = figure_named("strategy").drawn(run)

    named = {trace.get("name"): trace for trace in one.spec["data"]}
    places = {
        row[1]: x
        for name, trace in named.items()
        if name
        for row, x in zip(trace["customdata"], trace["x"], strict=True)
    }
    assert places["1"] < places["2"] < places["3"] < places["4"]
    assert places["w"] == places["2"] - 1
    assert [row[1] for row in named["divided operator"]["customdata"]] == ["2"]
    assert "strategy: " in named["divided operator"]["customdata"][0][2]
    assert [row[1] for row in named["redistribution"]["customdata"]] == ["3"]
    assert sum(value is None for value in one.spec["data"][0]["x"]) == run.analyse("strategy_edges").height
    assert one.table.rows.height == run.analyse("strategy_nodes").height
    with pytest.raises(Unavailable, match="stage 7"):
        figure_named("strategy").drawn(run, stage=7)


def test_of_large_graphs_what_is_divided_is_shown_and_circles_do_no_harm(tmp_path: Path) -> None:
    many = [
        node(
            str(k),
            "Add" if k % 100 else "<b>MatMul",
            [str(k - 1 if k else 1499)],
            in_strategy=((2, 1),) if k % 100 == 0 else (),
        )
        for k in range(1500)
    ]
    write_graph(tmp_path, 0, many, stages=[[0]])
    one = figure_named("strategy").drawn(open_run(tmp_path))

    assert one.table.rows.height == 400
    assert {str(k) for k in range(0, 1500, 100)} <= set(one.table.rows["node"])
    assert "400 of 1501 nodes" in one.notes[0] or "400 of 1500 nodes" in one.notes[0]
    assert len(to_json(one)) < 120_000
    assert "<b>MatMul" not in str([trace.get("text") for trace in one.spec["data"]])
