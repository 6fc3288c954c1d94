"""Figures of all ranks: their marks are the answers, slow ranks are marked, and there are never too many marks."""

from __future__ import annotations

import re

import polars as pl
import pytest

from stepscope.errors import StepscopeError, Unavailable
from stepscope.figures import figure_named, fragment, to_json
from stepscope.figures.base import Drawn
from stepscope.figures.sharing import cells, sharing_note
from stepscope.figures.slow_marks import slow_of
from stepscope.run import Run
from stepscope.tables import LINKS, RANKS
from stepscope.texts import Text
from tests.analysis.jobs import MS, job
from tests.analysis.rank_tables import job as pipeline_tables
from tests.figures.test_figures import Answering
from tests.figures.test_figures_of_a_rank import HOSTILE
from tests.pipelines import Pipeline


def drawn(name: str, run: Run, **options: object) -> Drawn:
    return figure_named(name).drawn(run, **options)


class Whole(Answering):
    """A run that has only some answers, and says so of all its ranks."""

    @property
    def whole(self) -> Whole:
        return self


def on_hosts(names: list[str], run: Run) -> Run:
    """The same run with hosts."""
    frames = {}
    for one, name in zip(run.ranks, names, strict=True):
        tables = {table: one.table(table).collect() for table in one.rows if table != "ranks"}
        who = RANKS.frame(rank=[one.rank], world_size=[len(names)], host=[name], device=[one.rank % 2])
        frames[one.rank] = {**tables, "ranks": who}
    return Run.from_frames(frames)


def rank_steps(ranks: int, steps: int) -> pl.DataFrame:
    """Steps of 10 ms; one of rank 7 takes 30 ms."""
    found = pl.DataFrame(
        [(rank, step) for rank in range(ranks) for step in range(steps)],
        schema={"rank": pl.Int32, "step": pl.Int32},
        orient="row",
    )
    is_long = (pl.col("rank") == 7) & (pl.col("step") == 3)
    return found.with_columns(
        step_ns=pl.when(is_long).then(30 * MS).otherwise(10 * MS),
        host=pl.lit(None, pl.String),
        stage=pl.lit(None, pl.Int32),
    )


def means(ranks: int) -> pl.DataFrame:
    """Means of ranks with equal steps, of which rank 7 computes longer."""
    names = ("interval_ns", "forward_backward_ns", "tail_ns", "stage_ns", "receiving_ns", "computing_and_free_ns")
    collective = "communication_not_overlapped_exclude_receive_ns"
    computing = pl.when(pl.col("rank") == 7).then(8 * MS).otherwise(5 * MS)
    return pl.DataFrame({"rank": range(ranks)}, schema={"rank": pl.Int32}).with_columns(
        *(pl.lit(None, pl.Int64).alias(name) for name in (*names, collective)),
        host=pl.lit(None, pl.String),
        stage=pl.lit(None, pl.Int32),
        split=pl.lit("steps"),
        step_ns=pl.lit(10 * MS),
        computing_ns=computing,
        free_ns=pl.lit(MS),
        communication_not_overlapped_ns=9 * MS - computing,
    )


def test_a_map_has_the_length_of_each_step_and_marks_who_is_slow() -> None:
    run = job(4, 4, compute={1: 1.5})
    one = drawn("step-map", run)
    answer = run.analyse("rank_steps").sort("rank", "step")
    heat = one.spec["data"][0]

    cells = [value for row in heat["z"] for value in row]
    assert cells == pytest.approx((answer["step_ns"] / 1e6).to_list(), rel=1e-3)
    places = [place[:2] for row in heat["customdata"] for place in row]
    assert places == [list(row) for row in answer.select("rank", "step").iter_rows()]
    assert [text for text in one.spec["layout"]["yaxis"]["ticktext"] if "◀" in text] == [
        '<span style="color:#D55E00"><b>1 ◀</b></span>'
    ]
    assert one.notes[0] == "Slow, and marked: rank 1 (computing)."


def test_many_ranks_and_steps_share_cells_of_the_map_and_the_longest_step_stays_seen() -> None:
    one = drawn("step-map", Whole({"rank_steps": rank_steps(1024, 300)}))
    heat = one.spec["data"][0]

    assert len(heat["z"]) * len(heat["z"][0]) <= 9000
    assert max(max(row) for row in heat["z"]) == 30
    assert [7, 3] in [place[:2] for row in heat["customdata"] for place in row]
    assert heat["zmax"] == 20  # one long step leaves the others some colour
    assert any("1024 ranks and 300 steps share" in note for note in one.notes)
    assert any("the longest takes 30" in note for note in one.notes)
    assert len(one.spec["layout"]["yaxis"]["tickvals"]) < 50


