"""Ascend and GPU: our options in the words of MindSpore's profiler; names of collectives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.record.mindspore.collectives import operation_of
from stepscope.record.mindspore.device_windows import arguments
from stepscope.record.options import Options


def module() -> Any:
    """A stand-in of `mindspore.profiler`: an enumeration's member is its name."""
    names = ("AiCoreNone", "ArithmeticUtilization", "PipeUtilization", "Memory", "MemoryL0")
    names += ("ResourceConflictRatio", "MemoryUB", "L2Cache")
    return SimpleNamespace(
        ProfilerActivity=SimpleNamespace(CPU="CPU", NPU="NPU"),
        ProfilerLevel=SimpleNamespace(Level0="Level0", Level1="Level1", Level2="Level2"),
        AicoreMetrics=SimpleNamespace(**{name: name for name in names}),
        _ExperimentalConfig=lambda **given: given,
    )


def test_options_keep_their_meaning() -> None:
    options = Options(profiler_level="Level1", aicore_metrics=6, l2_cache=True, hbm_ddr=True, pcie=True)

    given = arguments(options, module())

    assert given["hbm_ddr"]
    assert given["pcie"]
    assert given["start_profile"] is False
    assert given["experimental_config"] == {
        "profiler_level": "Level1",
        "aic_metrics": "L2Cache",
        "l2_cache": True,
        "data_simplification": True,
    }


@pytest.mark.parametrize("metrics", range(-1, 7))
def test_every_metric_set_has_a_name(metrics: int) -> None:
    options = Options(profiler_level="Level2", aicore_metrics=metrics)

    assert isinstance(arguments(options, module())["experimental_config"]["aic_metrics"], str)


def test_the_default_level_takes_no_metrics() -> None:
    config = arguments(Options(), module())["experimental_config"]

    assert (config["profiler_level"], config["aic_metrics"]) == ("Level0", "AiCoreNone")


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("AllReduce", "all_reduce"),
        ("AllGatherV", "all_gather"),
        ("AlltoAllVC", "all_to_all"),
        ("ReduceScatter", "reduce_scatter"),
        ("Reduce", "reduce"),
        ("CollectiveScatter", "scatter"),
        ("NeighborExchangeV2", "send_recv"),
        ("Receive", "recv"),
        ("Barrier", "barrier"),
        ("InnerCommIsend", "send"),
        ("DistCommBatchIsendIrecv", "send_recv"),
        ("DistCommAllGatherIntoTensor", "all_gather"),
        ("MatMul", None),
    ],
)
def test_operator_classes_are_told_by_name(name: str, operation: str | None) -> None:
    assert operation_of(name) == operation
