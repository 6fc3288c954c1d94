"""The framework and device of a job, so that causes and actions fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import polars as pl

PYTORCH, MINDSPORE = "pytorch", "mindspore"
CPU, CUDA, ROCM, NPU = "cpu", "cuda", "rocm", "npu"

T = TypeVar("T")


@dataclass(frozen=True)
class Platform:
    """Framework and kind of device of a finding's ranks; None if unknown or mixed."""

    framework: str | None = None
    device: str | None = None

    def pick(self, texts: Mapping[tuple[str | None, str | None], T]) -> T:
        """The most specific text: for framework and device, for the framework, for the device, else the general one.

        Args:
            texts: By framework and device (`ranks.framework`, `ranks.device_kind`); None means any.

        Examples:
            >>> Platform("pytorch", "cpu").pick({("pytorch", None): "torch", (None, "cpu"): "cpu", (None, None): "any"})
            'torch'
        """
        places = ((self.framework, self.device), (self.framework, None), (None, self.device), (None, None))
        return next(texts[place] for place in places if place in texts)


def platform_of(ranks: pl.LazyFrame | None, numbers: Sequence[int] | None = None) -> Platform:
    """The platform of ranks.

    Args:
        ranks: The table of that name.
        numbers: The ranks of a finding. Default: all.
    """
    if ranks is None:
        return Platform()
    rows = ranks if numbers is None else ranks.filter(pl.col("rank").is_in(list(numbers)))
    facts = rows.select("framework", "device_kind").unique().collect()
    framework, device = (column[0] if column.n_unique() == 1 else None for column in facts)
    return Platform(framework, device)