def test_bars_of_ranks_are_the_parts_of_their_mean_step() -> None:
    run = job(4, 4, compute={2: 1.5})
    one = drawn("rank-steps", run, split="activity")
    answer = run.analyse("rank_means")

    named = {trace["name"]: trace for trace in one.spec["data"]}
    assert named["computing"]["y"] == pytest.approx((answer["computing_ns"] / 1e6).to_list(), rel=1e-4)
    assert named["exposed communication"]["y"] == pytest.approx(
        (answer["communication_not_overlapped_ns"] / 1e6).to_list(), rel=1e-4
    )
    assert (named["slow"]["x"], named["slow"]["customdata"]) == (["2"], [[2, "computing"]])
    assert [row[0] for row in named["computing"]["customdata"]] == [0, 1, 2, 3]
    assert drawn("rank-steps", run, sort="computing", split="activity").spec["data"][0]["x"][0] == "2"
    with pytest.raises(StepscopeError, match=r"sorted by 'comput'.*computing"):
        drawn("rank-steps", run, sort="comput")
    with pytest.raises(StepscopeError, match="'hosts'"):
        drawn("rank-steps", run, by="hosts")


def test_a_step_of_a_pipeline_splits_into_receiving_and_collectives_by_rank_and_stage() -> None:
    run = pipeline_tables()
    by_rank, by_stage = drawn("rank-steps", run, step=2), drawn("rank-steps", run, by="stage")

    of_step = {trace["name"]: trace["y"] for trace in by_rank.spec["data"]}
    assert of_step["receiving from other stages"] == [50, 50, 5, 5]
    assert of_step["exposed collectives"] == [10, 10, 15, 15]
    assert by_rank.notes[-1] == "Step 2."
    of_stage = {trace["name"]: trace for trace in by_stage.spec["data"]}
    assert of_stage["computing and idle"]["y"] == [20, 60]
    assert [row[0] for row in of_stage["computing and idle"]["customdata"]] == [0, 1]
    assert "rank 2, 3" in of_stage["computing and idle"]["customdata"][1][2]
    assert drawn("rank-steps", run, split="phase").spec["data"][0]["name"] == "before forward"
    with pytest.raises(Unavailable, match="step 99"):
        drawn("rank-steps", run, step=99)


def test_hosts_are_means_of_their_ranks_and_a_slow_card_marks_its_host() -> None:
    run = on_hosts(["a", "a", "b<b>%{x}", "b<b>%{x}"], job(4, 4, compute={3: 1.5}))
    one = drawn("rank-steps", run, by="host", split="activity")
    answer = run.analyse("host_means")

    bars = one.spec["data"][0]
    assert answer["ranks"].to_list() == ["0, 1", "2, 3"]
    assert bars["y"] == pytest.approx((answer["computing_ns"] / 1e6).to_list(), rel=1e-4)
    assert bars["x"][1] == "b&lt;b&gt;%{x}"
    assert bars["customdata"][1][0] == "b<b>%{x}"
    assert one.spec["data"][-1]["customdata"] == [["b<b>%{x}", "computing (rank 3)"]]
    with pytest.raises(Unavailable, match="no hosts"):
        drawn("rank-steps", pipeline_tables(), by="host")


def test_a_thousand_ranks_have_a_bar_each_and_more_share_them() -> None:
    many = drawn("rank-steps", Whole({"rank_means": means(1024)}))
    more = drawn("rank-steps", Whole({"rank_means": means(5000)}))

    assert len(many.spec["data"][0]["x"]) == 1024
    assert many.spec["layout"]["xaxis"]["rangeslider"]["visible"]
    assert len(to_json(many)) < 300_000
    assert len(more.spec["data"][0]["x"]) <= 1100
    assert "of 5000 ranks" in more.notes[0]


def test_bars_of_communication_are_transmission_and_waiting() -> None:
    run = job(4, 4, compute={2: 1.5})
    one = drawn("rank-communication", run)
    answer = run.analyse("rank_communication")

    named = {trace["name"]: trace for trace in one.spec["data"]}
    assert named["transmission"]["y"] == pytest.approx((answer["transmit_ns"] / 1e6).to_list(), rel=1e-4)
    waits = named["waiting for other ranks"]["y"]
    assert waits == pytest.approx((answer["wait_ns"] / 1e6).to_list(), rel=1e-4)
    assert waits.index(min(waits)) == 2
    assert named["slow"]["x"] == ["2"]
    assert drawn("rank-communication", run, sort="wait").spec["data"][0]["x"][-1] == "2"
    of_step = drawn("rank-communication", run, step=3)
    assert of_step.notes[-1] == "Step 3."
    with pytest.raises(Unavailable):
        drawn("rank-communication", run, step=99)


