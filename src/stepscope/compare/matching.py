"""Which places in the tree of calls of two sides are the same, also where one side has other calls around them.

A place is its path, the names of the calls around it and its own. Places with the same path are the same. Of the
others, those are matched whose paths differ only by calls around them: a wrapper such as a compiled region, a
data-parallel module or a range of a library puts one more name into all paths below it. Nothing is guessed: a match
needs evidence (shapes in common, or else the same number of calls), and a place that fits several others equally well
is not matched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from stepscope.compare.common_shapes import Shapes, common_calls, patterns, say_much

Path = tuple[str, ...]
Key = tuple[Path, object]
"""A path, and what must be the same besides: forward or backward pass."""

EXACT, INNER = "path", "inner"
HOW = (EXACT, INNER)
"""How places of both sides are matched: by their whole path, or by its inner part."""

SHAPES_IN_COMMON = 0.8
"""Share of calls with shapes in common from which on two places run the same, chosen by us."""

OTHER_SHAPES = 0.1
"""Share of the places with the same path that have no shape in common, up to which both sides run the same shapes, so
that places that are matched must have some in common. Above, as with another batch size, it is enough that they have as
many inputs and dimensions. Chosen by us."""

SAME_CALLS = 0.01
"""Difference between numbers of calls in a step, as a share, up to which they are the same."""

MOST_PAIRS = 40_000
"""Pairs of places of one name that are tried; of more, none is matched."""


@dataclass(frozen=True)
class Place:
    """What is known of a place on one side.

    Args:
        calls: In a step.
        shapes: Calls in a step by the shapes of the inputs; empty if not recorded.
    """

    calls: float
    shapes: Shapes = field(default_factory=dict)


@dataclass
class Match:
    """Places of both sides that are the same; of one side only if the other has none."""

    base: list[Key] = field(default_factory=list)
    new: list[Key] = field(default_factory=list)

    @property
    def how(self) -> str | None:
        """How they were matched; None if they are on one side only."""
        if not self.base or not self.new:
            return None
        return EXACT if self.base == self.new else INNER


def matches(base: Mapping[Key, Place], new: Mapping[Key, Place]) -> list[Match]:
    """The places of both sides, each in one match, in the order of their paths."""
    return _Matching(base, new).all()


class _Matching:
    """The places of two sides while they are matched."""

    def __init__(self, base: Mapping[Key, Place], new: Mapping[Key, Place]) -> None:
        self.base, self.new = base, new
        self.exact = {key: Match([key], [key]) for key in base if key in new}
        self.inner: list[Match] = []
        self.left = ({key for key in base if key not in new}, {key for key in new if key not in base})
        names = tuple({name for path, _ in side for name in path} for side in (base, new))
        self.one_sided = (names[0] - names[1], names[1] - names[0])
        self.are_shapes_comparable = self._have_common_shapes()

    def all(self) -> list[Match]:
        """All matches, after each way to match what is left."""
        self._match_reduced()
        self._match_subsequences()
        self._join_exact()
        alone = [Match([key], []) for key in self.left[0]] + [Match([], [key]) for key in self.left[1]]
        found = [*self.exact.values(), *self.inner, *alone]
        return sorted(found, key=lambda match: _order((match.base or match.new)[0]))

    def _have_common_shapes(self) -> bool:
        both = [(self.base[key].shapes, self.new[key].shapes) for key in self.exact]
        known = [(base, new) for base, new in both if base and new]
        others = sum(not common_calls(base, new) for base, new in known)
        return bool(known) and others <= OTHER_SHAPES * len(known)

    def _reduced(self, key: Key, side: int) -> Key:
        """A place without calls around it whose names the other side does not have at all."""
        (*around, own), more = key
        return (*(name for name in around if name not in self.one_sided[side]), own), more

    def _match_reduced(self) -> None:
        """Match what is the same without names that one side lacks."""
        groups: dict[Key, Match] = defaultdict(Match)
        for side, left in enumerate(self.left):
            for key in sorted(left, key=_order):
                (groups[self._reduced(key, side)].new if side else groups[self._reduced(key, side)].base).append(key)
        for match in groups.values():
            if match.how is not None and self._is_evident(match.base, match.new):
                self._take(match)

    def _match_subsequences(self) -> None:
        """Match places of which one has all names of the other, and more, if no other one fits as well."""
        for of_base, of_new in self._by_leaf():
            fits: dict[Key, list[tuple[int, Key]]] = defaultdict(list)
            for base in of_base:
                for new in of_new:
                    if _is_inside(base[0], new[0]) and self._is_evident([base], [new]):
                        common = _common_end(base[0], new[0])
                        fits[base].append((common, new))
                        fits[new].append((common, base))
            for base in of_base:
                best = _best(fits[base])
                if best is not None and _best(fits[best]) == base:
                    self._take(Match([base], [best]))

    def _join_exact(self) -> None:
        """Add places of one side to those with the same path on both, where the other side makes just as many calls
        more there: only some of the calls have others around them."""
        by_leaf: dict[tuple[str, object], list[Key]] = defaultdict(list)
        for path, more in sorted(self.exact, key=_order):
            by_leaf[path[-1], more].append((path, more))
        for side in range(2):
            own, other = (self.new, self.base) if side else (self.base, self.new)
            for key in sorted(self.left[side], key=_order):
                reduced = self._reduced(key, side)[0]
                fitting = [
                    near
                    for near in by_leaf[key[0][-1], key[1]]
                    if _is_inside(reduced, near[0])
                    and _same(other[near].calls - own[near].calls, own[key].calls)
                    and self._are_alike(self._sum(other, [near]), self._sum(own, [near, key]))
                ]
                if len(fitting) == 1:
                    match = self.exact.pop(fitting[0])
                    (match.new if side else match.base).append(key)
                    by_leaf[key[0][-1], key[1]].remove(fitting[0])
                    self.inner.append(match)
                    self.left[side].discard(key)

    def _by_leaf(self) -> Iterator[tuple[list[Key], list[Key]]]:
        """What is left of both sides, by the name of the call itself."""
        found: dict[tuple[str, str], tuple[list[Key], list[Key]]] = defaultdict(lambda: ([], []))
        for side, left in enumerate(self.left):
            for key in sorted(left, key=_order):
                found[key[0][-1], str(key[1])][side].append(key)
        for _, (of_base, of_new) in sorted(found.items()):
            if of_base and of_new and len(of_base) * len(of_new) <= MOST_PAIRS:
                yield of_base, of_new

    def _take(self, match: Match) -> None:
        self.inner.append(match)
        self.left[0].difference_update(match.base)
        self.left[1].difference_update(match.new)

    def _is_evident(self, base: Sequence[Key], new: Sequence[Key]) -> bool:
        """Whether places run the same. Where both have names around them that the other lacks, only shapes tell."""
        sums = self._sum(self.base, base), self._sum(self.new, new)
        are_replaced = all(
            any(self._reduced(key, side) != key for key in keys) for side, keys in enumerate((base, new))
        )
        return self._are_alike(*sums, only_shapes=are_replaced)

    def _are_alike(self, base: Place, new: Place, *, only_shapes: bool = False) -> bool:
        if base.shapes and new.shapes:
            calls = SHAPES_IN_COMMON * max(base.calls, new.calls)
            if common_calls(base.shapes, new.shapes) >= calls:
                return not only_shapes or (say_much(base.shapes) and say_much(new.shapes))
            if self.are_shapes_comparable or only_shapes:
                return False
            return common_calls(patterns(base.shapes), patterns(new.shapes)) >= calls and _same(base.calls, new.calls)
        return not only_shapes and _same(base.calls, new.calls)

    @staticmethod
    def _sum(side: Mapping[Key, Place], keys: Iterable[Key]) -> Place:
        places, shapes = [side[key] for key in keys], defaultdict[str, float](float)
        for place in places:
            for shape, calls in place.shapes.items():
                shapes[shape] += calls
        return Place(sum(place.calls for place in places), shapes if all(place.shapes for place in places) else {})


def _order(key: Key) -> tuple[Path, str]:
    return key[0], str(key[1])


def _same(one: float, other: float) -> bool:
    return one > 0 and abs(one - other) <= SAME_CALLS * max(one, other)


def _is_inside(one: Path, other: Path) -> bool:
    """Whether all names of one path are in the other one, in this order, or the other way round."""
    short, long = sorted((one, other), key=len)
    names = iter(long)
    return all(name in names for name in short)


def _common_end(one: Path, other: Path) -> int:
    """How many names both paths end with."""
    count = 0
    for a, b in zip(reversed(one), reversed(other), strict=False):
        if a != b:
            break
        count += 1
    return count


def _best(fits: Sequence[tuple[int, Key]]) -> Key | None:
    """What fits best; None if nothing does, or several do equally well."""
    most = max((common for common, _ in fits), default=0)
    best = [key for common, key in fits if common == most]
    return best[0] if len(best) == 1 else None
