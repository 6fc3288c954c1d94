"""Sequences of kernels that operators launch, themselves and with all that they call."""

from __future__ import annotations

import pytest

from stepscope.errors import Unavailable
from stepscope.run import Run
from tests.analysis.device.launched import US, Range, Work, run_of

RANGES = [
    *(Range("aten::linear", 100 * k, 100 * k + 50) for k in range(3)),
    *(Range("aten::addmm", 100 * k + 10, 100 * k + 40, parent=k) for k in range(3)),
]
"""Three calls, each with another inside."""


def linear() -> Run:
    """The outer operator launches a copy, the inner one two kernels, in the last call three."""
    work = []
    for k in range(3):
        names = ["gemm", "add", "add"][: 3 if k == 2 else 2]
        work.append(Work("copy", 100 * k + 20, 100 * k + 21, (100 * k + 5, 100 * k + 6), operator=k))
        work += [
            Work(name, 100 * k + 60 + 5 * n, 100 * k + 62 + 5 * n, (100 * k + 15 + n, 100 * k + 16 + n), operator=k + 3)
            for n, name in enumerate(names)
        ]
    return run_of(work, RANGES)


def test_an_operator_has_what_it_launches_itself() -> None:
    rows = linear().analyse("operator_launches")

    found = rows.select("operator", "count", "kernels", "sequence", "kernel_ns").rows()
    assert found == [
        ("aten::addmm", 2, 2, "gemm -> add", 8 * US),
        ("aten::addmm", 1, 3, "gemm -> add (x2)", 6 * US),
        ("aten::linear", 3, 1, "copy", 3 * US),
    ]
    assert rows.select("to_launch_ns", "to_start_ns").rows()[::2] == [(5 * US, 45 * US), (5 * US, 15 * US)]


def test_outer_operators_have_what_those_inside_launch() -> None:
    rows = linear().analyse("kernel_sequences")

    assert rows.select("operator", "count", "kernels", "sequence", "kernel_ns", "host_ns").rows() == [
        ("aten::linear", 2, 3, "copy -> gemm -> add", 10 * US, 100 * US),
        ("aten::linear", 1, 4, "copy -> gemm -> add (x2)", 7 * US, 50 * US),
    ]
    assert rows["count_ratio"].to_list() == pytest.approx([2 / 3, 1 / 3])


def test_one_operator_and_long_sequences_are_chosen() -> None:
    rows = linear().analyse("kernel_sequences", operator="aten::addmm", shortest=3)

    assert rows.select("operator", "count", "sequence", "host_ns").rows() == [
        ("aten::addmm", 1, "gemm -> add (x2)", 30 * US)
    ]


def test_a_long_sequence_is_cut_and_counted() -> None:
    (first, _) = linear().analyse("kernel_sequences", shown=1)["sequence"]

    assert first == "copy -> 2 more"


def test_calls_that_only_their_number_tells_apart_are_one_row() -> None:
    names = [
        "hcom_allReduce__690_0_1",
        "hcom_allReduce__690_1_1",
        "hcom_allGather__690_2_1",
        "triton_fused_0_1_2",
    ]
    ranges = [Range("c10d::call", 100 * k, 100 * k + 50) for k in range(4)]
    work = [Work(name, 100 * k + 60, 100 * k + 70, (100 * k, 100 * k + 1), operator=k) for k, name in enumerate(names)]

    run = run_of(work, ranges)

    assert sorted(run.analyse("operator_launches").select("sequence", "count").rows()) == [
        ("hcom_allGather", 1),
        ("hcom_allReduce", 2),
        ("triton_fused_0_1_2", 1),
    ]
    assert sorted(run.analyse("kernel_launches").select("name", "count").rows()) == [
        ("hcom_allGather", 1),
        ("hcom_allReduce", 2),
        ("triton_fused_0_1_2", 1),
    ]


def test_an_unknown_operator_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(Unavailable, match=r"no operator is called aten::linea\. .*aten::linear"):
        linear().analyse("kernel_sequences", operator="aten::linea")


def test_an_operator_is_found_by_the_call_that_launches() -> None:
    ranges = [
        Range("aten::mm", 0, 20),
        Range("Enqueue@aclnnMm", 5, 6, parent=0, category="queue", correlation=1000),
        Range("Dequeue@aclnnMm", 7, 9, category="queue", correlation=1000),
    ]

    rows = run_of([Work("mm", 30, 40, (8, 9))], ranges).analyse("operator_launches")

    assert rows.select("operator", "sequence").rows() == [("aten::mm", "mm")]


def test_work_without_operators_has_no_sequences() -> None:
    with pytest.raises(Unavailable, match="no device work with a known operator"):
        run_of([Work("mm", 30, 40, (8, 9))], [Range("aten::mm", 0, 20)]).analyse("kernel_sequences")


def test_an_operator_without_long_sequences_has_no_rows() -> None:
    assert linear().analyse("kernel_sequences", operator="aten::addmm", shortest=4).is_empty()