def flops(ranks: int, hosts: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"rank": range(ranks)}, schema={"rank": pl.Int32}).with_columns(
        host=pl.concat_str(pl.lit("<i>host"), pl.col("rank") * hosts // ranks) if hosts else pl.lit(None, pl.String),
        stage=pl.lit(None, pl.Int32),
        of_most_ratio=pl.when(pl.col("rank") == 7).then(0.75).otherwise(1.0),
        step_flops=pl.lit(1e12),
        flops_per_s=pl.lit(2e12),
        step_flops_per_s=pl.lit(1e12),
        mfu_ratio=pl.lit(None, pl.Float64),
    )


def test_cells_of_flops_are_shares_of_the_most_with_hosts_as_rows() -> None:
    one = drawn("rank-flops", Whole({"rank_flops": flops(16, hosts=4)}))
    heat = one.spec["data"][0]

    assert [len(row) for row in heat["z"]] == [4] * 4
    assert heat["z"][1] == [100, 100, 100, 75]
    assert heat["customdata"][1][3][0] == 7
    assert "FLOPs in a step: 1.00 TFLOP" in heat["customdata"][1][3][1]
    assert one.spec["layout"]["yaxis"]["ticktext"][1] == "&lt;i&gt;host1"
    assert "<i>" not in heat["customdata"][1][3][1]
    assert one.table.rows["rank"][0] == 7


def test_ranks_without_hosts_fill_rows_and_thousands_share_cells() -> None:
    few, many = (drawn("rank-flops", Whole({"rank_flops": flops(count)})) for count in (64, 10_000))

    assert [len(row) for row in few.spec["data"][0]["z"]] == [8] * 8
    assert few.spec["layout"]["yaxis"]["ticktext"][0] == "0-7"
    cells = [value for row in many.spec["data"][0]["z"] for value in row if value is not None]
    assert len(cells) <= 4096
    assert min(cells) == 75  # of those that share a cell the lowest is shown
    assert "10000 ranks share" in many.notes[0]


def memory(used: list[float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "rank": range(len(used)),
            "host": [None] * len(used),
            "stage": [None] * len(used),
            "component": [None] * len(used),
            "peak_bytes": [10**9 * (rank + 1) for rank in range(len(used))],
            "stated_peak_bytes": [None] * len(used),
            "reserved_peak_bytes": [None] * len(used),
            "capacity_bytes": [None] * len(used),
            "used_ratio": used,
            "of_most_ratio": [(rank + 1) / len(used) for rank in range(len(used))],
        },
        schema_overrides={"host": pl.String, "stage": pl.Int32, "used_ratio": pl.Float64},
    )


def test_cells_of_memory_are_shares_of_the_capacity_or_of_the_most() -> None:
    known = drawn("rank-memory", Whole({"rank_memory": memory([0.25, 0.5])}))
    unknown = drawn("rank-memory", Whole({"rank_memory": memory([None, None])}))

    assert known.spec["data"][0]["z"][0][:2] == [25, 50]
    assert known.notes == []
    assert "peak: 1.00 GB" in known.spec["data"][0]["customdata"][0][0][1]
    assert unknown.spec["data"][0]["z"][0][:2] == [50, 100]
    assert "not recorded" in unknown.notes[0]


def linked(count: int, transport: str = "<b>HCCS") -> Run:
    """Ranks that send in a circle, the first one at a quarter of the rate, and by another transport to themselves."""
    ends = [(rank, (rank + 1) % count) for rank in range(count)]
    frames = {}
    for rank, end in ends:
        frames[rank] = {
            "ranks": RANKS.frame(rank=[rank], world_size=[count]),
            "links": LINKS.frame(
                step=[1, 2],
                source=[rank] * 2,
                destination=[end] * 2,
                duration_ns=[4 * MS if rank == 0 else MS] * 2,
                size_bytes=[10**7] * 2,
                transport=[transport if rank % 2 == 0 else "RDMA"] * 2,
            ),
        }
    return Run.from_frames(frames)


def test_links_are_chosen_by_value_transport_ends_and_step() -> None:
    run = linked(6)
    all_of, some = drawn("link-matrix", run), drawn("link-matrix", run, transport="RDMA", value="time", step=2)

    heat = all_of.spec["data"][0]
    assert heat["z"][0][1] == 2.5
    assert heat["customdata"][0][1] == [0, 1]
    assert sum(value is not None for row in heat["z"] for value in row) == 6
    chosen = some.spec["data"][0]
    assert sum(value is not None for row in chosen["z"] for value in row) == 3
    assert chosen["colorbar"]["title"]["text"] == "time a step (ms)"
    assert not chosen["reversescale"]
    assert some.notes[-1] == "Step 2."
    assert all_of.notes == ["Slow, and outlined: 0-1."]
    assert len(all_of.spec["layout"]["shapes"]) == 2
    assert (
        sum(one is not None for row in drawn("link-matrix", run, source="0,1").spec["data"][0]["z"] for one in row) == 2
    )
    with pytest.raises(StepscopeError, match="bandwidth"):
        drawn("link-matrix", run, value="bandwith")
    with pytest.raises(Unavailable):
        drawn("link-matrix", run, transport="none")


def test_links_of_hundreds_of_ranks_share_cells() -> None:
    one = drawn("link-matrix", linked(200))

    assert len(one.spec["data"][0]["z"]) <= 64
    assert min(value for row in one.spec["data"][0]["z"] for value in row if value is not None) == 2.5
    assert len(one.spec["layout"]["yaxis"]["tickvals"]) < 40


def test_a_layout_is_a_grid_of_stages_by_the_other_dimensions() -> None:
    one = drawn("layout", job(8, 2), layout="tp=2,pp=2,dp=2")
    heat, axes = one.spec["data"][0], one.spec["layout"]

    assert heat["text"] == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
    assert heat["customdata"][1][2][0] == 6
    assert axes["yaxis"]["ticktext"] == ["pp0", "pp1"]
    assert axes["xaxis"]["ticktext"][:2] == ["tp0 dp0", "tp1 dp0"]
    assert one.table.rows.height == 8
    some = drawn("layout", job(8, 2), layout="tp=2,pp=2")
    assert "4 of 8 ranks" in some.notes[0]
    wide = drawn("layout", job(8, 2), layout="tp=8").spec["data"][0]
    assert wide["text"] == [[str(rank) for rank in range(8)]]


def test_changes_of_a_job_are_bars_of_steps_as_recorded_replayed_and_changed() -> None:
    run = job(4, 4, compute={2: 1.5})
    plain, changed = drawn("what-if", run), drawn("what-if", run, without="rank=2")
    answer = run.analyse("what_if", without="rank=2")

    assert [trace["name"] for trace in plain.spec["data"]] == ["as recorded", "replayed"]
    last = changed.spec["data"][-1]
    assert last["name"] == "with changes"
    assert last["y"] == pytest.approx((answer["changed_ns"] / 1e6).to_list(), rel=1e-4)
    assert [row[0] for row in last["customdata"]] == [1, 2, 3, 4]
    assert answer["saving_ns"].min() > 0
    with pytest.raises(StepscopeError):
        drawn("what-if", run, without="nobody=7")


def test_of_many_steps_those_that_change_most_are_lines() -> None:
    steps = pl.DataFrame({"step": range(3000)}, schema={"step": pl.Int32}).with_columns(
        recorded_ns=pl.lit(10 * MS),
        replayed_ns=pl.lit(10 * MS),
        changed_ns=pl.lit(9 * MS),
        saving_ns=pl.when(pl.col("step") == 1234).then(5 * MS).otherwise(MS),
        saving_ratio=pl.lit(0.1),
        error_ratio=pl.lit(0.0),
    )
    one = drawn("what-if", Whole({"what_if": steps}))

    assert one.spec["data"][0]["type"] == "scatter"
    assert len(one.spec["data"][0]["x"]) <= 400
    assert 1234 in one.spec["data"][0]["x"]


def test_bands_are_the_work_of_ranks_and_lines_lead_from_sender_to_receiver() -> None:
    run = Pipeline(stages=2, micro_batches=3).run()
    one = drawn("marey", run, step=2)
    bands = run.analyse("step_bands", step=2)
    transfers = run.analyse("pipeline_transfers").filter(step=2)

    named = {trace["name"]: trace for trace in one.spec["data"] if trace["type"] == "bar"}
    own = bands.filter(band="computing")
    assert sorted(named["computing"]["x"]) == pytest.approx(
        sorted(((own["end_ns"] - own["start_ns"]) / 1e6).to_list()), rel=1e-4
    )
    first = named["computing"]["customdata"][0]
    assert first[:2] == [0, 2]
    assert [first[2], first[3]] == [str(value) for value in own.filter(rank=0).select("start_ns", "end_ns").row(0)]
    ends = next(trace for trace in one.spec["data"] if trace.get("mode") == "markers" and trace["name"] == "transfer")
    assert len(ends["x"]) == transfers.height
    assert {tuple(row[:2]) for row in ends["customdata"]} == {(0, 1), (1, 0)}
    assert one.spec["layout"]["yaxis"]["ticktext"] == ["rank 0 (stage 0)", "rank 1 (stage 1)"]
    assert len(one.spec["layout"]["shapes"]) == 1  # between the stages
    with pytest.raises(Unavailable):
        drawn("marey", run, step=99)


def test_lines_follow_a_collective_in_the_order_of_its_ranks_and_slant_where_one_is_late() -> None:
    run = job(3, 3, compute={1: 2.0}, calls=1)
    one = drawn("marey", run, step=2)
    starts = run.analyse("arrival").filter(step=2).sort("rank")["start_ns"]

    ends = next(trace for trace in one.spec["data"] if trace.get("mode") == "markers")
    first = run.analyse("step_bands", step=2)["start_ns"].min()
    assert ends["x"] == pytest.approx(((starts[1:] - first) / 1e6).to_list(), rel=1e-4)
    assert [row[:2] for row in ends["customdata"]] == [[0, 1], [1, 2]]
    assert ends["x"][0] == max(ends["x"])


def test_of_many_ranks_bands_are_those_that_are_slow_and_the_first_of_each_stage() -> None:
    one = drawn("marey", job(40, 2, compute={38: 1.5}, calls=2))

    shown = one.spec["layout"]["yaxis"]["ticktext"]
    assert len(shown) == 32
    assert any("rank 38" in text and "◀" in text for text in shown)
    assert any("32 of 40 ranks" in note for note in one.notes)


def test_ranges_with_hardly_a_gap_are_one_and_their_times_are_summed() -> None:
    rows = job(2, 3, calls=3).analyse("step_bands", step=2)

    for rank in (0, 1):
        own = rows.filter(rank=rank, band="computing").sort("start_ns")
        assert (own["start_ns"][1:] >= own["end_ns"][:-1]).all()
        assert (
            own["calls"].sum()
            == job(2, 3, calls=3)
            .rank(rank)
            .table("kernels")
            .filter((pl.col("step") == 2) & (pl.col("kind") == "compute"))
            .collect()
            .height
        )
    assert rows.filter(pl.col("calls") == 1)["name"].null_count() == 0


def test_what_is_slow_is_told_by_a_replay_and_else_by_simple_limits() -> None:
    slow = slow_of(job(4, 4, compute={1: 1.5}))
    assert (slow.ranks, slow.is_replayed) == ({1: ["computing"]}, True)
    assert slow_of(job(4, 4)).ranks == {}
    limits = slow_of(pipeline_tables())
    assert (limits.ranks, limits.is_replayed) == ({2: ["interval"]}, False)
    assert limits.notes([0, 2])[0].en == "Marked as beyond simple limits: rank 2 (interval before forward)."
    assert limits.notes([0]) == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["step-map", "rank-steps", "rank-communication", "marey", "layout", "link-matrix"])
