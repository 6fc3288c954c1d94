"""Advice about environment variables."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from builders import make_run
from stepscope.advice import Finding, advise, worded
from stepscope.advice.rules.environment import environment
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import RANKS


def _variables(*each: dict[str, Any], device: str = "npu") -> pl.DataFrame:
    texts = [json.dumps(one) for one in each]
    ranks = RANKS.frame(rank=list(range(len(each))), environment=texts, device_kind=[device] * len(each))
    return Run.from_frames({rank: {"ranks": ranks[rank : rank + 1]} for rank in range(len(each))}).analyse(
        "environment_variables"
    )


def _told(*each: dict[str, Any], device: str = "npu", **evidence: Any) -> dict[str, Finding]:
    found = environment(_variables(*each, device=device), **evidence)
    return {finding.evidence["variable"]: finding for finding in found}


def test_each_value_is_one_row_and_an_empty_one_is_not_set() -> None:
    rows = _variables({"A": "1", "B": ""}, {"A": "2", "B": "  "}).rows()

    assert rows == [
        ("A", "1", "0", 1, "npu", True),
        ("A", "2", "1", 1, "npu", True),
        ("B", None, "0, 1", 2, "npu", False),
    ]


def test_without_variables_there_is_a_reason() -> None:
    with pytest.raises(Unavailable, match="environment variables"):
        make_run(1, 1).analyse("environment_variables")


@pytest.mark.parametrize(
    ("level", "told"), [("0", True), ("1", True), ("2", False), ("3", False), ("4", False), ("", False), ("x", False)]
)
def test_log_levels_below_warnings_cost_time(level: str, told: bool) -> None:
    assert bool(_told({"ASCEND_GLOBAL_LOG_LEVEL": level})) == told


def test_communication_variables_are_to_be_unset() -> None:
    found = _told({"HCCL_RDMA_TC": "100", "HCCL_RDMA_SL": "", "HCCL_ALGO": "ring"})

    assert {name: finding.evidence["line"] for name, finding in found.items()} == {
        "HCCL_RDMA_TC": "unset HCCL_RDMA_TC",
        "HCCL_ALGO": "unset HCCL_ALGO",
    }


def _idle(ratio: float) -> pl.DataFrame:
    step = {"rank": 0, "step": 0, "window_ns": 100, "free_ns": round(ratio * 100), "communication_not_overlapped_ns": 0}
    return pl.DataFrame([step])


def test_settings_need_evidence() -> None:
    unset = {"ACLNN_CACHE_LIMIT": "", "HOST_CACHE_CAPACITY": "0", "PYTORCH_NPU_ALLOC_CONF": "max_split_size_mb:512"}
    dynamic = pl.DataFrame({"dynamic": [3]})
    fragmented = pl.DataFrame({"kind": ["fragmentation"]})

    assert not _told(unset, breakdown=_idle(0.05))
    found = _told(unset, breakdown=_idle(0.2), dynamic_operators=dynamic, memory_hints=fragmented)
    assert {finding.evidence["line"] for finding in found.values()} == {
        "export ACLNN_CACHE_LIMIT=100000",
        "export HOST_CACHE_CAPACITY=20",
        "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
    }
    assert {finding.severity for finding in found.values()} == {"low"}


def _calls(waits: int) -> pl.DataFrame:
    names = ["aclrtSynchronizeStreamWithTimeout", "launch"]
    return pl.DataFrame({"rank": [0, 0], "name": names, "count": [waits, 100], "total_ns": [1, 1]})


@pytest.mark.parametrize(("waits", "severity"), [(90, "medium"), (3, "low")])
def test_a_host_that_waits_for_each_operator_is_at_least_medium(waits: int, severity: str) -> None:
    (finding,) = _told({"ASCEND_LAUNCH_BLOCKING": "1"}, api_totals=_calls(waits)).values()

    assert (finding.severity, finding.evidence["line"]) == (severity, "unset ASCEND_LAUNCH_BLOCKING")
    assert not _told({"ASCEND_LAUNCH_BLOCKING": "0"}, api_totals=_calls(waits))


def test_waits_that_leave_devices_busy_are_low() -> None:
    (finding,) = _told({"ASCEND_LAUNCH_BLOCKING": "1"}, api_totals=_calls(90), breakdown=_idle(0.05)).values()

    assert (finding.severity, finding.message) == ("low", "blocking_busy")


def test_variables_of_other_devices_do_not_count() -> None:
    variables = {"HCCL_ALGO": "ring", "NCCL_DEBUG": "INFO", "CUDA_LAUNCH_BLOCKING": "1", "OMP_NUM_THREADS": "1"}

    assert set(_told(variables, device="cuda")) == {"NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING"}
    assert set(_told(variables, device="cpu")) == {"OMP_NUM_THREADS"}


def test_values_that_differ_between_ranks_are_named() -> None:
    (finding,) = _told(
        {"HOST_CACHE_CAPACITY": "20"}, {"HOST_CACHE_CAPACITY": "20"}, {"HOST_CACHE_CAPACITY": ""}
    ).values()

    assert (finding.message, finding.ranks) == ("differs", [2])
    assert worded(finding).summary == (
        'HOST_CACHE_CAPACITY differs between ranks: 20 and ""; rank 2 has the rarest value.'
    )


def test_a_healthy_environment_is_silent() -> None:
    healthy = {"ASCEND_GLOBAL_LOG_LEVEL": "3", "ASCEND_ENHANCE_ENABLE": "1", "ACLNN_CACHE_LIMIT": "100000"}
    run = make_run(2, 2)
    frames = {rank.rank: {name: rank.table(name).collect() for name in rank.rows} for rank in run.ranks}
    about = RANKS.frame(environment=[json.dumps(healthy)], device_kind=["npu"])
    found = advise(Run.from_frames({rank: {**tables, "ranks": about} for rank, tables in frames.items()}), strict=True)

    assert not [one for one in found if one.rule == "environment"]
