"""Parallel groups that follow from sizes and the order in which ranks count through the dimensions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod

from stepscope.errors import StepscopeError

TENSOR, PIPELINE, DATA = "tensor-parallel group", "pipeline-parallel group", "data-parallel group"
CONTEXT, EXPERT = "context-parallel group", "expert-parallel group"

DIMENSIONS: Mapping[str, str] = {"tp": TENSOR, "cp": CONTEXT, "ep": EXPERT, "dp": DATA, "pp": PIPELINE}
"""Short name of a dimension to the kind of its groups, in the usual order of ranks: neighbours are in one group of the
first. Expert parallelism divides the ranks of data and context parallelism in another way, so its size is no factor of
the number of ranks."""

SIZE_NAMES: Mapping[str, tuple[str, ...]] = {
    "tp": ("tensor_model_parallel_size", "tensor_parallel_size", "tensor_parallel", "tp", "model_parallel"),
    "cp": ("context_parallel_size", "context_parallel", "cp"),
    "ep": ("expert_model_parallel_size", "expert_parallel_size", "expert_parallel", "ep"),
    "dp": ("data_parallel_size", "data_parallel", "dp"),
    "pp": ("pipeline_model_parallel_size", "pipeline_parallel_size", "stage_num", "pp"),
    "etp": ("expert_tensor_parallel_size", "etp"),
}
"""Names of recorded parallel sizes; `etp` is that of tensor parallelism within experts."""

USUAL = ("tp", "cp", "ep", "dp", "pp")
ORDERS: tuple[tuple[str, ...], ...] = tuple(
    dict.fromkeys((USUAL, ("tp", "cp", "ep", "pp", "dp"), *sorted(permutations(USUAL))))
)
"""Orders of the dimensions, the usual ones first."""

FREE = "data_parallel"
"""The parallel mode of MindSpore in which no operator is divided among ranks."""

Groups = list[tuple[int, ...]]
"""Groups of a dimension: each with its ranks in order of their positions."""


@dataclass(frozen=True)
class Sizes:
    """Parallel sizes of a job; a dimension that is not there is of unknown size.

    Args:
        order: Of the dimensions, that in which neighbours are first.
        expert_tensor: Size of tensor parallelism within experts; None: as outside.
    """

    sizes: Mapping[str, int]
    order: tuple[str, ...] = USUAL
    expert_tensor: int | None = None

    def problem(self, world: int) -> tuple[int, int] | None:
        """Ranks that the sizes need and ranks that there are, if these do not fit; else None."""
        dense = prod(self.sizes.get(name, 1) for name in USUAL if name != "ep")
        fits = dense == world if all(name in self.sizes for name in USUAL if name != "ep") else world % dense == 0
        experts = self.sizes.get("ep", 1) * (self._tensor_of_experts or 1) * self.sizes.get("pp", 1)
        if fits and experts and world % experts == 0:
            return None
        return (experts if fits else dense, world)

    @property
    def _tensor_of_experts(self) -> int | None:
        return self.expert_tensor if self.expert_tensor is not None else self.sizes.get("tp")

    def groups(self, world: int) -> dict[str, Groups]:
        """The groups of each dimension whose place in the order is known; sizes must fit the world."""
        dense = [name for name in self.order if name != "ep"]
        known = dict(self.sizes)
        unknown = [name for name in dense if name not in known]
        if len(unknown) == 1:
            known[unknown[0]] = world // prod(known[name] for name in dense if name in known)
        found = {name: _strided(world, *at) for name in dense if (at := _place(name, dense, known, world))}
        tensor = self._tensor_of_experts
        if "ep" in known and "pp" in known and tensor:
            shape = {"tp": tensor, "cp": 1, "ep": known["ep"], "pp": known["pp"]}
            shape["dp"] = world // prod(shape.values())
            at = _place("ep", list(self.order), shape, world)
            found |= {"ep": _strided(world, *at)} if at else {}
        return {name: found[name] for name in DIMENSIONS if name in found}


def _place(name: str, order: Sequence[str], sizes: Mapping[str, int], world: int) -> tuple[int, int] | None:
    """Size of a dimension, and how far apart its ranks are; None if that is unknown."""
    at = order.index(name)
    if name not in sizes:
        return None
    if all(other in sizes for other in order[:at]):
        return sizes[name], prod(sizes[other] for other in order[:at])
    if all(other in sizes for other in order[at:]):
        return sizes[name], world // prod(sizes[other] for other in order[at:])
    return None


def _strided(world: int, size: int, stride: int) -> Groups:
    firsts = [rank for rank in range(world) if rank // stride % size == 0]
    return [tuple(first + stride * k for k in range(size)) for first in firsts]


def recorded_sizes(recorded: Mapping[str, object]) -> Sizes:
    """The sizes that a framework recorded; those of frameworks that record tensor or context parallelism are 1 if
    they are not there, as a default that is left out."""
    known = {name: size for name, names in SIZE_NAMES.items() if (size := _first(recorded, names)) is not None}
    expert_tensor = known.pop("etp", None)
    by_stage_only = known.keys() <= {"pp"} and "stage_num" in recorded
    if str(recorded.get("parallel_mode", "")).replace("-", "_") == FREE:
        known = {"tp": 1, "cp": 1, "ep": 1, "pp": 1, **known}
    elif known and not by_stage_only:
        known = {"tp": 1, "cp": 1, "pp": 1, **known}
    swapped = recorded.get("use_tp_pp_dp_mapping") is True
    return Sizes(known, ORDERS[1] if swapped else USUAL, expert_tensor)


def _first(recorded: Mapping[str, object], names: Sequence[str]) -> int | None:
    """The first recorded size of these names."""
    known = (recorded.get(name) for name in names)
    return next((size for size in known if isinstance(size, int) and not isinstance(size, bool) and size > 0), None)


def given_sizes(text: str, world: int | None = None) -> Sizes:
    """The layout that a user gives, e.g. `tp=2,pp=4,dp=8` or `tp=2,pp=2,order=tp-pp-dp`; sizes left out are 1, and data
    parallelism takes what is left of `world`.

    Raises:
        StepscopeError: If it is not understood, or does not fit the number of ranks.
    """
    given: dict[str, int] = {}
    order: tuple[str, ...] = USUAL
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        if name == "order":
            order = _order(value)
        elif name not in (*DIMENSIONS, "etp") or not re.fullmatch("[1-9][0-9]{0,8}", value):
            raise StepscopeError(f"layout {text}: {part} is not a size. {_HOW}")
        elif name in given:
            raise StepscopeError(f"layout {text}: {name} is given twice. {_HOW}")
        else:
            given[name] = int(value)
    if not given:
        raise StepscopeError(f"layout {text!r}: no size is given. {_HOW}")
    expert_tensor = given.pop("etp", None)
    sizes = {"tp": 1, "cp": 1, "pp": 1, "ep": 1, **given}
    rest = prod(sizes[name] for name in ("tp", "cp", "pp"))
    if "dp" not in sizes and world is not None and world % rest == 0:
        sizes["dp"] = world // rest
    found = Sizes(sizes, order, expert_tensor)
    if world is not None and (problem := found.problem(world)):
        raise StepscopeError(f"layout {text} needs {problem[0]} ranks, but the job has {problem[1]}. {_HOW}")
    return found


_HOW = "Give sizes such as tp=2,pp=4,dp=8 (of tp, cp, ep, etp, dp, pp) and order=tp-cp-ep-dp-pp if it is another"


def _order(value: str) -> tuple[str, ...]:
    """An order in which each dimension is once; those left out come where they usually are."""
    names = [name.strip() for name in value.split("-")]
    if len(set(names)) < len(names) or not set(names) <= set(USUAL):
        raise StepscopeError(f"layout order={value}: name each of {', '.join(USUAL)} once at most, e.g. tp-cp-dp-pp")
    for name in (name for name in USUAL if name not in names):
        before = USUAL[: USUAL.index(name)]
        at = max((names.index(other) for other in before if other in names), default=-1)
        names.insert(at + 1, name)
    return tuple(names)
