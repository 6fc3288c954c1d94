"""Collectives called from Python: functions of `torch.distributed`, wrapped in every module that imports them.

Communication of DDP's reducer and other compiled code does not pass here; operator windows show it. `isend` and `irecv`
are not wrapped, since `batch_isend_irecv` identifies its operations by these function objects.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from typing import Any

from stepscope.record.patches import Patches
from stepscope.record.steps import StepTracker
from stepscope.record.torch.hook import Describe, Hook, marked
from stepscope.recording_format.marks import COLLECTIVE, collective_text

OPERATIONS: dict[str, tuple[str, str | None, str | None]] = {
    "all_reduce": ("all_reduce", "tensor", None),
    "all_reduce_coalesced": ("all_reduce", "tensors", None),
    "all_gather": ("all_gather", "tensor", None),
    "all_gather_into_tensor": ("all_gather", "input_tensor", None),
    "all_gather_single": ("all_gather", "input_tensor", None),
    "_all_gather_base": ("all_gather", "input_tensor", None),
    "all_gather_coalesced": ("all_gather", "input_tensor_list", None),
    "reduce_scatter": ("reduce_scatter", "input_list", None),
    "reduce_scatter_tensor": ("reduce_scatter", "input", None),
    "reduce_scatter_single": ("reduce_scatter", "input", None),
    "_reduce_scatter_base": ("reduce_scatter", "input", None),
    "broadcast": ("broadcast", "tensor", None),
    "all_to_all": ("all_to_all", "input_tensor_list", None),
    "all_to_all_single": ("all_to_all", "input", None),
    "reduce": ("reduce", "tensor", None),
    "gather": ("gather", "tensor", None),
    "scatter": ("scatter", "tensor", None),
    "barrier": ("barrier", None, None),
    "monitored_barrier": ("barrier", None, None),
    "send": ("send", "tensor", "dst"),
    "recv": ("recv", "tensor", "src"),
    "batch_isend_irecv": ("send_recv", "p2p_op_list", None),
}
"""Function: operation, its parameter with this rank's payload, its parameter with the peer."""
MAKERS = ("init_process_group", "destroy_process_group", "new_group", "split_group", "shrink_group")
"""Functions that change the groups of this process."""


class CollectiveHooks(Hook):
    """Marks collectives, and reports when process groups are created or destroyed.

    Args:
        groups_changed: Called after a function of `MAKERS`, with its name.
    """

    subject = "collectives"
    kind = COLLECTIVE

    def __init__(self, steps: StepTracker, patches: Patches, groups_changed: Callable[[str], None]) -> None:
        super().__init__(steps, patches)
        self._groups_changed = groups_changed
        self._groups: dict[Any, tuple[str, int]] = {}

    def attach(self) -> None:
        """Wrap them."""
        from torch import distributed

        if not distributed.is_available():
            return
        from torch.distributed import distributed_c10d

        for name, (operation, payload, peer) in OPERATIONS.items():
            original = getattr(distributed_c10d, name, None)
            if original is not None:
                describe = _describing(original, operation, payload, peer, self._group)
                self.patches.put_everywhere(original, marked(original, self, COLLECTIVE, describe))
        for name in MAKERS:
            original = getattr(distributed_c10d, name, None)
            if original is not None:
                self.patches.put_everywhere(original, self._reporting(original, name))

    def _reporting(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`original`, followed by a report of the change."""

        @functools.wraps(original)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self.off:
                try:
                    self._groups.clear()
                    self._groups_changed(name)
                except Exception as error:
                    self.failed(error)
            return result

        return wrapper

    def _group(self, group: Any) -> tuple[str, int]:
        """Key, as JSON, and size of a process group; None is the default one."""
        known = self._groups.get(group)
        if known is None:
            from torch.distributed import distributed_c10d as c10d

            actual = c10d._get_default_group() if group is None else group
            known = json.dumps(c10d._world.pg_names.get(actual)), c10d.get_world_size(actual)
            self._groups[group] = known
        return known


def _describing(
    original: Callable[..., Any],
    operation: str,
    payload_name: str | None,
    peer_name: str | None,
    group_of: Callable[[Any], tuple[str, int]],
) -> Describe:
    """Describes calls of `original`, with its entry in `OPERATIONS`; `group_of` returns key and size of a group."""
    places = {name: i for i, name in enumerate(inspect.signature(original).parameters)}

    def describe(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
        def argument(name: str | None) -> Any:
            if name is None:
                return None
            if name in kwargs:
                return kwargs[name]
            place = places.get(name, len(args))
            return args[place] if place < len(args) else None

        payload, group, peer = argument(payload_name), argument("group"), argument(peer_name)
        if operation == "send_recv" and payload:
            group, payload = payload[0].group, [each.tensor for each in payload]
        key, size = group_of(group)
        size_bytes, element_type = _size(payload)
        is_async = bool(argument("async_op")) or operation == "send_recv"
        peer = peer if isinstance(peer, int) else None
        return operation, collective_text(key, size, size_bytes, element_type, peer, is_async=is_async)

    return describe


def _size(payload: Any) -> tuple[int, str]:
    """Bytes and element type of one or more tensors."""
    tensors = payload if isinstance(payload, (list, tuple)) else () if payload is None else (payload,)
    size_bytes = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return size_bytes, str(tensors[0].dtype).removeprefix("torch.") if tensors else ""
