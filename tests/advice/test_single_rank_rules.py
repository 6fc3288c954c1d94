"""The rules about one rank speak where there is a fault, and are silent where there is none."""

from __future__ import annotations

import json

import polars as pl
import pytest

from stepscope.advice import advise, limits_from, worded
from stepscope.advice.rules.data_loader import data_loader
from stepscope.run import Run
from stepscope.tables import RANK_FIGURES, RANKS, STEPS
from tests.advice.examples import Tables, found
from tests.analysis.inputs import MS, batches, chain, pipeline, samples, steps, usage_of
from tests.analysis.test_loader import loaded


def traced(interval_ms: float, *, count: int = 5) -> pl.DataFrame:
    """Steps of 20 ms of a step table, with that interval before each but the first."""
    starts = [k * 20 * MS for k in range(count)]
    late = [0, *[round(interval_ms * MS)] * (count - 1)]
    return STEPS.frame(
        step=list(range(1, count + 1)),
        start_ns=starts,
        end_ns=[start + 20 * MS for start in starts],
        window_start_ns=starts,
        window_end_ns=[start + 20 * MS for start in starts],
        window=["stated"] * count,
        forward_start_ns=[start + wait for start, wait in zip(starts, late, strict=True)],
        backward_end_ns=[start + 18 * MS for start in starts],
    )


def test_a_long_interval_between_steps_is_a_finding() -> None:
    (finding,) = found({"steps": traced(2.5)}, "iteration-interval")

    assert finding.saving_ns == 2 * MS  # the first step, which has none, does not count
    assert finding.saving_ratio == pytest.approx(0.1)
    assert finding.evidence["interval_ns"] == round(2.5 * MS)


def test_the_input_of_other_ranks_does_not_explain_a_late_start() -> None:
    other = {"steps": traced(0.1), "input_pipeline": batches("device_queue", [0] * 5)}

    (finding,) = found({0: {"steps": traced(2.5)}, 1: other}, "iteration-interval")

    assert (finding.where, finding.evidence["slow_stage"]) == ({"rank": 0}, None)


def test_a_single_step_counts_itself() -> None:
    (finding,) = found({"steps": traced(0, count=1).with_columns(forward_start_ns=9 * MS)}, "iteration-interval")

    assert (finding.saving_ns, finding.evidence["steps"]) == (round(8.5 * MS), 1)


def test_an_empty_host_queue_is_a_finding_without_any_other_file() -> None:
    tables = {"input_pipeline": batches("dataset_iterator", [0] * 44 + [5] * 56, get_ms=[46, *[2] * 99])}

    (finding,) = found(tables, "host-queue")

    assert "44 of 100 batches (44%)" in worded(finding).summary
    assert finding.saving_ns == 2 * MS  # not the first batch
    assert finding.saving_ratio == pytest.approx(0.2)
    assert finding.severity == "high"


def test_the_rank_whose_host_queue_is_empty_most_often_is_told() -> None:
    ranks = {
        rank: {"input_pipeline": batches("device_queue", sizes)} for rank, sizes in enumerate(([0, 0, 5], [0] * 3))
    }

    assert "3 of 3 batches (100%) found the host queue empty on rank 1" in worded(found(ranks, "host-queue")[0]).summary


def test_a_queue_to_the_device_says_nothing_about_the_saving() -> None:
    (finding,) = found({"input_pipeline": batches("device_queue", [0] * 5, get_ms=[3] * 5)}, "host-queue")

    assert finding.saving_ns == 0


def test_the_operators_that_hold_the_pipeline_up_are_named() -> None:
    slow = chain({"BatchOp_1": 0.1, "MapOp_2": 0.1, "GeneratorOp_3": 0.9})
    queue = batches("device_queue", [0] * 5)

    (finding,) = found({**slow, "input_pipeline": pl.concat([slow["input_pipeline"], queue])}, "host-queue")

    assert finding.evidence["operators"] == ["MapOp_2"]
    assert "MapOp_2" in worded(finding).cause


