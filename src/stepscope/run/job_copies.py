"""Copies of recordings: a copied run is a run of its own, of a copied file the newest is used."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from stepscope.run.job_pieces import Piece

_Unit = list[Piece]
"""What lies in some directories, none of which is a copy of another."""


def by_identity(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """Copies together: recordings with the same rank and identical window."""
    alike: dict[Hashable, list[Piece]] = defaultdict(list)
    for piece in pieces:
        alike[_identity(piece)].append(piece)
    return list(alike.values())


def copied_runs(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Recordings parted into runs and copies of them in other directories, which someone may have made to change them.

    A copy of a single rank of a run stays with it.
    """
    first, *others = _layers(_units(pieces))
    if _ranks(piece for unit in first for piece in unit) > 1:
        first += [unit for layer in others for unit in layer if _ranks(unit) == 1]
        others = [[unit for unit in layer if _ranks(unit) > 1] for layer in others]
    layers = [{id(piece) for unit in layer for piece in unit} for layer in (first, *others) if layer]
    return [[piece for piece in pieces if id(piece) in layer] for layer in layers]


def _identity(piece: Piece) -> Hashable:
    return id(piece) if piece.window is None else (piece.family, piece.world_size, piece.who, piece.window)


def _ranks(pieces: Iterable[Piece]) -> int:
    return len({piece.who for piece in pieces})


def _units(pieces: Sequence[Piece]) -> list[_Unit]:
    """Directories, as high up as they hold no copy of another one in them; those of single ranks taken together."""
    if all(len({piece.directory for piece in copies}) == 1 for copies in by_identity(pieces)):
        return [list(pieces)]
    root = os.path.commonpath([str(piece.directory) for piece in pieces])
    branches: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        branches[next(iter(piece.directory.relative_to(root).parts), "")].append(piece)
    units = [unit for branch in branches.values() for unit in _units(branch)]
    single = _layers(unit for unit in units if _ranks(unit) == 1)
    together = [[piece for unit in layer for piece in unit] for layer in single]
    return [*(unit for unit in units if _ranks(unit) > 1), *together]


def _layers(units: Iterable[_Unit]) -> list[list[_Unit]]:
    """Units that copy nothing of each other together; the largest, then the newest, come first."""
    layers: list[tuple[set[Hashable], list[_Unit]]] = []
    for unit in sorted(units, key=lambda unit: (-_ranks(unit), -max(piece.written for piece in unit), unit[0].order)):
        own = set(map(_identity, unit))
        held, layer = next((layer for layer in layers if own.isdisjoint(layer[0])), (set(), []))
        if not layer:
            layers.append((held, layer))
        held |= own
        layer.append(unit)
    return [layer for _, layer in layers]
