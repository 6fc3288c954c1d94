"""What a job runs on, so that causes and actions fit its framework and device."""

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
    """Framework and kind of device of the ranks that a finding is about; None where unknown or not the same."""

    framework: str | None = None
    device: str | None = None

    def pick(self, texts: Mapping[tuple[str | None, str | None], T]) -> T:
        """The text for this framework and device: of the two, of the framework, of the device, else of any.

        Args:
            texts: By framework and device (`ranks.framework`, `ranks.device_kind`); None is any, and what is unknown.

        Examples:
            >>> Platform("pytorch", "cpu").pick({("pytorch", None): "torch", (None, "cpu"): "cpu", (None, None): "any"})
            'torch'
        """
        places = ((self.framework, self.device), (self.framework, None), (None, self.device), (None, None))
        return next(texts[place] for place in places if place in texts)


def platform_of(ranks: pl.LazyFrame | None, numbers: Sequence[int] | None = None) -> Platform:
    """What ranks run on.

    Args:
        ranks: The table of that name.
        numbers: The ranks that a finding is about; all if not given.
    """
    if ranks is None:
        return Platform()
    rows = ranks if numbers is None else ranks.filter(pl.col("rank").is_in(list(numbers)))
    facts = rows.select("framework", "device_kind").unique().collect()
    framework, device = (column[0] if column.n_unique() == 1 else None for column in facts)
    return Platform(framework, device)
