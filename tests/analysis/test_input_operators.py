"""Which operator of a dataset pipeline holds it up."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.methods.pipeline_graph import Limits
from stepscope.run import Run
from tests.analysis.inputs import chain, pipeline, samples, usage_of

ANY = Limits(min_cpu_samples=1)


def operators(tables: dict[str, pl.DataFrame]) -> pl.DataFrame:
    return Run.from_frames({0: tables}).analyse("input_operators")


def slow(tables: dict[str, pl.DataFrame]) -> list[str]:
    return operators(tables).filter("bottleneck")["operator"].to_list()


def test_the_operator_between_a_full_and_an_empty_queue_is_the_bottleneck() -> None:
    tables = chain({"BatchOp_1": 0.1, "MapOp_2": 0.1, "GeneratorOp_3": 0.9})

    assert slow(tables) == ["MapOp_2"]
    assert operators(tables)["chain"].unique().to_list() == ["MapOp_2"]


def test_a_reader_whose_queue_is_not_filled_is_the_bottleneck() -> None:
    assert slow(chain({"BatchOp_1": 0.5, "TFReaderOp_2": 0.5})) == ["TFReaderOp_2"]


def test_where_all_queues_are_full_it_is_the_root() -> None:
    assert slow(chain({"BatchOp_1": 0.9, "TFReaderOp_2": 0.8})) == ["DataQueueOp_0"]


def test_a_pipeline_in_which_nothing_stands_out_has_no_bottleneck() -> None:
    tables = chain({"BatchOp_1": 0.7, "TFReaderOp_2": 0.7})

    assert slow(tables) == []
    assert operators(tables)["chain"].to_list() == [None] * 3


def test_the_chain_of_two_branches_goes_from_the_readers_to_the_root() -> None:
    tables = {
        "pipeline_operators": pipeline(
            {"Batch_0": None, "Shuffle_1": "Batch_0", "TFReader_2": "Shuffle_1", "TFReader_3": "Shuffle_1"},
            without_queue=["Batch_0"],
        ),
        "input_pipeline": samples({"Shuffle_1": [3], "TFReader_2": [3], "TFReader_3": [3]}),
    }

    assert operators(tables)["chain"][0] == "TFReader_3/TFReader_2"


def test_a_chain_goes_from_the_readers_to_the_root() -> None:
    tables = chain({"BatchOp_1": 0.1, "MapOp_2": 0.5, "GeneratorOp_3": 0.9})

    assert operators(tables)["chain"][0] == "MapOp_2/BatchOp_1"


def test_an_operator_without_workers_of_its_own_runs_in_one_thread() -> None:
    listed = pipeline({"MapOp_1": None}).with_columns(workers=pl.lit(0, pl.Int32))

    row = operators({"pipeline_operators": listed, "host_usage": usage_of("operator", [0.5] * 2, name="MapOp_1")})

    assert row["processors_per_worker"].to_list() == [2.0]


def test_of_several_inputs_the_fullest_counts() -> None:
    parents = {"Batch_0": None, "Zip_1": "Batch_0", "TFReader_2": "Zip_1", "TFReader_3": "Zip_1"}
    fills = {"Zip_1": [6], "TFReader_2": [9], "TFReader_3": [6]}
    tables = {"pipeline_operators": pipeline(parents, without_queue=["Batch_0"]), "input_pipeline": samples(fills)}

    assert slow(tables) == ["Zip_1"]


def test_what_is_known_of_an_operator() -> None:
    tables = chain({"BatchOp_1": 0.0, "MapOp_2": 0.4})
    busy = {"MapOp_2": [0.25, 0.5, 0.75], "BatchOp_1": [0.0, 0.25, 0.5]}
    cpu = [usage_of("operator", cpu, name=name) for name, cpu in busy.items()]

    row = operators({**tables, "host_usage": pl.concat(cpu)}).filter(pl.col("operator") == "MapOp_2").row(0, named=True)

    assert (row["depth"], row["parent"], row["children"]) == (2, "BatchOp_1", [])
    assert (row["samples"], row["mean_size"], row["usage_ratio"], row["empty_ratio"]) == (4, 4.0, 0.4, 0.0)
    assert (row["processors"], row["processors_per_worker"]) == (2.0, 1.0)
    assert row["cpu_share_ratio"] == pytest.approx(2 / 3)
    assert row["observations"] == ["workers overloaded", "reader too slow"]


def test_an_operator_without_a_queue_has_no_usage() -> None:
    root = operators(chain({"MapOp_1": 0.7})).row(0, named=True)

    assert (root["usage_ratio"], root["empty_ratio"], root["bottleneck"]) == (None, None, False)


def test_idle_workers_are_told_but_not_of_operators_that_have_one_thread_anyway() -> None:
    tables = chain({"ShuffleOp_1": 0.7, "MapOp_2": 0.7})
    cpu = [usage_of("operator", [0.01] * 3, name=name) for name in ("ShuffleOp_1", "MapOp_2")]

    told = operators({**tables, "host_usage": pl.concat(cpu)}).select("operator", "observations").rows()

    assert dict(told)["MapOp_2"] == ["workers idle", "too many workers"]
    assert dict(told)["ShuffleOp_1"] == []


@pytest.mark.parametrize(("count", "limits", "known"), [(2, Limits(), False), (3, Limits(), True), (2, ANY, True)])
def test_nothing_is_observed_of_cpu_use_from_too_few_samples(count: int, limits: Limits, known: bool) -> None:
    cpu = usage_of("operator", [0.9] * count, name="MapOp_1")
    run = Run.from_frames({0: {**chain({"MapOp_1": 0.7}), "host_usage": cpu}})

    found = run.analyse("input_operators", limits=limits).filter(pl.col("operator") == "MapOp_1")

    assert (found["observations"].to_list() == [["workers overloaded"]]) is known


@pytest.mark.parametrize(("fill", "starves"), [(0.0, True), (0.7, False)])
def test_a_root_that_often_finds_nothing_to_hand_on_is_told(fill: float, starves: bool) -> None:
    (root, *_) = operators(chain({"MapOp_1": fill}))["observations"].to_list()

    assert ("queue before the device often empty" in root) == starves


def test_operators_that_a_damaged_file_ties_in_a_ring_are_still_told() -> None:
    ring = pipeline({"MapOp_1": "MapOp_2", "MapOp_2": "MapOp_1"})

    assert operators({"pipeline_operators": ring})["depth"].to_list() == [1, 1]


def test_a_pipeline_that_was_never_sampled_has_operators_without_figures() -> None:
    row = operators({"pipeline_operators": pipeline({"MapOp_1": None})}).row(0, named=True)

    assert (row["samples"], row["usage_ratio"], row["processors"], row["observations"]) == (None, None, None, [])
