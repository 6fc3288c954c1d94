"""Short operators that recur in the same order, with gaps between them or bound by memory."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.advice import advise, worded
from stepscope.analysis.operators.fusible_operators import Limits, fusible_operators
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNEL_COUNTERS, KERNELS, OPERATORS, RANKS, STEPS

US = 1000
EACH = 10 * US
"""From the start of one kernel to that of the next."""
TIMES, COUNT = 8, 3
"""Sequences in a step, and steps."""
STEP = 80 * EACH


def rows(
    sequence: str = "Mul Add Cast", *, busy: float = 0.2, stream: int = 1, after: str = "MatMulV3", rank: int = 0
) -> list[dict[str, Any]]:
    """Kernels of steps that repeat a sequence, each time followed by a product."""
    found: list[dict[str, Any]] = []
    for step in range(COUNT):
        now = step * STEP
        for word in f"{sequence} {after} ".split() * TIMES:
            shape, _, name = word.rpartition("/")
            kind = "communication" if name == "hcom" else "compute"
            core = "AI_CPU" if name == "Where" else "AI_VECTOR_CORE"
            found.append(
                {
                    "start_ns": now, "duration_ns": round(busy * EACH), "kind": kind, "name": f"aclnn{name}",
                    "type": name,
                    "core": core, "stream": stream, "step": step, "input_shapes": shape or "4", "rank": rank,
                }
            )  # fmt: skip
            now += EACH
    return found


def frame(found: list[dict[str, Any]]) -> pl.DataFrame:
    order = sorted(found, key=lambda row: (row["rank"], row["start_ns"], row["stream"]))
    names = {name: [row[name] for row in order] for name in found[0] if name != "rank"}
    ranks = pl.Series("rank", [row["rank"] for row in order], dtype=pl.Int32)
    return KERNELS.frame(kernel=list(range(len(order))), **names).with_columns(ranks)


def breakdown(ranks: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        [{"rank": rank, "step": step, "window_ns": STEP} for rank in range(ranks) for step in range(COUNT)],
        schema_overrides={"rank": pl.Int32},
    )


def found(kernels: list[dict[str, Any]], **tables: Any) -> list[dict[str, Any]]:
    ranks = 1 + max(row["rank"] for row in kernels)
    try:
        return fusible_operators(frame(kernels).lazy(), breakdown(ranks), **tables).to_dicts()
    except Unavailable:
        return []


def test_a_sequence_with_gaps_is_found_with_its_times() -> None:
    (row,) = found(rows())

    assert (row["sequence"], row["kernels"], row["count"], row["per_step"]) == ("Mul, Add, Cast", 3, 24, 8.0)
    assert row["span_ns"] == 24 * 22 * US  # from the start of the first to the end of the last
    assert row["busy_ns"] == 24 * 6 * US
    assert row["gaps_ns"] == 24 * 16 * US
    assert row["share_ratio"] == pytest.approx(24 * 22 / (COUNT * 800))
    assert (row["bound"], row["moving_ratio"], row["operators"], row["place"]) == ("host", None, None, None)
    assert (row["shapes"], row["first_start_ns"]) == ("4", 0)


@pytest.mark.parametrize(
    "some",
    [
        rows(busy=0.9),  # no gaps
        rows("Mul Add"),  # too short
        rows("Mul MatMulV3 Add Cast"),
        rows("Mul hcom Add Cast"),
        rows("Mul Where Add Cast"),  # on the device's own processors
        rows("Mul FusedMulAdd Add Cast"),
        [row for row in rows() if row["start_ns"] % STEP < 20 * EACH],  # five times in a step
        [{**row, "step": None} for row in rows()],
        [{**row, "stream": place % 2} for place, row in enumerate(rows(after=""))],
        [{**row, "input_shapes": str(place)} for place, row in enumerate(rows())],
    ],
)
def test_what_is_no_sequence(some: list[dict[str, Any]]) -> None:
    assert found(some) == []


def test_streams_that_run_at_the_same_time_do_not_interleave() -> None:
    (row,) = found([*rows(), *rows("hcom", after="", stream=2)])

    assert (row["sequence"], row["count"]) == ("Mul, Add, Cast", 24)


def test_the_same_names_with_other_shapes_are_another_sequence() -> None:
    sequences = found(rows("Mul Add Cast MatMulV3 9/Mul 9/Add 9/Cast"))

    assert [(row["sequence"], row["shapes"], row["count"]) for row in sequences] == [
        ("Mul, Add, Cast", "4", 24),
        ("Mul, Add, Cast", "9", 24),
    ]


def test_sequences_never_add_up_to_more_than_the_steps() -> None:
    (row,) = found(rows("Mul Mul Mul Mul Mul Mul Mul", after=""))  # 56 equal kernels in a step, in windows of up to 10

    assert row["kernels"] == 9  # five windows of ten are too few
    assert row["count"] == 18
    assert row["span_ns"] <= COUNT * STEP


def counters(moving: float, count: int) -> pl.LazyFrame:
    rows = KERNEL_COUNTERS.frame(
        kernel=list(range(count)), aiv_mte2_ratio=[moving] * count, aiv_vec_ratio=[0.1] * count
    )
    return rows.with_columns(rank=pl.lit(0, pl.Int32)).lazy()


def test_without_gaps_counters_tell_whether_memory_limits_it() -> None:
    some = rows(busy=0.9)

    (row,) = found(some, kernel_counters=counters(0.9, len(some)))

    assert (row["bound"], row["moving_ratio"]) == ("memory", pytest.approx(0.9))
    assert found(some, kernel_counters=counters(0.7, len(some))) == []


def test_each_rank_has_its_own() -> None:
    sequences = found([*rows(), *rows("Sub Exp Neg Cast", rank=1), *rows(busy=0.9, rank=2)])

    assert [(row["rank"], row["sequence"]) for row in sequences] == [(0, "Mul, Add, Cast"), (1, "Sub, Exp, Neg, Cast")]


def test_a_sequence_that_takes_little_is_left_out() -> None:
    limits = Limits(share_ratio=24 * 22 / (COUNT * 800) + 0.001)

    assert found(rows(), limits=limits) == []


def test_the_operators_that_launch_it_are_named() -> None:
    kernels = frame(rows()).with_columns(external_id=pl.col("kernel") // 2)
    operators = OPERATORS.frame(
        slice=[0, 1],
        name=["aten::mul", "aten::to"],
        external_id=[0, 1],
        start_ns=[0, 5],
        duration_ns=[4, 4],
        thread=["1"] * 2,
    ).with_columns(rank=pl.lit(0, pl.Int32))

    (row,) = fusible_operators(kernels.lazy(), breakdown(), operators=operators.lazy()).to_dicts()

    assert row["operators"] == "aten::mul, aten::to"  # the first of them launches two kernels


def recurring(rank: int = 0, device: str = "npu", framework: str = "pytorch") -> dict[str, pl.DataFrame]:
    """The tables of a rank; the others repeat shorter sequences."""
    starts = [step * STEP for step in range(COUNT)]
    ends = [start + STEP for start in starts]
    return {
        "kernels": frame(rows("Mul Add Cast Neg"[: -4 * (rank > 0)])).drop("rank"),
        "steps": STEPS.frame(
            step=list(range(COUNT)),
            start_ns=starts,
            end_ns=ends,
            window_start_ns=starts,
            window_end_ns=ends,
            window=["device"] * COUNT,
        ),
        "ranks": RANKS.frame(rank=[rank], framework=[framework], device_kind=[device]),
    }


@pytest.mark.parametrize(
    ("device", "framework", "remedy"),
    [("npu", "pytorch", "torchair"), ("npu", "mindspore", "mindspore.jit"), ("cuda", "pytorch", "CUDA graphs")],
)
def test_the_advice_fits_the_framework_and_the_device(device: str, framework: str, remedy: str) -> None:
    (finding,) = [
        one for one in advise(Run.from_frames({0: recurring(1, device, framework)})) if one.rule == "fusible-operators"
    ]

    words = worded(finding)
    assert remedy in words.action
    assert "8 per step: 176.0 us (22%), in 128.0 us of which none of them runs" in words.summary
    assert "Mul, Add, Cast" in words.cause
    assert (finding.severity, finding.confidence, finding.saving_ns) == ("low", "possible", 0)
