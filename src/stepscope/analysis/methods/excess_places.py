"""Where in a step a rank loses its excess: the pieces of work that take longer than the same pieces of its peers."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.methods.batches import BATCH_ROWS

PLACE = ["rank", "step", "kind"]

PIECE = [*PLACE, "work", "name", "start_ns", "end_ns"]
"""What of a node says where it is cut."""


def cuts(nodes: pl.DataFrame, excess: pl.DataFrame) -> pl.Series:
    """How much shorter each node is without its rank's excess.

    The excess of a rank in a step and kind of work is taken from the pieces that are longer than the pieces at the same
    place (the same number within the step, of those of their name) on the ranks of its program with as many such
    pieces, in proportion to how much longer they are; from all pieces in proportion to their lengths as far as these do
    not suffice.

    Args:
        nodes: `rank`, `step`, `kind`, `name`, `start_ns`, `end_ns`; kinds that `excess` does not have stay as they are.
        excess: `rank`, `step`, `kind`, `program` and `excess_ns` of each; at most 0 means none.

    Returns:
        Int64, ns, one for each node: at least 0, at most its length.
    """
    peers = ["program", "step", "kind"]
    wanted = excess.select(*PLACE, "excess_ns", cell=pl.int_range(pl.len()), peers=pl.struct(peers).rank("dense"))
    wanted = wanted.filter((pl.col("excess_ns") > 0).any().over("peers"))
    cut = pl.repeat(0, nodes.height, dtype=pl.Int64, eager=True)
    steps = nodes["step"]
    for some in _some_steps(steps, wanted["step"]):
        here = steps.is_in(some).arg_true()
        pieces = nodes.select(*PLACE, "name", "start_ns", "end_ns")[here].with_columns(here.alias("node"))
        found = _cuts(pieces, wanted.filter(pl.col("step").is_in(some)))
        cut = cut.scatter(found["node"], found["cut"])
    return cut.alias("cut")


def _some_steps(steps: pl.Series, wanted: pl.Series) -> Iterator[list[int]]:
    """The wanted steps, a few at a time: pieces are only compared within a step, and there may be millions."""
    counts = steps.filter(steps.is_in(wanted.unique().implode())).value_counts(name="pieces").sort(steps.name)
    some: list[int] = []
    rows = 0
    for step, pieces in counts.iter_rows():
        if some and rows + pieces > BATCH_ROWS:
            yield some
            some, rows = [], 0
        some.append(step)
        rows += pieces
    if some:
        yield some


def _cuts(pieces: pl.DataFrame, wanted: pl.DataFrame) -> pl.DataFrame:
    """How much shorter each piece of ranks with an excess is: `node`, `cut`."""
    # Numbers instead of names: it is done for millions of pieces.
    rows = pieces.select(
        *PLACE,
        "node",
        pl.col("name").cast(pl.Categorical).to_physical(),
        length=pl.col("end_ns") - pl.col("start_ns"),
    )
    rows = rows.join(wanted, on=PLACE, how="inner", maintain_order="left").with_columns(
        place=pl.int_range(pl.len()).over("cell", "name"), pieces=pl.len().over("cell", "name")
    )
    rows = rows.select("node", "cell", "rank", "peers", "name", "pieces", "place", "length", "excess_ns")
    same = ["peers", "name", "pieces", "place"]
    alone = (pl.col("rank").min() == pl.col("rank").max()).over(same)
    typical = pl.when(alone).then(0.0).otherwise(pl.col("length").median().over(same))
    rows = rows.with_columns(typical=typical)
    longer = (pl.col("length") - pl.col("typical")).clip(lower_bound=0.0)
    rows = rows.filter(pl.col("excess_ns") > 0).with_columns(longer=longer)
    known = pl.col("longer").sum().over("cell")
    first = pl.when(known > 0).then(pl.col("longer") * pl.min_horizontal(pl.lit(1.0), pl.col("excess_ns") / known))
    rows = rows.with_columns(first=first.fill_null(0.0)).with_columns(rest=pl.col("length") - pl.col("first"))
    left = (pl.col("excess_ns") - pl.col("first").sum().over("cell")).clip(lower_bound=0.0)
    room = pl.col("rest").sum().over("cell")
    second = pl.when(room > 0).then(pl.col("rest") * pl.min_horizontal(pl.lit(1.0), left / room)).otherwise(0.0)
    return rows.select("node", cut=(pl.col("first") + second).floor().cast(pl.Int64).clip(upper_bound=pl.col("length")))
