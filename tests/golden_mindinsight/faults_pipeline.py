"""What MindInsight 2.3.1 gets wrong about all ranks: the executive overview and the parallel strategy."""

from __future__ import annotations

from dataclasses import replace

import raw_pipeline as raw
from asked import Asked
from differing import Difference
from fault import Fault

from stepscope.run import Run

FAULTS: tuple[Fault, ...] = (
    Fault(
        "average as a step",
        "marey-graph/overview-time",
        r"device\d+/-/\w+",
        "The average row of the file stands among the steps, with means of moments; it is not of the steps in the "
        "file. Ours is the mean length of these, without the first.",
        raw.is_average,
        raw.average,
    ),
    Fault(
        "last step for any step",
        "marey-graph/timeline",
        r"maps/device\d+/[^/]+/(st|ed|dur)",
        "Of each operator, the last execution in the file is shown, whatever step was asked for, and calls as the "
        "timeline has them; ours are of the step, calls from the file of steps.",
        raw.is_last,
        raw.timeline,
    ),
    Fault(
        "stages of the last step",
        "marey-graph/timeline",
        r"stage_data/stage\d+/data/[^/]+/(st|ed)_(avg|min|max)",
        "Stages are summed up of these last executions, with clocks set by the first call; ours are of the step, on "
        "the clock by all calls.",
        raw.is_of_maps,
        raw.timeline,
    ),
    Fault(
        "operators left out",
        "marey-graph/timeline",
        r"(maps/device\d+|stage_data/stage\d+/data)/[^/]+",
        "Operators that clear memory are left out; ours has all.",
        raw.is_displayed,
        raw.timeline,
    ),
    Fault(
        "calls of the step trace left out",
        "marey-graph/timeline",
        "",
        "Nothing is shown without a timeline, although the file of steps has all calls; ours shows these.",
        lambda asked, difference, run: difference.theirs is None,
        raw.timeline,
    ),
    Fault(
        "parameters as constants",
        "parallel-strategy/graphs",
        "data/(const|parameter)_nodes/.*",
        "Parameters of the graph are listed as constants, without type and shape.",
        raw.is_parameter,
        raw.parameter,
    ),
    Fault(
        "channels as groups",
        "parallel-strategy/graphs",
        "data/op_nodes/[^/]+/parallel_group",
        "The `group` of a convolution is a number of channels and no communication group.",
        raw.is_count,
        lambda run, asked, difference: [],
    ),
    Fault(
        "chosen strategy left out",
        "parallel-strategy/graphs",
        "data/op_nodes/[^/]+/parallel_shard",
        "Only the strategy that the user gives is shown; ours has the one that the compiler chose.",
        lambda asked, difference, run: difference.theirs == [],
        raw.strategy,
    ),
    Fault(
        "mode of no file",
        "parallel-strategy/graphs",
        "data/parallel_type",
        "The mode is from a file that was added to show the directory at all; ours is from the names of files.",
        raw.is_of_no_file,
        raw.mode,
    ),
)

_PARTS = {"marey-graph/flops-data": "flops-summary", "marey-graph/memory-data": "memory-summary"}
"""Pages about one rank that say the same as a part of the overview."""


def of_one_rank(asked: Asked, difference: Difference, run: Run | None) -> tuple[Asked, Difference, Run | None] | None:
    """A difference in what the overview sums up of one rank, as one of the page about that rank."""
    parts = difference.place.split("/")
    if asked.kind not in _PARTS or len(parts) != 3 or parts[1] != "summary" or run is None:
        return None
    rank = int(parts[0].removeprefix("device"))
    kind = _PARTS[asked.kind]
    summary = asked.answer[parts[0]]["summary"]
    is_memory = kind == "memory-summary"
    same = replace(
        asked,
        kind=kind,
        parameters={**asked.parameters, "device_id": str(rank)},
        answer={"summary": summary} if is_memory else summary,
    )
    place = f"summary/{parts[2]}" if is_memory else parts[2]
    return same, Difference(place, difference.theirs, difference.ours), run.select(ranks=rank)