def test_operators_of_ranks_that_keep_up_are_not_named() -> None:
    def rank(chained: dict[str, float], size: int) -> Tables:
        slow = chain(chained)
        return {**slow, "input_pipeline": pl.concat([slow["input_pipeline"], batches("device_queue", [size] * 5)])}

    late, early = rank({"MapOp_1": 0.1, "TFReaderOp_2": 0.9}, 0), rank({"BatchOp_1": 0.1, "TFReaderOp_2": 0.9}, 9)

    (finding,) = found({0: late, 1: early}, "host-queue")

    assert (finding.where, finding.evidence["operators"]) == ({"rank": 0}, ["MapOp_1"])


def test_full_queues_are_no_finding() -> None:
    healthy = {"input_pipeline": pl.concat([batches("device_queue", [9] * 5), batches("get_next", [2] * 5)])}

    assert advise(Run.from_frames({0: healthy})) == []


def test_an_empty_data_queue_behind_a_full_host_queue_is_a_finding_about_sending() -> None:
    late = pl.concat([batches("device_queue", [9] * 4), batches("get_next", [0, 0, 2, 2], get_ms=[50, 2, 0, 0])])

    (finding,) = found({"input_pipeline": late}, "data-queue")

    assert "2 of 4 batches (50%)" in worded(finding).summary
    assert "sending" in worded(finding).cause
    assert finding.saving_ns == 1 * MS  # 3 ms of one step over three; the first starts the pipeline up


def test_taking_batches_that_lie_ready_costs_what_it_takes() -> None:
    slow = pl.concat([batches("device_queue", [9] * 3), batches("get_next", [3] * 3, get_ms=[1] * 3)])

    (finding,) = found({"input_pipeline": slow}, "data-queue")

    assert (finding.saving_ns, finding.saving_ratio) == (2 * MS, pytest.approx(0.2))


@pytest.mark.parametrize("queue", ["get_next", "device_queue"])
def test_that_no_batch_is_ready_for_the_first_step_is_as_it_should_be(queue: str) -> None:
    tables = {"input_pipeline": batches(queue, [0, 2])}

    assert found(tables, "data-queue") + found(tables, "host-queue") == []


def test_an_empty_data_queue_alone_leaves_open_which_stage_is_slow() -> None:
    (finding,) = found({"input_pipeline": batches("get_next", [0, 2, 0])}, "data-queue")

    assert "not recorded" in worded(finding).cause


def test_behind_an_empty_host_queue_the_data_queue_is_only_evidence() -> None:
    both = {"input_pipeline": pl.concat([batches("device_queue", [0] * 4), batches("get_next", [0] * 4)])}

    assert found(both, "data-queue") == []
    assert found(both, "host-queue")[0].evidence["data_queue"] == {"empty": 4, "batches": 4}


@pytest.mark.parametrize(
    ("usage", "kind", "advice"),
    [
        ({"BatchOp_1": 0.5, "TFReaderOp_2": 0.2}, "reader", "num_parallel_workers of the reader"),
        ({"BatchOp_1": 0.3, "GeneratorOp_2": 0.2}, "generator", "MindRecord"),
        ({"BatchOp_1": 0.1, "MapOp_2": 0.1, "TFReaderOp_3": 0.9}, "map", "num_parallel_workers of the map"),
        ({"BatchOp_1": 0.1, "MapOp_2": 0.9, "TFReaderOp_3": 0.9}, "batch", "prefetch_size"),
        ({"ShuffleOp_1": 0.1, "TFReaderOp_2": 0.9}, "shuffle", "smaller buffer_size"),
        ({"SkipOp_1": 0.1, "TFReaderOp_2": 0.9}, "single", "sampler"),
        ({"ProjectOp_1": 0.1, "TFReaderOp_2": 0.9}, "single", "no workers"),
        ({"BatchOp_1": 0.9, "TFReaderOp_2": 0.9}, "sender", "no workers"),
        ({"FilterOp_1": 0.1, "TFReaderOp_2": 0.9}, "other", "num_parallel_workers"),
    ],
)
def test_each_kind_of_slow_operator_has_its_advice(usage: dict[str, float], kind: str, advice: str) -> None:
    (finding,) = found(chain(usage), "pipeline-bottleneck")

    assert finding.evidence["kind"] == kind
    assert advice in worded(finding).action


