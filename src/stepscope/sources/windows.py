"""Spans of time: of ranges, and of the windows in which a step's times are summed on a device."""

from __future__ import annotations

import polars as pl


def device_windows(first_ns: pl.Series, last_ns: int) -> pl.DataFrame:
    """Lay out the windows of steps: each from its first device task to that of the next step.

    A step without device work has an empty window where the next step's begins. Work of a step that starts before an
    earlier step's does not turn the windows round: a window begins no earlier than the one before it.

    Args:
        first_ns: First device task of each step, in the order of the steps; null for none.
        last_ns: End of the last step's last device task.

    Returns:
        `window_start_ns`, `window_end_ns`, in the order of the steps.

    Examples:
        >>> device_windows(pl.Series([10, None, 250]), 270).rows()
        [(10, 250), (250, 250), (250, 270)]
    """
    start = pl.col("first_ns").fill_null(strategy="backward").fill_null(last_ns).cum_max()
    laid = pl.DataFrame({"first_ns": first_ns.cast(pl.Int64)}).select(window_start_ns=start)
    last = pl.max_horizontal(pl.lit(last_ns), pl.col("window_start_ns").max())
    return laid.with_columns(window_end_ns=pl.col("window_start_ns").shift(-1).fill_null(last))


def span_of(ranges: pl.DataFrame) -> tuple[int, int] | None:
    """First start and last end of ranges (`start_ns`, `duration_ns`); None if there are none."""
    first, last = ranges.select(pl.min("start_ns"), last=(pl.col("start_ns") + pl.col("duration_ns")).max()).row(0)
    return None if first is None else (first, last)


def around(spans: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    """The span that holds all of `spans`."""
    known = [span for span in spans if span is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


STREAM_SPANS = {
    **dict.fromkeys(("step", "device", "stream"), pl.Int32),
    **dict.fromkeys(("first_ns", "last_ns", "computing_ns"), pl.Int64),
}
"""Columns of `stream_spans`."""


def stream_spans(work: pl.DataFrame) -> pl.DataFrame:
    """First start and last end of device work in each step on each stream, as `STREAM_SPANS`.

    Args:
        work: `step` (of its launch), `device`, `stream`, `kind`, `start_ns`, `duration_ns`.
    """
    computing = pl.col("duration_ns").filter(pl.col("kind") == "compute").sum()
    ends = pl.col("start_ns") + pl.col("duration_ns")
    spans = work.group_by("step", "device", "stream").agg(
        first_ns=pl.min("start_ns"), last_ns=ends.max(), computing_ns=computing
    )
    return spans.select(pl.col(name).cast(dtype) for name, dtype in STREAM_SPANS.items())


def own_spans(spans: pl.DataFrame, order: pl.Series) -> pl.DataFrame:
    """The spans of steps' own turns on the device, as `step_spans`.

    A host that runs ahead launches work of a step while the device still runs the previous one. Early work on side
    streams, e.g. the copy of the next batch, does not begin a step: it begins with its first work on the stream
    that computes most, or on another one that never begins with a step before that stream is through with the last.

    Args:
        spans: `stream_spans`, of any number of parts of the work.
        order: The steps in order.

    Returns:
        A row for each step with work: `first_ns` is null of one that did nothing but early work on side streams.
    """
    stream = ["device", "stream"]
    computing = (
        spans.group_by(*stream)
        .agg(pl.sum("computing_ns"))
        .sort("computing_ns", *stream, descending=[True, False, False])
    )
    main = computing.head(1).filter(pl.col("computing_ns") > 0).select(*stream, main=pl.lit(True))
    by_stream = (
        pl.DataFrame({"step": order.cast(pl.Int32)})
        .with_row_index("place")
        .join(spans.join(main, on=stream, how="left", nulls_equal=True), on="step")
        .with_columns(pl.col("main").fill_null(False))
    )
    ends = by_stream.group_by("place").agg(end_ns=pl.col("last_ns").filter("main").max()).sort("place")
    through = ends.select("place", through_ns=pl.col("end_ns").cum_max().forward_fill().shift(1))
    early = (pl.col("first_ns") < pl.col("through_ns")).fill_null(False)
    begins = pl.col("main") | ~early.any().over(stream)
    return (
        by_stream.join(through, on="place", how="left")
        .with_columns(begins=begins)
        .group_by("step")
        .agg(first_ns=pl.col("first_ns").filter("begins").min(), last_ns=pl.max("last_ns"))
    )


def step_spans(work: pl.DataFrame) -> pl.DataFrame:
    """`step`, `first_ns` and `last_ns`: first start and last end of device work in each step.

    Args:
        work: `step` (of its launch), `start_ns`, `duration_ns`.
    """
    ends = pl.col("start_ns") + pl.col("duration_ns")
    return work.group_by("step").agg(first_ns=pl.min("start_ns"), last_ns=ends.max())
