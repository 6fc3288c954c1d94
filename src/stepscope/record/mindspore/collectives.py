"""Collective calls in PyNative: hooks on the operator classes. Calls in compiled code are invisible."""

from __future__ import annotations

import json
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

from stepscope.record.hooks import Hooks
from stepscope.record.mindspore.identity import group_members
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


class Collectives:
    """Marks each call of a collective. Times are those of the call, which only launches it.

    Args:
        steps: Receives the marks.
    """

    def __init__(self, steps: StepTracker) -> None:
        self._steps = steps

    def install(self, hooks: Hooks) -> None:
        """Install the hooks."""
        for operator in _operators():
            hooks.around(operator, "__call__", self._enter, self._leave)

    def _enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
        return (args, kwargs, perf_counter_ns()) if self._steps.active else None

    def _leave(self, token: tuple[Any, ...], returned: bool) -> None:
        args, kwargs, start_ns = token
        now_ns = perf_counter_ns()
        operation = operation_of(type(args[0]).__name__)
        if returned and operation is not None:
            detail = describe(args[0], (*args[1:], *kwargs.values()))
            self._steps.mark(COLLECTIVE, operation, start_ns, now_ns, detail)


def operation_of(name: str) -> str | None:
    """The operation of an operator class, as in `collectives.operation`; None if it is not a collective."""
    name = name.removeprefix("InnerComm").removeprefix("DistComm").lower()
    return next((operation for begin, operation in _OPERATIONS if name.startswith(begin)), None)


def describe(operator: Any, arguments: tuple[Any, ...]) -> str:
    """Group, size and type of one call, as `detail` of its mark.

    Args:
        operator: The operator; older ones have the group as an attribute.
        arguments: Its arguments: tensors, for newer ones also the group.
    """
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

    modules = [comm_ops]
    try:
        from mindspore.ops.auto_generate import gen_ops_prim

        modules.append(gen_ops_prim)
    except ImportError:
        pass  # older releases have the classes of the first module only
    found = []
    for module in modules:
        families = ("InnerComm", "DistComm") if module is not comm_ops else ("",)
        for name, member in vars(module).items():
            is_operator = isinstance(member, type) and issubclass(member, ops.Primitive)
            if is_operator and name.startswith(families) and not name.startswith("_") and operation_of(name):
                found.append(member)
    return found
