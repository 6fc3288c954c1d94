"""`stepscope memory`: how much memory a rank had in use, where the peak is, and who holds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.cli.asking import Table, asks

if TYPE_CHECKING:
    import polars as pl


@asks
def memory(
    graph: Annotated[int | None, typer.Option(help="What is alive in this graph.", metavar="G")] = None,
    node: Annotated[int | None, typer.Option(help="What is alive at this node of a graph.", metavar="N")] = None,
    at_ns: Annotated[
        int | None, typer.Option(help="What is alive at this time, in ns as --json has it.", metavar="T")
    ] = None,
) -> Sequence[Table]:
    """Show the memory of a rank: the peak, who holds it, the curve, and hints at leaks and fragmentation."""
    where: dict[str, Any] = {"graph": graph, "node": node, "at_ns": at_ns}
    chosen = {name: value for name, value in where.items() if value is not None}
    place = "at the chosen place" if chosen else "at the peak"
    return [
        Table(
            "memory_peak",
            "Highest use of memory",
            every_step=True,
            keeps=(
                "peak_bytes",
                "used_ratio",
                "component",
                "device",
                "step",
                "phase",
                "time_ns",
                "name",
                "reserved_peak_bytes",
            ),
        ),
        Table("memory_hints", "Hints", every_step=True, says=_none),
        Table(
            "memory_breakdown",
            f"Alive {place}",
            chosen,
            every_step=True,
            hidden=("format", "tensor"),
            keeps=("name", "size_bytes", "share_ratio", "life_ns", "allocation_ns", "release_ns", "made_by", "shape"),
        ),
        Table(
            "memory_usage",
            "Memory in use",
            keeps=("time_ns", "total_bytes", "step", "node", "size_bytes", "allocated_bytes", "reserved_bytes", "name"),
        ),
    ]


def _none(hints: pl.DataFrame) -> Iterator[str]:
    """That nothing was found is an answer too."""
    if hints.is_empty():
        yield "No sign of a leak, fragmentation or memory pressure in what was recorded."
