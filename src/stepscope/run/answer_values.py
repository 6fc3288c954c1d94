"""Answers that are given several times, each time to somebody who may change them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

import polars as pl

from stepscope.errors import StepscopeError


def collected(name: str, result: Any) -> Any:
    """An answer that can be returned repeatedly: lazy frames and generators are collected now."""
    if isinstance(result, (Coroutine, AsyncIterator)):
        if isinstance(result, Coroutine):
            result.close()
        raise StepscopeError(f"{name} is async, so it gives no answer when it is called. Write it as a plain `def`")
    if isinstance(result, Iterator):
        return [collected(name, part) for part in result]
    return result.collect() if isinstance(result, pl.LazyFrame) else result


def copied(answer: Any) -> Any:
    """An answer that its receiver may modify; the kept one stays as it is."""
    if isinstance(answer, pl.DataFrame):
        return answer.clone()
    if isinstance(answer, tuple) and hasattr(answer, "_make"):
        return answer._make(map(copied, answer))
    if type(answer) in (list, tuple, set):
        return type(answer)(map(copied, answer))
    return {key: copied(value) for key, value in answer.items()} if type(answer) is dict else answer
