"""Sequences of operators that a fused one replaces."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.advice.rules.replaceable_operator import replaceable_operator
from stepscope.analysis.operators.replaceable_operators import replaceable_operators, written
from stepscope.errors import Unavailable
from stepscope.tables import OPERATORS, RANKS, SLICES


def ran(words: str, thread: str = "1") -> pl.DataFrame:
    """Operators one after the other, each with another one inside."""
    names = words.split()
    count = len(names)
    outer = [k * 10 for k in range(count)]
    return OPERATORS.frame(
        slice=list(range(2 * count)),
        name=[*(f"aten::{name}" for name in names), *["aten::empty"] * count],
        thread=[thread] * (2 * count),
        start_ns=[*outer, *(start + 2 for start in outer)],
        duration_ns=[8] * count + [3] * count,
    ).with_columns(rank=pl.lit(0, pl.Int32))


def found(words: str) -> dict[str, tuple[str, int]]:
    try:
        rows = replaceable_operators(ran(words).lazy())
    except Unavailable:
        return {}
    return {row["pattern"]: (row["sequence"], row["count"]) for row in rows.to_dicts()}


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("matmul mul softmax dropout matmul", "attention"),
        ("matmul div add softmax to matmul", "attention"),
        ("bmm masked_fill softmax bmm", "attention"),
        ("mul masked_fill softmax", "scaled masked softmax"),
        ("to pow mean add rsqrt mul to mul", "RMS normalisation"),
        ("mul slice slice neg cat mul add", "rotary position embedding"),
        ("chunk silu mul", "SwiGLU"),
        ("split gelu mul", "GeGLU"),
        ("softplus tanh mul", "Mish"),
        ("pow mul add mul tanh add mul", "GELU"),
        ("t mm add", "linear layer"),
        ("add layer_norm", "addition and layer normalisation"),
        ("group_norm silu", "group normalisation and SiLU"),
        ("permute contiguous reshape", "transposition with a copy"),
        ("linalg_vector_norm linalg_vector_norm linalg_vector_norm linalg_vector_norm stack linalg_vector_norm",
         "clipping of gradients"),
    ],
)  # fmt: skip
def test_each_sequence_is_found_once(words: str, pattern: str) -> None:
    assert set(found(words)) == {pattern}
    assert found(f"relu {words} relu {words}")[pattern][1] == 2


@pytest.mark.parametrize(
    "words",
    [
        "matmul add matmul add",  # a residual connection
        "scaled_dot_product_attention linear layer_norm",
        "view transpose matmul",
        "softmax matmul",
        "npu_fusion_attention npu_rms_norm npu_swiglu",
        "sigmoid mul",
    ],
)
def test_what_is_fused_or_ambiguous_is_none(words: str) -> None:
    assert found(words) == {}


def test_the_largest_pattern_has_the_operators() -> None:
    assert set(found("matmul mul masked_fill softmax matmul")) == {"attention"}


def test_operators_of_two_threads_are_no_sequence() -> None:
    one, other = ran("group_norm"), ran("silu", thread="2").with_columns(pl.col("slice") + 100)

    with pytest.raises(Unavailable):
        replaceable_operators(pl.concat([one, other]).lazy())


@pytest.mark.parametrize(("name", "is_slow"), [("aten::add_", True), ("npu::_npu_fused_adamw", False)])
def test_an_optimizer_whose_fused_operator_runs_is_none(name: str, is_slow: bool) -> None:
    operators = OPERATORS.frame(
        slice=list(range(50)), name=[name] * 50, thread=["1"] * 50, start_ns=list(range(50)), duration_ns=[1] * 50
    ).with_columns(rank=pl.lit(0, pl.Int32))
    mark = SLICES.frame(
        slice=[99], category=["annotation"], name=["Optimizer.step#AdamW.step"], start_ns=[0], duration_ns=[60]
    ).with_columns(rank=pl.lit(0, pl.Int32))

    try:
        patterns = replaceable_operators(operators.lazy(), mark.lazy())["pattern"].to_list()
    except Unavailable:
        patterns = []

    assert patterns == (["optimizer AdamW"] if is_slow else [])


def test_a_sequence_in_words() -> None:
    assert written(["norm", "norm", "stack"]) == "norm (x2), stack"


@pytest.mark.parametrize(
    ("device", "adam", "adagrad"),
    [
        ("cuda", "Adam(fused=True)", "Adagrad(foreach=True)"),
        ("cpu", "Adam(fused=True)", "Adagrad(fused=True)"),
        ("npu", "torch_npu.optim.NpuFusedAdam", None),
    ],
)
def test_optimizers_are_fused_as_their_device_allows(device: str, adam: str, adagrad: str | None) -> None:
    row = {"rank": 0, "sequence": "x", "count": 1, "operators": 9, "host_ns": 500, "place": None}
    rows = pl.DataFrame(
        [{**row, "pattern": f"optimizer {name}"} for name in ("Adam", "Adagrad")], infer_schema_length=9
    )
    ranks = RANKS.frame(rank=[0], framework=["pytorch"], device_kind=[device]).lazy()
    (finding,) = replaceable_operator(
        rows.with_columns(pl.col("place").cast(pl.String)), pl.DataFrame({"rank": [0]}), ranks
    )

    assert sorted(finding.parameters["functions"]) == sorted(filter(None, (adam, adagrad)))
