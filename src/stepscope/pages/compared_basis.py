"""What a comparison rests on, in sentences: which ranks and steps it is about, and what else differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from stepscope.errors import Unavailable

if TYPE_CHECKING:
    from stepscope.compare import Pair


def rows_of(pair: Pair, question: str) -> list[dict[str, Any]]:
    """The rows of an answer; none if there is no answer."""
    try:
        return pair.analyse(question).to_dicts()
    except Unavailable:
        return []


def has_names(pair: Pair) -> bool:
    """Whether the sides have names of their own, as of one run."""
    return pair.names[1].label != "new"


def settings(pair: Pair) -> Iterator[str]:
    """Settings that make times hard to compare. One that a side did not record may be the same."""
    rows = [row for row in rows_of(pair, "setting_differences") if row["matters"] == "work"]
    if known := [row for row in rows if row["base"] and row["new"]]:
        what = "; ".join(f"{row['setting']}: {row['base']} and {row['new']}" for row in known)
        yield f"Not the same work, so compare with care: {what}."


def sides(pair: Pair) -> Iterator[str]:
    """Which ranks and steps are compared, and how."""
    rows = rows_of(pair, "compared_sides")
    if len(rows) != 2:
        return
    base, new = (name.label for name in pair.names)
    if has_names(pair):
        yield f"Differences are {new} less {base}."
        if not pair.are_apart:
            yield "Some ranks and {steps} belong to both sides, so the differences are smaller than they really are."
    else:
        yield from _other_ranks(pair, *(row["ranks"] for row in rows))
    steps = [row["counted_steps"] for row in rows]
    if steps[0] != steps[1] and not (has_names(pair) and pair.per in base):
        yield f"Compared are {{steps}} {steps[0]} of {called(base)} and {steps[1]} of {called(new)}."
    for row, label in zip(rows, (base, new), strict=True):
        if row["left_out_steps"]:
            yield f"Of {called(label)}, {{step}} {row['left_out_steps']} does not count: a first one, far longer."
        if row["outlier_steps"]:
            yield (
                f"Of {called(label)}, {{step}} {row['outlier_steps']} stands out: it counts in the means, "
                "the test weighs it no more than others."
            )


def called(label: str) -> str:
    """A side in a sentence."""
    return {"base": "the base", "new": "the new side"}.get(label, label)


def _other_ranks(pair: Pair, of_base: str, of_new: str) -> Iterator[str]:
    """That the sides of two runs are other ranks."""
    if of_base == of_new:
        return
    if of_base.isdecimal() and of_new.isdecimal():
        yield f"Rank {of_new} is compared with rank {of_base}" + (" of the base." if not pair.is_one_run else ".")
    else:
        yield f"Compared are the means over ranks {of_base} of the base and {of_new} of the new side."
