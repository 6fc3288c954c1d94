"""What torch.compile marks when a compiled function is called: the search for a version that fits, one that runs, or a
compiler."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.methods.names import named, names_of

REGION = r"^Torch-Compiled Region: (\d{1,18})/(\d{1,18})\b"
"""A region: the number of its function (after a graph break, the rest of a function has a number of its own), and the
number of its version, which a recompilation raises."""

SEARCHED, RUN, COMPILED = "search", "region", "compile"

MARKS = {
    SEARCHED: r"^TorchDynamo Cache Lookup$",
    RUN: r"^Torch-Compiled Region",
    COMPILED: r"^(dynamo|entire_frame_compile)$|^_compile\.(<locals>\.)?compile_inner \(dynamo_timed\)$"
    r"|torch/_dynamo/convert_frame\.py\(\d+\): (__call__|_convert_frame|_compile)$",
}
"""By name: the search for a version whose guards hold, after which a version runs, a compiler starts, or neither if the
function runs as written; a version that runs; and a compiler, which may be marked several times, one in another."""


def compiled_calls(slices: pl.LazyFrame) -> pl.DataFrame:
    """The marks of calls of compiled functions, in order of time on each thread.

    Returns:
        `rank`, `thread`, `step`, `slice`, `name`, `start_ns`, `end_ns`, `what`, and of what follows on its thread
        `next` (what), `next_name` and `next_slice`; null at the end.
    """
    known, asked = names_of(slices), {what: pl.col("name").str.contains(text) for what, text in MARKS.items()}
    found = named(slices, known, **asked)
    # most jobs have none: then there is nothing to read
    some = slices if known.filter(pl.any_horizontal(*asked.values())).height else slices.head(0)
    rows = (
        some.filter(pl.col("device").is_null() & pl.col("stream").is_null() & pl.any_horizontal(*found.values()))
        .select(
            *("rank", "thread", "step", "slice", "name", "start_ns", "category"),
            end_ns=pl.col("start_ns") + pl.col("duration_ns"),
            what=pl.coalesce(pl.when(is_one).then(pl.lit(what)) for what, is_one in found.items()),
        )
        # what runs while a compiler traces is no call
        .filter((pl.col("what") == COMPILED) == (pl.col("category") == "compile"))
        .collect(engine="streaming")
        .drop("category")
        .sort("rank", "thread", "start_ns", -pl.col("end_ns"), "slice", nulls_last=True)
    )
    is_compiler, place = pl.col("what") == COMPILED, ["rank", "thread"]
    reach = pl.col("end_ns").cum_max().shift(1).over(place)
    compilers = rows.filter(is_compiler).filter((pl.col("start_ns") >= reach).fill_null(value=True))
    calls = pl.concat([rows.filter(~is_compiler), compilers]).sort(*place, "start_ns", "slice", nulls_last=True)
    following = {"next": "what", "next_name": "name", "next_slice": "slice"}
    return calls.with_columns(pl.col(name).shift(-1).over(place).alias(key) for key, name in following.items())
