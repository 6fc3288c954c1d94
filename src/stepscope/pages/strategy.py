"""How a compiler divided a model over the devices of a job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Page, Section

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run


def _stages(run: Run, stages: pl.DataFrame) -> Iterator[str]:
    """What of the job was not recorded, or is not the same."""
    missing = stages.filter(stages["recorded"].is_null())["stage"].to_list()
    if len(missing) == stages.height:
        frameworks = {rank.facts.get("framework") for rank in run.ranks} - {None}
        how = (
            "MindSpore writes graphs with `parallel_strategy=True` in auto_parallel, semi_auto_parallel or "
            "data_parallel mode."
            if "mindspore" in frameworks
            else "Only MindSpore writes such graphs; «`stepscope layout`» and «`stepscope pipeline`» show the rest."
            if frameworks
            else "MindSpore writes such graphs."
        )
        yield f"No graph was recorded, so only the ranks of each stage are known. {how}"
    elif missing:
        yield f"No graph was recorded of stage{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}."
    if (stages["differing"].fill_null(0) > 0).any():
        yield (
            "Ranks of a stage have different nodes (column `differing`): shown is the lowest rank; «--json» says what "
            "differs."
        )


def _edges(edges: pl.DataFrame) -> Iterator[str]:
    """Sends and receives without their other side."""
    lone = edges.filter(~edges["paired"]).height
    if lone:
        yield (
            f"{lone} sends or receives have no other side that shares their group and tag, or several: these edges "
            "have one end."
        )


PAGE = Page(
    "strategy",
    "Show how a compiler divided a model over the ranks of a job: stages, operators with their strategy, edges.",
    [
        Section("strategy_stages", "Graphs by pipeline stage", notes=_stages),
        Section(
            "strategy_nodes",
            "Nodes with their parallel strategy",
            hidden=(
                *("given_strategy", "unknown_inputs", "attributes", "scope", "peer", "tag", "differing"),
                *("output_types", "divided"),
            ),
        ),
        Section("strategy_edges", "Edges, those between stages first", sentences=_edges, hidden=("input", "paired")),
    ],
    more="From the graphs that MindSpore records with its parallel strategy (`parallel_strategy_<rank>.json`). A "
    "strategy has a list for each input of an operator, with the number of parts into which each dimension is divided. "
    'Operators that the compiler put in have a role. To see those of one stage: «--filter» "stage = 1".',
    scope="job",
)
