"""All-gathers of PyTorch's FSDP: of which module and pass, whether ahead, and which settings they speak for."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.advice import advise
from stepscope.advice.claims import claimed_once
from stepscope.advice.finding import Finding
from stepscope.errors import Unavailable
from stepscope.run import Run
from tests.analysis.sharded import GB, MIB, MS, rank_of

FSDP1 = {
    "FSDP::pre_forward": "FullyShardedDataParallel._pre_forward",
    "FSDP::pre_backward": "FullyShardedDataParallel._pre_backward_hook",
    "FSDP::all_gather": "other",
}


def recorded(**options: object) -> Run:
    return Run.from_frames({rank: rank_of(**options) for rank in (0, 1)})  # type: ignore[arg-type]


def found(run: Run) -> dict[str, Finding]:
    return {one.message: one for one in advise(run, strict=True) if one.rule == "data-parallel"}


def test_gathers_are_of_the_module_and_pass_that_mark_their_launch() -> None:
    rows = recorded(steps=2).analyse("sharded_gathers").filter(rank=1)

    shown = rows.select("phase", "module", "calls", "ahead", "gathered_bytes", "transmit_ns", "late_ns").rows()
    forward = [("forward", f"layers.{at}", 2, 0, 64 * MIB, 8 * MS, 8 * MS if at else 0) for at in range(3)]
    backward = [("backward", f"layers.{at}", 2, 0, 64 * MIB, 8 * MS, 8 * MS if at < 2 else 0) for at in range(3)]
    assert shown == forward + backward


def test_what_wraps_by_the_older_class_has_no_names_of_modules() -> None:
    rows = recorded(steps=1, names=FSDP1).analyse("sharded_gathers").filter(rank=0)

    assert rows.select("phase", "module", "calls", "late_ns").rows() == [
        ("forward", None, 3, 8 * MS),
        ("backward", None, 3, 8 * MS),
    ]


def test_other_all_gathers_are_not_of_fsdp() -> None:
    names = {"FSDP::pre_forward": "a", "FSDP::pre_backward": "b", "FSDP::all_gather": "c"}
    with pytest.raises(Unavailable, match="marks of FSDP"):
        recorded(steps=1, names=names).analyse("sharded_gathers")


def test_late_gathers_of_both_passes_are_told_with_what_computing_could_cover() -> None:
    findings = found(recorded())

    assert {name: one.saving_ns for name, one in findings.items()} == {
        "forward_gathers": pytest.approx(8 * MS),  # two of three calls of 4 ms; the first has nothing to hide behind
        "backward_gathers": pytest.approx(8 * MS),
    }
    assert findings["forward_gathers"].parameters["module"] == "layers.1"
    assert {one.severity for one in findings.values()} <= {"low", "medium"}


def test_computing_covers_no_more_than_there_is_of_it() -> None:
    findings = found(recorded(computing=2 * MS))

    assert sum(one.saving_ns for one in findings.values()) <= 6 * 2 * MS


def test_prefetched_and_covered_gathers_are_as_they_should_be() -> None:
    assert found(recorded(ahead=True)) == {}
    assert found(recorded(covered=True)) == {}


def test_many_small_gathers_ask_for_larger_modules() -> None:
    (finding,) = found(recorded(modules=8, size=MIB // 2)).values()

    assert (finding.message, finding.parameters["calls"]) == ("small_gathers", 16)
    assert finding.saving_ns == pytest.approx(15 * 4 * MS)


@pytest.mark.parametrize(("used", "expected"), [(20 * GB, True), (79 * GB, False), (None, False)])
def test_parameters_are_kept_only_where_memory_is_known_to_have_room(used: int | None, expected: bool) -> None:
    findings = found(recorded(used=used))

    assert ("gathered_twice" in findings) == expected
    assert ("backward_gathers" in findings) != expected  # the same calls, told once
    if expected:
        assert findings["gathered_twice"].saving_ns == pytest.approx(3 * 4 * MS)


def test_exposed_communication_claims_first() -> None:
    (finding,) = (one for name, one in found(recorded()).items() if name == "forward_gathers")
    other = Finding("exposed-communication", "slow", {}, saving_ns=5 * MS, saving_ratio=0.05)

    settled = {one.rule: one.saving_ns for one in claimed_once([finding, replace(other)])}
    assert settled == {"exposed-communication": 5 * MS, "data-parallel": pytest.approx(3 * MS)}


def test_the_answer_has_one_row_for_each_module_and_pass() -> None:
    rows = recorded(steps=3).analyse("sharded_gathers")
    assert rows.height == rows.select(pl.struct("rank", "module", "phase").n_unique()).item() == 12
