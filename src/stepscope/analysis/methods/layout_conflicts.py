"""What contradicts a parallel layout."""

from __future__ import annotations

from dataclasses import dataclass

SIZE, MEMBERS, UNEVEN, WORLD, RANKS, CROSSED = "size", "members", "uneven", "world", "ranks", "crossed"
REPLACED, SHARED, UNUSED, TRANSFERS = "replaced", "shared", "unused", "transfers"
"""Kinds of contradictions; see `Conflict`."""

GIVEN, NAMES, SIZES, MARKS, PATTERN = "given", "group names", "recorded sizes", "marks", "communication"
"""What shows a dimension. Names of recorded groups go before what is given, which goes before the rest."""


@dataclass(frozen=True)
class Conflict:
    """A contradiction, and what it means for the layout.

    Args:
        kind: `size`: what is stated has another size than the recorded groups; `members`: other members; `uneven`:
            recorded groups of one name overlap or differ in size; `shared`: those of two dimensions share several
            ranks; `world`: sizes need another number of ranks; `ranks`: some ranks recorded other sizes than most;
            `crossed`: a recorded group lies across the given layout; `replaced`: the given size is another than the
            recorded one; `unused`: the given layout does not fit the recorded groups, and none of it is used;
            `transfers`: ranks that are no neighbours in the given pipelines send to each other, or they show others
            (`found` is the size that they suggest).
        dimension: Short name; None if it is about all.
        by: What is contradicted: given or recorded sizes, or names of groups.
        stated, found: Sizes or numbers of ranks, as far as the kind has them.
        ranks: Ranks that show it, e.g. the members of one group.
    """

    kind: str
    dimension: str | None
    by: str
    stated: int | None = None
    found: int | None = None
    ranks: tuple[int, ...] = ()
