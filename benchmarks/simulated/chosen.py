"""Which layout, noise and rank a job of the benchmark has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simulated.layouts import MS, US, Shape, noisier
from simulated.truth import Job

LAYOUTS: dict[str, Shape] = {
    "dp8": Shape(),
    "tp4": Shape(ranks=16, tensor=4, layers=3, steps=6),
    "pp4": Shape(ranks=8, stages=4, layers=1, micro_batches=6, steps=6),
    "dp4": Shape(ranks=4, steps=10, layers=6),
    "tp2pp2": Shape(ranks=16, tensor=2, stages=2, layers=1, micro_batches=4, steps=5),
    "zero8": Shape(sharded=True),
    "experts8": Shape(experts=True, layers=3),
    "dp16 on 2 hosts": Shape(ranks=16, layers=3, steps=6, clock_spread_ns=3 * MS),
    "tp2": Shape(ranks=8, tensor=2, steps=20, layers=2),
    "tp4pp2 on 4 hosts": Shape(
        ranks=32, tensor=4, stages=2, layers=1, micro_batches=3, steps=4, clock_spread_ns=3 * MS
    ),
    "dp8 ahead": Shape(synchronises=False, loader_ns=50 * US),
    "dp64 on 8 hosts": Shape(ranks=64, layers=2, steps=4, clock_spread_ns=3 * MS),
    "dp8, short kernels": Shape(layers=16, layer_kernels=12, kernel_ns=40 * US, layer_bytes=3_000_000, steps=4),
}
"""Layouts whose ranks have enough work to hide some of their communication."""

HOST_BOUND = Shape(kernel_ns=12 * US, gap_ns=28 * US, layers=8, layer_bytes=2_000_000)

Family = Callable[[int], Job]


def shape_of(number: int, *names: str, **changes: object) -> tuple[str, Shape]:
    """Layout, noise and seed of the n-th job of a family."""
    chosen = names or tuple(LAYOUTS)
    name = chosen[number % len(chosen)]
    shape = noisier(LAYOUTS[name], (number + number // len(chosen)) % 5)
    return name, replace(shape, seed=number, **changes)  # type: ignore[arg-type]


def victim_of(shape: Shape, number: int) -> int:
    return (number * 5 + 3) % shape.ranks
