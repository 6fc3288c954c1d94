"""Which kernels are slower on a rank than on its peers, and what they have in common."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pytest
from jobs import job

from stepscope.analysis.job.kernel_classes import Limits as ClassLimits
from stepscope.analysis.job.kernel_patterns import patterns_of
from stepscope.analysis.job.rank_kernels import compared
from stepscope.errors import Unavailable
from stepscope.run import Run
from stepscope.tables import KERNELS, OPERATORS, STEPS

NS = {"gemm": 400_000, "attention": 300_000, "add": 200_000, "norm": 100_000}
US = 1000


def kernels_of(
    factor: Mapping[str, float] | None = None,
    calls: Mapping[str, int] | None = None,
    shape: str = "[8]",
    steps: int = 2,
) -> dict[str, pl.DataFrame]:
    """A rank that runs each of `NS` twice in a step, unless stated otherwise."""
    rows: list[dict[str, object]] = []
    now = 0
    for step in range(1, steps + 1):
        for name in (*NS, *(set(calls or {}) - set(NS))):
            for _ in range((calls or {}).get(name, 2)):
                length = round(NS.get(name, 50 * US) * (factor or {}).get(name, 1.0))
                rows.append(
                    {"start_ns": now, "duration_ns": length, "kind": "compute", "name": name, "step": step,
                     "input_shapes": shape}
                )  # fmt: skip
                now += length
    marked = {"window_start_ns": [0], "window_end_ns": [now], "window": ["device"]}
    every = [STEPS.frame(step=[k], start_ns=[0], end_ns=[now], **marked) for k in range(1, steps + 1)]
    return {"kernels": KERNELS.conform(pl.DataFrame(rows).with_row_index("kernel")), "steps": pl.concat(every)}


def pattern(slow: dict[str, pl.DataFrame], ranks: int = 4) -> dict[str, object]:
    """The pattern of rank 1, which differs from the others."""
    run = Run.from_frames({rank: slow if rank == 1 else kernels_of() for rank in range(ranks)})
    found = run.analyse("kernel_patterns")
    assert set(found.filter(pl.col("rank") != 1)["pattern"]) == {"none"}
    return found.row(1, named=True)


def test_all_kernels_slower_by_one_factor_are_alike() -> None:
    found = pattern(kernels_of(dict.fromkeys(NS, 1.2)))

    assert (found["pattern"], found["names"], found["excess_ns"]) == ("alike", [], 400 * US)
    assert found["factor"] == pytest.approx(1.2)


@pytest.mark.parametrize(
    ("slower", "kind", "names"),
    [
        ({"attention": 1.5}, "some", ["attention"]),
        ({"gemm": 1.2, "attention": 1.2}, "matrix", ["gemm", "attention"]),
        ({"add": 1.3, "norm": 1.3}, "vector", ["add", "norm"]),
        ({"gemm": 1.5, "add": 1.1}, "some", ["gemm"]),
    ],
)
def test_the_slower_kernels_are_named_with_their_factor(slower, kind, names) -> None:
    found = pattern(kernels_of(slower))

    assert (found["pattern"], found["names"]) == (kind, names)
    assert found["factor"] == pytest.approx(max(slower.values()))


def test_more_calls_and_other_shapes_and_own_kernels_are_told_from_slow_ones() -> None:
    more, longer, own = (
        kernels_of(calls={"add": 5}),
        kernels_of({"gemm": 1.5}, shape="[12]"),
        kernels_of(calls={"x": 4}),
    )

    found = [pattern(slow) for slow in (more, longer, own)]

    assert [(row["pattern"], row["names"], row["named_ns"], row["factor"]) for row in found] == [
        ("calls", ["add"], 600 * US, None),
        ("shapes", ["gemm"], 400 * US, None),
        ("only", ["x"], 200 * US, None),
    ]


def test_calls_of_other_shapes_beside_those_of_the_peers_are_further_calls() -> None:
    slow = kernels_of()
    plain = pl.col("kernel") < slow["kernels"].height - 2
    rows = slow["kernels"].with_columns(
        name=pl.when(plain).then("name").otherwise(pl.lit("gemm")),
        duration_ns=pl.when(plain).then("duration_ns").otherwise(3_000 * US),
        input_shapes=pl.when(plain).then("input_shapes").otherwise(pl.lit("[99]")),
    )
    further = pl.concat([slow["kernels"], rows.tail(2)])

    found = pattern({**slow, "kernels": further.drop("kernel").with_row_index("kernel")})

    assert (found["pattern"], found["names"], found["named_ns"]) == ("calls", ["gemm"], 3_000 * US)


def test_the_parts_of_an_excess_add_up() -> None:
    run = Run.from_frames({0: kernels_of({"add": 1.3}, calls={"add": 5}), 1: kernels_of(), 2: kernels_of()})

    row = run.analyse("rank_kernels").row(0, named=True)

    assert (row["name"], row["excess_ns"], row["slower_ns"], row["calls_ns"]) == ("add", 900 * US, 300 * US, 600 * US)
    assert row["shapes_ns"] == 0


def test_if_most_ranks_are_slow_they_can_be_compared_with_the_others() -> None:
    slow = kernels_of(dict.fromkeys(NS, 1.3))
    run = Run.from_frames({0: kernels_of(), 1: slow, 2: slow, 3: slow})

    found = patterns_of(compared(run.analyse("kernel_classes"), [1, 2, 3])).filter(pl.col("rank") > 0)

    assert found["pattern"].to_list() == ["alike"] * 3
    assert found["factor"].to_list() == pytest.approx([1.3] * 3)


def test_one_rank_alone_has_no_peers() -> None:
    with pytest.raises(Unavailable, match="at least two ranks"):
        job(ranks=1).analyse("rank_kernels")


def of_operators(*tokens: int) -> Run:
    """A rank each whose persistent kernel has the same grid for so many tokens, which its operators show."""
    frames = {}
    for rank, count in enumerate(tokens):
        tables = kernels_of({"gemm": count})
        launched = {
            "external_id": pl.col("kernel"),
            "grid": pl.lit("[132, 1, 1]"),
            "input_shapes": pl.lit(None, pl.String),
        }
        tables["kernels"] = tables["kernels"].with_columns(**launched)
        calls = tables["kernels"].select(
            slice="kernel", external_id="kernel", start_ns="start_ns", name=pl.lit("aten::mm")
        )
        shaped = calls.with_columns(input_shapes=pl.lit(f"[[{count}, 8]]"), duration_ns=pl.lit(1))
        tables["operators"] = OPERATORS.conform(shaped)
        frames[rank] = tables
    return Run.from_frames(frames)


def test_kernels_without_shapes_have_those_of_the_operators_that_launched_them() -> None:
    run = of_operators(1, 1, 3)

    found = run.analyse("rank_kernels").filter(rank=2, name="gemm").row(0, named=True)

    assert (found["sized_by"], found["factor"], found["slower_ns"]) == ("shapes", None, 0)
    assert found["shapes_ns"] == found["excess_ns"] == 4 * NS["gemm"]


def test_where_there_are_too_many_shapes_only_the_grid_is_known() -> None:
    classes = of_operators(1, 1, 3).analyse("kernel_classes", limits=ClassLimits(operator_variants=0))

    found = compared(classes).filter(rank=2, name="gemm").row(0, named=True)

    assert (found["sized_by"], found["factor"], found["slower_ns"]) == ("grid", 3.0, 4 * NS["gemm"])
