"""Sequences of operators that one fused operator replaces, and optimizers that update each parameter by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from stepscope.analysis.columns import columns, names
from stepscope.analysis.methods.batches import batches_by_rank
from stepscope.analysis.methods.code_places import places
from stepscope.analysis.methods.intervals import END
from stepscope.analysis.methods.written_sequences import written
from stepscope.analysis.registry import analysis
from stepscope.errors import Unavailable
from stepscope.tables import SLICES
from stepscope.tables.base import Column

NONE_FOUND = "no sequence of operators that a fused one replaces was recorded"

LEAST_UPDATES = 40
"""Operators in one step of an optimizer from which it updates parameters one by one, chosen by us."""

COLUMNS = columns(
    "rank",
    Column("pattern", "string", "What the sequence computes."),
    Column("sequence", "string", "Names of the operators in order; `(x3)`: three in a row.", importance=10),
    Column("count", "int64", "How often it occurs.", importance=61),
    Column("operators", "int64", "Operators of all occurrences, without those that they call."),
    Column("host_ns", "int64", "Their time on the host."),
    Column("first_start_ns", "int64", "When the first one began.", moment=True),
    Column("place", "string", "User's function that called the first one, with file and line; null if not recorded."),
    nulls="place",
    keep="rank pattern count operators host_ns sequence",
)

_SPLIT = r"(?:chunk|split|split_with_sizes|slice|narrow|unbind|select)"
_PRODUCT = r"(?:matmul|bmm|baddbmm|einsum)"
_ALONG = r"(?:to|view|reshape|contiguous|expand|type_as|transpose|permute|_unsafe_view|alias)"
_CAST = rf"(?:(?:{_ALONG}) )*"
_SCALED = r"(?:(?:mul|div|mul_|div_) )?"
_MASKED = r"(?:(?:add|add_|masked_fill|masked_fill_|where) )?"
_SOFTMAX = r"(?:softmax|_softmax|special_softmax)"

PATTERNS = {
    "attention": (
        rf"{_PRODUCT} {_CAST}{_SCALED}{_CAST}{_MASKED}{_CAST}{_SOFTMAX} {_CAST}(?:dropout |native_dropout )?{_CAST}"
        rf"{_PRODUCT} "
    ),
    "scaled masked softmax": rf"(?:mul|div|mul_|div_) (?:add|add_|masked_fill|masked_fill_) {_SOFTMAX} ",
    "RMS normalisation": r"(?:to )?pow mean add rsqrt mul (?:to )?mul ",
    "rotary position embedding": rf"mul (?:{_SPLIT} )+neg cat mul add ",
    "SwiGLU": rf"(?:{_SPLIT} )+silu mul ",
    "GeGLU": rf"(?:{_SPLIT} )+gelu mul ",
    "Mish": r"softplus tanh mul ",
    "GELU": r"(?:mul |div )?erf add (?:mul ){1,2}|pow mul add mul tanh add mul ",
    "linear layer": r"(?:t|transpose|permute) (?:mm|matmul) add ",
    "addition and layer normalisation": r"add (?:layer_norm|native_layer_norm) ",
    "accumulated product": r"(?:t |transpose )?(?:matmul|mm) add_ ",
    "group normalisation and SiLU": r"group_norm silu ",
    "transposition with a copy": r"(?:permute|transpose) (?:contiguous|clone) (?:view|reshape|_unsafe_view) ",
    "permutation of tokens to experts": r"(?:sort|argsort) (?:floor_divide|div) (?:index_select|index) ",
    "clipping of gradients": (
        r"(?:(?:linalg_vector_norm|norm|_foreach_norm) ){4,}(?:stack|cat) (?:linalg_vector_norm|norm) "
    ),
}
"""What sequences compute, to the names of their operators (without `aten::`), each followed by a space. Where
several fit, the first one counts; they do not overlap."""

_OPTIMIZER = r"^Optimizer\.step#(\w+)\.step"
_FUSED = r"(?i)fused|apply_?adam|applyadam|multi_tensor|_foreach_(?:lerp|addcdiv|addcmul|add_|mul_|sub_)"


@analysis("rank", COLUMNS, together=True, nothing=NONE_FOUND)
def replaceable_operators(
    operators: pl.LazyFrame, slices: pl.LazyFrame | None = None, stacks: pl.LazyFrame | None = None
) -> pl.DataFrame:
    """Find sequences of the framework's operators, outermost ones of one thread, that a fused operator replaces.

    One row per rank, pattern and sequence, the longest time on the host first.

    Optimizers that update each parameter by several operators count too, unless fused ones already run in their steps.

    Raises:
        Unavailable: If there are none.
    """
    wanted = operators.select("rank", "slice", "thread", "name", "start_ns", "duration_ns")
    found = [rows for batch in batches_by_rank(wanted) for rows in _of_batch(batch)]
    marked = _optimizers(operators, SLICES.or_empty(slices))
    rows = pl.concat([pl.DataFrame([vars(one) for one in found], schema=_FOUND), marked])
    if rows.is_empty():
        raise Unavailable(NONE_FOUND)
    sums = (
        rows.sort("rank", "start_ns", "slice")
        .group_by("rank", "pattern", "sequence", maintain_order=True)
        .agg(
            count=pl.len().cast(pl.Int64),
            operators=pl.col("operators").sum(),
            host_ns=pl.col("host_ns").sum(),
            first_start_ns=pl.col("start_ns").first(),
            slice=pl.col("slice").first(),
        )
    )
    placed = places(sums, operators, stacks, slices).rename({"code": "place"})
    return (
        sums.join(placed, on=["rank", "slice"], how="left")
        .select(names(COLUMNS))
        .sort("rank", -pl.col("host_ns"), "pattern", "sequence")
    )


@dataclass(frozen=True)
class _Found:
    """An occurrence of a sequence."""

    rank: int
    slice: int
    pattern: str
    sequence: str
    operators: int
    start_ns: int
    host_ns: int


_FOUND = {
    **{"rank": pl.Int32, "slice": pl.Int64, "pattern": pl.String, "sequence": pl.String},
    **{"operators": pl.Int64, "start_ns": pl.Int64, "host_ns": pl.Int64},
}

_COMPILED = {
    pattern: (re.compile(rf"(?<= )(?:{words})"), {*re.findall(r"[a-z_]\w+", words)})
    for pattern, words in PATTERNS.items()
}


def _of_batch(batch: pl.DataFrame) -> Iterator[_Found]:
    """The occurrences in the operators of some ranks."""
    rows = batch.sort("rank", "thread", "start_ns", -pl.col("duration_ns"), "slice")
    reach = END.cum_max().shift(1).over("rank", "thread")
    outer = rows.filter((pl.col("start_ns") >= reach).fill_null(value=True))
    short = outer.with_columns(word=pl.col("name").str.replace(r"^(aten|npu|torch_npu)::", ""))
    is_word = pl.col("word").str.contains(r"^\w+$")
    words = short.with_columns(word=pl.when(is_word).then("word").otherwise(pl.lit("-")))
    for (rank, _), some in words.partition_by("rank", "thread", as_dict=True, maintain_order=True).items():
        text = " " + " ".join(some["word"]) + " "
        known = {*some["word"].unique()}
        yield from _in_text(int(rank), text, known, some)


def _in_text(rank: int, text: str, known: set[str], rows: pl.DataFrame) -> Iterator[_Found]:
    """The occurrences on one thread: `text` has a word for each of its operators."""
    taken = bytearray(rows.height)
    for pattern, (fits, words) in _COMPILED.items():
        if words.isdisjoint(known):
            continue
        place = first = 0
        for match in fits.finditer(text):
            first += text.count(" ", place, match.start() - 1)
            place, count = match.start() - 1, match[0].count(" ")
            if any(taken[first : first + count]):
                continue
            taken[first : first + count] = b"x" * count
            part = rows.slice(first, count)
            start, end = int(part["start_ns"][0]), int((part["start_ns"] + part["duration_ns"])[-1])
            yield _Found(rank, int(part["slice"][0]), pattern, written(match[0].split()), count, start, end - start)


def _optimizers(operators: pl.LazyFrame, slices: pl.LazyFrame) -> pl.DataFrame:
    """Steps of optimizers that run many operators, none of which is a fused one."""
    marks = slices.filter((pl.col("category") == "annotation") & pl.col("name").str.contains(_OPTIMIZER))
    steps = marks.select(
        of_rank="rank",
        mark="slice",
        since_ns="start_ns",
        until_ns=END,
        optimizer=pl.col("name").str.extract(_OPTIMIZER),
    ).collect()
    if steps.is_empty():
        return pl.DataFrame(schema=_FOUND)
    near = operators.filter(pl.col("rank").is_in(steps["of_rank"].unique().implode()))
    timed = near.select("rank", "slice", "name", "start_ns", "duration_ns").collect(engine="streaming").sort("start_ns")
    inside = timed.join_asof(
        steps.sort("since_ns"), left_on="start_ns", right_on="since_ns", by_left="rank", by_right="of_rank",
        check_sortedness=False,
    ).filter(pl.col("start_ns") < pl.col("until_ns"))  # fmt: skip
    sums = inside.group_by("rank", "mark", "optimizer").agg(
        slice=pl.col("slice").first(),
        operators=pl.len().cast(pl.Int64),
        fused=pl.col("name").str.contains(_FUSED).any(),
        start_ns=pl.col("since_ns").first(),
        host_ns=(pl.col("until_ns") - pl.col("since_ns")).first(),
    )
    slow = sums.filter(~pl.col("fused") & (pl.col("operators") >= LEAST_UPDATES))
    pattern = pl.lit("optimizer ") + pl.col("optimizer")
    return slow.select(
        "rank",
        "slice",
        pattern.alias("pattern"),
        pl.col("optimizer").alias("sequence"),
        "operators",
        "start_ns",
        "host_ns",
    )
