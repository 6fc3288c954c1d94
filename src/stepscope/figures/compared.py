"""What figures of two sides that are compared have in common: names of the sides, and what differences mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.figures.axes import label, short
from stepscope.figures.words import word
from stepscope.present import Language, duration

if TYPE_CHECKING:
    from stepscope.compare import Pair

UNSURE = ("noise", "same", "small", "too few", "untested")
"""Verdicts of differences that need not be real."""


def sides(pair: Pair) -> tuple[tuple[str, str], tuple[str, str]]:
    """Label and role of the base and of the new side."""
    base, new = pair.names
    return (base.label, base.role), (new.label, new.role)


def side_name(side: tuple[str, str], language: Language) -> str:
    """What a side is called in a figure."""
    name, role = side
    called = word(name, language) if name in ("base", "new") else label(name, 32)
    return f"{called} ({word(role, language)})" if role else called


def times(factor: float | None) -> str:
    """How many times as long the new side takes; empty if that is unknown."""
    return "" if factor is None else f"x {short([factor], 3)[0]}"


def signed(ns: float) -> str:
    """A difference with its sign."""
    return f"{'+' if ns > 0 else '-' if ns < 0 else ''}{duration(abs(ns))}"
