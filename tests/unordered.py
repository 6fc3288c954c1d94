"""Polars that leaves nothing to chance: what it promises no order for comes in a random one, as with other threads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest
from polars.lazyframe.group_by import LazyGroupBy


@contextmanager
def shuffled_polars(seed: int) -> Iterator[None]:
    """Rows in random order wherever Polars does not promise one.

    These are the rows behind `group_by`, `unique` and `join`, and ties behind `sort`, unless `maintain_order` is set.
    The methods of eager frames go through those of lazy ones.

    Args:
        seed: For the random order.
    """
    chance = random.Random(seed)

    def shuffled(rows: pl.LazyFrame) -> pl.LazyFrame:
        number = chance.randrange(2**31)

        def mixed(frame: pl.DataFrame) -> pl.DataFrame:
            return frame.sample(fraction=1, shuffle=True, seed=number) if frame.height > 1 else frame

        return rows.map_batches(mixed, slice_pushdown=False, streamable=False)

    def after(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **words: Any) -> Any:
            found = method(self, *args, **words)
            return found if words.get("maintain_order") not in (None, False, "none") else shuffled(found)

        return call

    def before(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **words: Any) -> Any:
            if words.pop("maintain_order", False):
                return method(self, *args, maintain_order=True, **words)
            return method(shuffled(self), *args, maintain_order=True, **words)

        return call

    def group_by(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: pl.LazyFrame, *args: Any, **words: Any) -> Any:
            made = method(self, *args, **words)
            made.is_ordered = bool(words.get("maintain_order"))
            return made

        return call

    def agg(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **words: Any) -> Any:
            found = method(self, *args, **words)
            return found if getattr(self, "is_ordered", False) else shuffled(found)

        return call

    def unique(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **words: Any) -> Any:
            if words.pop("maintain_order", False):
                return method(self, *args, maintain_order=True, **words)
            return method(self, *args, maintain_order=True, **words).shuffle(chance.randrange(2**31))

        return call

    def any_row(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: pl.LazyFrame, *args: Any, **words: Any) -> Any:
            any_may_stay = words.get("keep", "any") == "any" and not words.get("maintain_order")
            return after(method)(shuffled(self) if any_may_stay else self, *args, **words)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, changed in (
            (pl.LazyFrame, "sort", before),
            (pl.LazyFrame, "join", after),
            (pl.LazyFrame, "unique", any_row),
            (pl.LazyFrame, "group_by", group_by),
            (LazyGroupBy, "agg", agg),
            (pl.Expr, "unique", unique),
            (pl.Series, "unique", unique),
        ):
            patch.setattr(owner, name, changed(getattr(owner, name)))
        yield
