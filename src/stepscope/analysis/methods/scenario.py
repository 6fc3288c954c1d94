"""What a user wants to change in a job, as words: `rank=6`, `op=FlashAttention,0.7`, `2x`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stepscope.errors import StepscopeError

WHERE = ("rank", "host", "group", "kind", "op", "step")
"""What a change can be limited to."""


@dataclass(frozen=True)
class Change:
    """A change of some work.

    Args:
        where: Words that say which work, by what of `WHERE` they name; all of them must hold.
        factor: Its duration times this; None: without what it takes longer than the same on comparable ranks.
    """

    where: Mapping[str, str]
    factor: float | None = None


def without(text: str) -> list[Change]:
    """Changes that take away an excess, e.g. `rank=6` or `rank=6,kind=dispatch; host=node3`.

    Raises:
        StepscopeError: If a part is not understood.
    """
    return [Change(_where(part, "--without")) for part in _parts(text)]


def scaled(text: str) -> list[Change]:
    """Changes of durations by a factor, e.g. `op=FlashAttention,0.7` or `rank=3,kind=computing,0.9`.

    Raises:
        StepscopeError: If a part is not understood.
    """
    return [_scaled(part) for part in _parts(text)]


def _scaled(part: str) -> Change:
    where, _, factor = part.rpartition(",")
    value = factor_of(factor, f"--scale {part}: give which work and a factor, e.g. op=FlashAttention,0.7")
    return Change(_where(where, "--scale"), value)


def factor_of(text: str, problem: str) -> float:
    """The factor that a text such as `0.7`, `2x` or `70%` stands for, above 0 and finite.

    Raises:
        StepscopeError: With this text, if it is none.
    """
    word = text.strip().lower()
    try:
        value = float(word[:-1]) / 100 if word.endswith("%") else float(word.removesuffix("x"))
    except ValueError:
        raise StepscopeError(problem) from None
    if not 0 < value < 1e6:
        raise StepscopeError(f"{problem} (above 0)")
    return value


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]


def _where(text: str, option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in text.split(","):
        name, equals, value = (one.strip() for one in word.partition("="))
        if not equals or name not in WHERE or not value:
            known = ", ".join(f"{name}=..." for name in WHERE)
            raise StepscopeError(f"{option} {text}: `{word.strip()}` is not understood. There are {known}")
        found[name] = value
    return found


def matching(nodes: pl.DataFrame, where: Mapping[str, str], option: str) -> pl.Series:
    """Which nodes are meant.

    Args:
        nodes: `rank`, `step`, `kind`, and `op` (texts in one of which an operation's name must be), `host`,
            `groups` (list of texts).
        where: As in `Change`.
        option: For messages.

    Raises:
        StepscopeError: If none is meant.
    """
    meant = pl.lit(value=True)
    for name, value in where.items():
        meant &= _test(name, value, option).fill_null(value=False)
    found = nodes.select(meant=meant if where else pl.lit(value=True)).to_series()
    found = found if len(found) == nodes.height else pl.Series([bool(found[0])] * nodes.height, dtype=pl.Boolean)
    if nodes.height and not found.any():
        words = ",".join(f"{name}={value}" for name, value in where.items())
        raise StepscopeError(f"{option} {words}: nothing in this job is meant by it")
    return found


def _test(name: str, value: str, option: str) -> pl.Expr:
    """Whether a node is what one word names."""
    if name in ("rank", "step"):
        return pl.col(name) == _whole(value, option)
    if name == "group":
        return pl.col("groups").list.contains(pl.lit(value))
    if name == "op":
        return pl.col(name).str.to_lowercase().str.contains(value.lower(), literal=True)
    return pl.col(name) == value


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise StepscopeError(f"{option}: `{text}` is not a whole number") from None