@pytest.mark.parametrize("kind", ["Skip", "Take", "Zip", "Concat", "Rename", "Repeat", "Project", "DataQueue"])
def test_of_operators_without_workers_none_are_asked_for(kind: str) -> None:
    slow = {f"{kind}Op_1": 0.9 if kind == "DataQueue" else 0.1, "TFReaderOp_2": 0.9}
    root = "DataQueueOp_0" if kind == "DataQueue" else "EpochCtrlOp_0"

    (finding,) = found(chain(slow, root=root), "pipeline-bottleneck")

    assert "num_parallel_workers" not in worded(finding).action + worded(finding, "zh").action
    assert "no workers" in worded(finding).action and "没有可增加的工作线程" in worded(finding, "zh").action


@pytest.mark.parametrize("usage", [{"ShuffleOp_1": 0.1, "TFReaderOp_2": 0.9}, {"Shuffle_1": 0.1, "Map_2": 0.9}])
def test_where_only_shuffling_holds_batches_up_no_workers_are_asked_for(usage: dict[str, float]) -> None:
    held_up = chain(usage)
    late = batches("dataset_iterator", [0] * 4)
    tables = {**held_up, "input_pipeline": pl.concat([held_up["input_pipeline"], late])}

    for rule in ("pipeline-bottleneck", "host-queue"):
        (finding,) = found(tables, rule)
        assert "smaller buffer_size" in worded(finding).action and "buffer_size" in worded(finding, "zh").action
        assert "num_parallel_workers" not in worded(finding).action + worded(finding, "zh").action


def test_operators_are_named_from_the_readers_to_the_root() -> None:
    (finding,) = found(chain({"MapOp_1": 0.1, "MapOp_2": 0.5, "TFReaderOp_3": 0.9}), "pipeline-bottleneck")

    assert "MapOp_2/MapOp_1 hold up" in worded(finding).summary


@pytest.mark.parametrize(("fill", "cause"), [(9, "All queues are full"), (1, "filled to 90%, that behind it to 10%")])
def test_a_root_with_a_queue_is_slow_where_all_are_full_or_its_own_is_emptier(fill: int, cause: str) -> None:
    tables = {
        "pipeline_operators": pipeline({"Batch_0": None, "TFReader_1": "Batch_0"}),
        "input_pipeline": samples({"Batch_0": [fill] * 4, "TFReader_1": [9] * 4}),
    }

    (finding,) = found(tables, "pipeline-bottleneck")

    assert finding.where["operators"] == ["Batch_0"]
    assert cause in worded(finding).cause


def test_whether_all_queues_are_full_goes_by_the_limits_of_the_user() -> None:
    tables = {
        "pipeline_operators": pipeline({"Batch_0": None, "TFReader_1": "Batch_0"}),
        "input_pipeline": samples({"Batch_0": [7] * 4, "TFReader_1": [7] * 4}),
    }
    run = Run.from_frames({0: tables})

    assert found(tables, "pipeline-bottleneck") == []
    (finding,) = advise(run.with_limits(limits_from({"input_operators": {"high_usage": 0.6}})))

    assert finding.evidence["observations"] == ["all queues full"]
    assert "All queues are full" in worded(finding).cause


def test_one_sample_at_the_start_says_nothing_about_a_pipeline() -> None:
    first = HELD_UP["input_pipeline"].unique("operator", keep="first", maintain_order=True)

    assert found(HELD_UP, "pipeline-bottleneck") != []
    assert found({**HELD_UP, "input_pipeline": first}, "pipeline-bottleneck") == []


def test_the_same_operators_on_many_ranks_are_one_finding_and_others_another() -> None:
    one, other = chain({"MapOp_1": 0.1, "TFReaderOp_2": 0.9}), chain({"MapOp_1": 0.9, "TFReaderOp_2": 0.5})

    findings = found({0: one, 1: other, 2: one}, "pipeline-bottleneck")

    assert {f.where["operators"][0]: f.where.get("ranks", f.where.get("rank")) for f in findings} == {
        "MapOp_1": [0, 2],
        "TFReaderOp_2": 1,
    }


