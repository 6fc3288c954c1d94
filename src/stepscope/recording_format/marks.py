"""The content of a mark: its kind, and `detail` of steps, forward passes and collectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NewType

from stepscope.json_values import small_number, whole_number

MarkKind = NewType("MarkKind", str)
STEP = MarkKind("step")
DATA = MarkKind("data")
FORWARD = MarkKind("forward")
BACKWARD = MarkKind("backward")
OPTIMIZER = MarkKind("optimizer")
VALIDATION = MarkKind("validation")
COMPILE = MarkKind("compile")
CHECKPOINT = MarkKind("checkpoint")
COLLECTIVE = MarkKind("collective")
EPOCH = MarkKind("epoch")
GARBAGE = MarkKind("gc")
RANGE = MarkKind("range")
EVERY_KIND = frozenset(
    (STEP, DATA, FORWARD, BACKWARD, OPTIMIZER, VALIDATION, COMPILE, CHECKPOINT, COLLECTIVE, EPOCH, GARBAGE, RANGE)
)
NO_KIND: frozenset[MarkKind] = frozenset()

EVALUATES, NO_GRADIENT = "eval", "no_grad"
"""Words in the `detail` of a forward pass: the module was in evaluation mode; gradients were off."""


RUN_DELAY = r"\brun_delay_ns=(\d+)\b"
"""In the `detail` of a step: how long its thread was ready to run while processors ran others."""


def step_detail(run_delay_ns: int | None) -> str:
    """The `detail` of a step."""
    return "" if run_delay_ns is None else f"run_delay_ns={run_delay_ns}"


@dataclass(frozen=True)
class CollectiveDetail:
    """The `detail` of a collective, as read; None is unknown."""

    group: str | None
    size_bytes: int | None
    element_type: str | None
    group_size: int | None
    peer: int | None
    is_async: bool

    @classmethod
    def of(cls, values: object) -> CollectiveDetail:
        """From the value of its JSON text."""
        known: Mapping[str, Any] = values if isinstance(values, dict) else {}
        return cls(
            _label(known.get("group")),
            whole_number(known.get("size_bytes")),
            _label(known.get("element_type")),
            small_number(known.get("group_size")),
            small_number(known.get("peer")),
            known.get("async") is True,
        )


def collective_text(
    group_json: str | None,
    group_size: int | None,
    size_bytes: int | None,
    element_type: str | None,
    peer: int | None,
    *,
    is_async: bool | None,
) -> str:
    """The `detail` of a collective as JSON text, with the known values. Formatted by hand for speed.

    Args:
        group_json: The group's key as JSON.
        group_size: Number of its members.
        size_bytes: Contribution of this rank.
        element_type: Type of the elements, a plain word.
        peer: Rank of the other side.
        is_async: Whether the call only starts the collective.
    """
    parts = []
    if group_json is not None:
        parts.append(f'"group": {group_json}')
    if group_size is not None:
        parts.append(f'"group_size": {group_size}')
    if size_bytes is not None:
        parts.append(f'"size_bytes": {size_bytes}')
    if element_type:
        parts.append(f'"element_type": "{element_type}"')
    if peer is not None:
        parts.append(f'"peer": {peer}')
    if is_async is not None:
        parts.append('"async": true' if is_async else '"async": false')
    return f"{{{', '.join(parts)}}}"


def _label(value: Any) -> str | None:
    return None if value is None else str(value)
