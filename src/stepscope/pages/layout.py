"""How a job is divided among its ranks: parallel dimensions, hosts, devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepscope.pages.base import Derived, Option, Page, Section
from stepscope.tables.base import Column

if TYPE_CHECKING:
    import polars as pl

    from stepscope.run import Run

LAYOUT = Option(
    "layout",
    "text",
    "Parallel sizes of the job, e.g. tp=2,pp=4,dp=8, if they were not recorded.",
    "SIZES",
)

NAMES = ("tp", "cp", "ep", "dp", "pp")

_PLACE = {
    name: Column(name, "string", "", importance=90 - at)
    for at, name in enumerate(("rank", "pp", "dp", "tp", "host", "device", "cp", "ep", "nic", "place_by"))
    if name in NAMES
}


def _places(run: Run, rows: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    """The place of each rank as `position of size`; dimensions of which nothing is known are left out."""
    import polars as pl

    from stepscope.text_columns import filled_in

    known = [name for name in NAMES if rows[name].count()]
    shown = rows.select(
        *(name for name in ("rank", "host", "device", "nic", "place_by") if rows[name].count()),
        *(filled_in("{} of {}", pl.col(name), pl.col(f"{name}_size")).alias(name) for name in known),
    )
    return Derived(shown, ", position from 0 in each dimension", columns=[_PLACE[name] for name in known])


def _unknown(dimensions: pl.DataFrame) -> Iterator[str]:
    """Which dimensions are unknown, and how to give them."""
    unknown = dimensions.filter(dimensions["size"].is_null())["dimension"].to_list()
    if set(unknown) - {"ep"}:  # most jobs have no experts
        yield (
            f"Unknown: {', '.join(unknown)}. Neither names of groups nor recorded sizes show them, and the "
            "communication is ambiguous. Give the sizes, here and to «`stepscope analyze`»: «--layout» tp=2,pp=4,dp=8."
        )
    if (dimensions["by"] == "communication").any():
        yield "What is known from communication follows from when and how groups of ranks call each other."
    if (dimensions["by"] == "marks").any():
        yield (
            "What is known from marks: PyTorch's data parallelism marks that it runs the model, and all ranks sum up "
            "in one group."
        )


def _contradictions(run: Run, conflicts: pl.DataFrame) -> Derived:  # noqa: ARG001 - one signature for all
    return Derived(conflicts)


def sentences(conflicts: pl.DataFrame) -> Iterator[str]:
    """What contradicts the layout, and what is used."""
    for row in conflicts.iter_rows(named=True):
        yield _sentence(**row)


_STATED = {
    "given": "the given layout",
    "recorded sizes": "recorded sizes",
    "group names": "names of groups",
    "marks": "marks of the framework",
    "communication": "communication",
}


def _sentence(
    kind: str, dimension: str | None, by: str, stated: int | None, found: int | None, members: str | None
) -> str:
    name, source = dimension or "", _STATED[by]
    others = "" if found is None else f" Who sends to whom suggests that pp has size {found}."
    if found is not None and found == stated:
        others = f" Who sends to whom suggests pp of size {found} with other ranks: check the order (order=...)."
    return {
        "size": f"Contradiction: {source} says {name} has size {stated}, but ranks {members} form a recorded {name} "
        f"group of {found}. The recorded groups are used.",
        "members": f"Contradiction: ranks {members} form a recorded {name} group, but by {source} they do not. The "
        "recorded groups are used; the order of ranks may be another (order=...).",
        "uneven": f"Contradiction: recorded {name} groups overlap or differ in size, e.g. ranks {members}. "
        f"They are not used for {name}.",
        "shared": f"Contradiction: a recorded {name} group and one of another dimension both have ranks {members}. "
        "Names of groups are not used.",
        "world": f"Contradiction: {'groups, by their names,' if by == 'group names' else 'recorded parallel sizes'} "
        f"need {stated} ranks, but the job has {found}. They are not used. Are all files from one job?",
        "unused": "The given layout is not used: what is left of it does not fit the recorded groups.",
        "ranks": f"Contradiction: ranks {members} recorded other parallel sizes than most, whose sizes are used. Are "
        "their files from another job?",
        "replaced": f"Contradiction: recorded sizes say {name} has size {stated}, the given layout {found}. The given "
        "layout is used.",
        "transfers": f"Contradiction: by the given layout pp has size {stated}, but "
        + ("not all neighbours" if members is None else f"ranks {members}, which are no neighbours in a pipeline,")
        + f" send to each other.{others} The given layout is used: check it.",
        "crossed": f"Ranks {members} form a recorded group that lies across the given layout. Check the sizes and "
        "their order unless the group has another purpose.",
    }[kind]


def with_layout(run: Run, layout: str | None) -> Run:
    """The same run with parallel sizes that the user gives, for all questions; as it is if none are given."""
    if layout is None:
        return run
    names = ("parallel_layout", "parallel_dimensions", "layout_conflicts")
    return run.with_options({name: {"layout": layout} for name in names})


PAGE = Page(
    "layout",
    "Show how the job is divided: host, device and position of each rank in every parallel dimension.",
    [
        Section("parallel_dimensions", "Parallel dimensions", takes={"layout": "layout"}, sentences=_unknown),
        Section("parallel_layout", "Place of each rank", takes={"layout": "layout"}, derived=_places),
        Section("layout_conflicts", "Contradictions", takes={"layout": "layout"}, sentences=sentences),
    ],
    options=[LAYOUT],
    more="Dimensions: tp tensor, cp context, ep expert, dp data, pp pipeline parallelism. They are known from names "
    "of recorded groups, from sizes given by «--layout», from recorded sizes, from marks of PyTorch's data "
    "parallelism, or from how groups communicate, in this order; what is ambiguous stays unknown.\n\nSIZES are tp, "
    "cp, ep, dp and pp (1 if left out; dp takes what is left), and order=tp-cp-ep-dp-pp if ranks count in another "
    "order: neighbours are in one group of the first. Experts have the tensor-parallel size of the rest unless etp "
    "is given.",
    scope="job",
)
