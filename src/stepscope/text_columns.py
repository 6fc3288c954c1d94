"""Texts made of columns, for all rooms that make tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def filled_in(template: str, *values: str | pl.Expr) -> pl.Expr:
    """A text with a value in place of each `{}`; null where a value is null.

    What `pl.format` gives, which however panics in a lazy query where a filter leaves nothing of a frame's first chunk
    (Polars 2.1).

    Args:
        template: The text.
        values: Names of columns, or expressions.
    """
    import polars as pl  # noqa: PLC0415 - pages, which help is made of, must not load it

    first, *further = template.split("{}")
    parts: list[pl.Expr] = [pl.lit(first)]
    for value, text in zip(values, further, strict=True):
        parts += [pl.col(value) if isinstance(value, str) else value, pl.lit(text)]
    return pl.concat_str(parts)