def test_a_busy_host_is_a_finding_that_names_all_its_ranks() -> None:
    busy, calm = usage_of("host", [0.9] * 3), usage_of("host", [0.8] * 3)

    (finding,) = found({0: {"host_usage": busy}, 1: {"host_usage": calm}, 2: {"host_usage": busy}}, "cpu-busy")

    assert finding.where == {"ranks": [0, 2]}
    assert finding.evidence["busy_ratio"] == pytest.approx(0.9)


def test_of_several_busy_hosts_the_busiest_is_told() -> None:
    hosts = {rank: {"host_usage": usage_of("host", [busy] * 3)} for rank, busy in enumerate((0.9, 0.95))}

    (finding,) = found(hosts, "cpu-busy")

    assert "95% of its CPU is in use on rank 1" in worded(finding).summary


def test_recommendations_of_the_advisor_are_handed_on_once() -> None:
    model = {"summary": "AI CPU operators", "extend": [{"extendtitle": "t", "value": [["1. Fuse", "2. Cast"]]}]}
    stated = {"rank_figures": RANK_FIGURES.frame(name=["recommendation"], text=[json.dumps({"AICPUModel": model})])}

    (finding,) = found({0: stated, 1: stated}, "ai-cpu")

    assert finding.where == {"ranks": [0, 1]}
    assert (worded(finding).cause, worded(finding).action) == ("AI CPU operators", "1. Fuse; 2. Cast")


@pytest.mark.parametrize("text", ["{", "[]", '{"AICPUModel": {"extend": []}}', '{"AICPUModel": 3}', "null", '""'])
def test_a_recommendation_that_says_nothing_is_none(text: str) -> None:
    told = found({"rank_figures": RANK_FIGURES.frame(name=["recommendation"], text=[text])}, "ai-cpu")

    assert [worded(finding).action for finding in told] == (["{"] if text == "{" else [])


def test_a_loader_that_is_waited_for_is_a_finding_where_idle_time_is_not_known() -> None:
    (finding,) = found({"input_pipeline": loaded(0), "steps": steps(3)}, "data-loader")

    assert "Images" in worded(finding).summary
    assert "num_workers" in worded(finding).action
    assert (finding.saving_ns, finding.saving_ratio) == (4 * MS, pytest.approx(0.4))


def test_where_idle_time_is_known_the_loader_is_its_matter() -> None:
    loader = Run.from_frames({0: {"input_pipeline": loaded(0), "steps": steps(3)}}).analyse("loader")

    assert len(list(data_loader(loader, None))) == 1
    assert list(data_loader(loader, pl.DataFrame())) == []


HELD_UP = chain({"BatchOp_1": 0.1, "MapOp_2": 0.1, "GeneratorOp_3": 0.9})
ENOUGH = pl.concat([HELD_UP["input_pipeline"], batches("device_queue", [9] * 5)])


FINE: dict[str, tuple[str, Tables]] = {
    "in timelines, a late start is the matter of idle time": (
        "iteration-interval",
        {"steps": traced(2.5).with_columns(window=pl.lit("host"))},
    ),
    "half a millisecond is none": ("iteration-interval", {"steps": traced(0.5)}),
    "where batches come in time, the slowest operator costs nothing": (
        "pipeline-bottleneck",
        {**HELD_UP, "input_pipeline": ENOUGH},
    ),
    "where training computes on the CPU, a busy host is as it should be": (
        "cpu-busy",
        {"host_usage": usage_of("host", [0.95] * 3), "ranks": RANKS.frame(device_kind=["cpu"])},
    ),
    "a short wait is none": (
        "data-loader",
        {"input_pipeline": loaded(2).with_columns(duration_ns=pl.lit(MS // 5, pl.Int64)), "steps": steps(3)},
    ),
    "of a loader that one step waited for nothing is said": (
        "data-loader",
        {"input_pipeline": loaded(0).head(1), "steps": steps(1)},
    ),
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_as_it_should_be_is_no_finding(case: str) -> None:
    rule, tables = FINE[case]

    assert found(tables, rule) == []