def test_hostile_names_of_hosts_and_transports_are_shown_as_they_are(name: str, language: str) -> None:
    run = on_hosts([HOSTILE, "plain"], job(2, 3, compute={1: 1.5}))
    frames = {r.rank: {n: r.table(n).collect() for n in r.rows if n != "ranks"} for r in run.ranks}
    for rank, tables in frames.items():
        host = [HOSTILE, "plain"][rank]
        tables["ranks"] = RANKS.frame(rank=[rank], world_size=[2], host=[host], device=[rank])
        tables["links"] = linked(2, HOSTILE).rank(rank).table("links").collect().drop("rank")
    options = {"layout": {"layout": "tp=2"}, "rank-steps": {"by": "host"}}.get(name, {})
    one = drawn(name, Run.from_frames(frames), language=language, **options)

    page = fragment(one)
    assert page.count("</script>") == 1
    assert "<script>alert" not in page
    shown = re.findall(r'"hovertemplate":"(.*?)"', to_json(one))
    assert shown
    assert not any("alert" in template for template in shown)
    one.figure()


def test_what_shares_cells_is_said_and_nothing_else() -> None:
    longest = Text("the longest", "最长的")
    (one,) = sharing_note(*cells([3], range(5000)), longest)
    (both,) = sharing_note(*cells(range(3000), range(5000)), longest)

    assert one.en.startswith("5000 steps share ") and "rank" not in one.en + one.zh
    assert both.en.startswith("3000 ranks and 5000 steps share ")
    assert sharing_note(*cells(range(4), range(4)), longest) == []
