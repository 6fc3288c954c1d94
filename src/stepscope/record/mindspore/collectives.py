"""Collective calls in PyNative: hooks on the operator classes. Calls in compiled code are invisible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stepscope.record.hooks import Hooks
from stepscope.record.mindspore.identity import group_members
from stepscope.record.mindspore.phases import Inside, marked
from stepscope.record.steps import StepTracker
from stepscope.recording_format.marks import COLLECTIVE, collective_text

_OPERATIONS = (
    ("batchisendirecv", "send_recv"),
    ("neighborexchange", "send_recv"),
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("collectivegather", "gather"),
    ("collectivescatter", "scatter"),
    ("barrier", "barrier"),
    ("receive", "recv"),
    ("irecv", "recv"),
    ("isend", "send"),
    ("send", "send"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
)
"""Prefix of the operator class name, without its family, and operation; the first match counts."""


def mark_collectives(hooks: Hooks, steps: StepTracker, inside: Inside) -> None:
    """Mark each call of a collective. Times are those of the call, which only launches it."""

    def describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str] | None:
        operation = operation_of(type(args[0]).__name__)
        return None if operation is None else (operation, _detail(args[0], (*args[1:], *kwargs.values())))

    for operator in _operators():
        hooks.around(operator, "__call__", *marked(steps, COLLECTIVE, describe, inside))


def operation_of(name: str) -> str | None:
    """The operation of an operator class, as in `collectives.operation`; None if it is not a collective."""
    name = name.removeprefix("InnerComm").removeprefix("DistComm").lower()
    return next((operation for begin, operation in _OPERATIONS if name.startswith(begin)), None)


def _detail(operator: Any, arguments: tuple[Any, ...]) -> str:
    """Group, size and type of one call: older operators have the group as an attribute, newer ones as an argument."""
    tensors = list(_tensors(arguments))
    named = [argument for argument in arguments if isinstance(argument, str)]
    group = getattr(operator, "group", None) or (named[-1] if named else None)
    members = group_members(group) if group else None
    peer = getattr(operator, "dest_rank", getattr(operator, "src_rank", None))
    return collective_text(
        json.dumps(group) if group is not None else None,
        len(members) if members else None,
        sum(int(tensor.nbytes) for tensor in tensors) if tensors else None,
        str(tensors[0].dtype).lower() if tensors else None,
        peer if isinstance(peer, int) else None,
        is_async=None,
    )


def _tensors(arguments: Any) -> Iterator[Any]:
    from mindspore import Tensor

    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, (tuple, list)):
            yield from _tensors(argument)


def _operators() -> list[type]:
    """Operator classes of all collectives that this release has."""
    from mindspore import ops
    from mindspore.ops.operations import comm_ops

    members = list(vars(comm_ops).items())
    try:
        from mindspore.ops.auto_generate import gen_ops_prim

        members += [item for item in vars(gen_ops_prim).items() if item[0].startswith(("InnerComm", "DistComm"))]
    except ImportError:
        pass  # older releases have the classes of the first module only
    return [
        member
        for name, member in members
        if isinstance(member, type) and issubclass(member, ops.Primitive) and name[0] != "_" and operation_of(name)
    ]
