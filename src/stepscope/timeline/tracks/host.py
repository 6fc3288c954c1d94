"""What ran on the host: a track a thread, with the names that the source gives processes and threads."""

from __future__ import annotations

import polars as pl

from stepscope.text_columns import filled_in
from stepscope.timeline.tracks.base import Family, Part, drawn_here
from stepscope.timeline.tracks.flows import launch_flow, numbered

ARGUMENTS = ("input_shapes", "input_types", "input_values", "sequence", "forward_thread", "external_id")
_THREAD = ("rank", "process", "thread")


def host_slices(part: Part) -> pl.LazyFrame:
    """The rows of `slices` that are no device work, but for calls and their tasks: they stand with communication."""
    elsewhere = ["communication", *(["communication_task"] if part.has("communication_tasks") else [])]
    return drawn_here(part, "slices").filter(pl.col("stream").is_null() & ~pl.col("category").is_in(elsewhere))


def _host(part: Part) -> pl.LazyFrame | None:
    """The rows of `host_slices`, with what `operators` knows of them, and arrows."""
    if not part.has("slices"):
        return None
    stacks = part.table("stacks").select("rank", "stack", call_stack="text")
    details = part.table("operators").select("rank", "slice", *ARGUMENTS, "stack")
    rows = (
        host_slices(part)
        .select(
            "rank", "slice", "start_ns", "duration_ns", "name", "category", "process", "thread", "step", "correlation"
        )
        .join(details, on=["rank", "slice"], how="left", maintain_order="left")
        .with_columns(flow_out_launch=launch_flow(pl.col("category") == "runtime"))
    )
    if part.has("stacks"):
        rows = rows.join(stacks, on=["rank", "stack"], how="left", maintain_order="left")
    for end, column in (("from", "flow_out_recorded"), ("to", "flow_in_recorded")):
        if part.has("flows"):
            ends = _ends(part, end).rename({"number": column})
            outermost = pl.col("duration_ns") == pl.col("duration_ns").max().over(column)
            rows = rows.join(ends, on=["rank", "thread", "start_ns"], how="left", maintain_order="left").with_columns(
                pl.when(outermost).then(column).alias(column)
            )
    titles = part.once(thread_titles)
    return (
        rows.join(titles.lazy(), on=_THREAD, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(track=pl.col("track").fill_null("Host"), order=pl.col("order").fill_null(0))
        .drop("slice", "process", "thread", "stack")
    )


def _ends(part: Part, end: str) -> pl.LazyFrame:
    """The tails (`from`) or heads (`to`) of recorded arrows: `rank`, `thread`, `start_ns`, `number`.

    The outermost range that starts there gets the arrow; of several arrows at one place, one is kept."""
    both = part.table("flows").drop_nulls(["from_ns", "to_ns"]).with_row_index("row")
    return (
        both.select("rank", thread=f"{end}_thread", start_ns=f"{end}_ns", number=numbered(pl.col("row"), 2))
        .drop_nulls()
        .unique(["rank", "thread", "start_ns"], keep="first", maintain_order=True)
    )


def thread_titles(part: Part) -> pl.DataFrame:
    """What each host thread is called: `rank`, `process`, `thread`, `track`, `order`."""
    used = (
        host_slices(part)
        .group_by(_THREAD)
        .agg(slices=pl.len(), first_ns=pl.col("start_ns").min(), depth=pl.col("depth").max())
        .collect()
    )
    names = part.table("threads").collect().unique(_THREAD, keep="first", maintain_order=True)
    known = used.join(names, on=_THREAD, how="left", nulls_equal=True, maintain_order="left")
    processes = names.drop_nulls("process_name").unique(["rank", "process"], keep="first", maintain_order=True)
    known = known.drop("process_name", "process_labels", "process_sort_index").join(
        processes.select("rank", "process", "process_name"), on=["rank", "process"], how="left", nulls_equal=True
    )
    number = pl.coalesce(filled_in("thread {}", pl.col("thread")), pl.lit("thread"))
    is_same = pl.col("thread_name").str.contains(pl.col("thread"), literal=True).fill_null(False)
    name = (
        pl.when(pl.col("thread_name").is_null() | (pl.col("thread_name") == ""))
        .then(number)
        .when(is_same)
        .then(pl.col("thread_name"))
        .otherwise(filled_in("{} ({})", "thread_name", "thread"))
    )
    process = pl.coalesce(filled_in("{} {}: ", "process_name", "process"), filled_in("process {}: ", "process"))
    several = pl.col("process").n_unique().over("rank") > 1
    titled = known.with_columns(track=pl.when(several).then(pl.concat_str(process, name)).otherwise(name))
    # The busiest thread of the busiest process first, then as the source sorts them.
    ordered = titled.sort(
        "rank",
        pl.col("slices").sum().over("rank", "process"),
        "process",
        pl.col("thread_sort_index").fill_null(0),
        "slices",
        "first_ns",
        "thread",
        descending=[False, True, False, False, True, False, False],
        nulls_last=True,
        maintain_order=True,
    )
    repeated = pl.int_range(pl.len()).over("rank", "track")
    return ordered.select(
        *_THREAD,
        track=pl.when(repeated > 0).then(filled_in("{} [{}]", "track", repeated + 1)).otherwise("track"),
        order=pl.int_range(pl.len(), dtype=pl.Int64).over("rank"),
    )


FAMILY = Family(
    "host",
    "Host",
    "Ranges of host threads: operators, annotations, Python functions, calls of the runtime, task queues, garbage "
    "collections; with shapes and call stacks; arrows lead to device work and from forward to backward operators.",
    "detail",
    _host,
    paged=("slices", "operators"),
    tables=("slices", "operators"),
    priority=6,
)
