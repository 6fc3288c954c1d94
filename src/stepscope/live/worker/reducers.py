"""Data-parallel training: how long a backward pass computes, and how long it then waits for gradients of other ranks.

DDP exchanges gradients in compiled code, which no hook on functions of `torch.distributed` sees. But autograd runs
callbacks in the order in which they were queued once all gradients of a pass are computed: ours, queued when the pass
begins, then that with which DDP waits for its exchanges. So the time between ours and the end of the pass is the wait.
This takes 3.3 us a pass with torch 2.13 on a CPU; the times that DDP itself can log take 5.4 us to read, and on a GPU
it synchronises to get them.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable
from typing import Any

from stepscope.recording_format.marks import collective_text

_DDP = "torch.nn.parallel.distributed"
_COMPILED_AUTOGRAD = "torch._dynamo.compiled_autograd"


class Reducer:
    """What exchanges the gradients of one DDP module.

    Args:
        module: The `DistributedDataParallel`.
    """

    def __init__(self, module: Any) -> None:
        from torch.distributed import distributed_c10d as c10d

        self._module = weakref.ref(module)
        group = module.process_group
        self.peers = int(c10d.get_world_size(group))
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        size_bytes = sum(parameter.numel() * parameter.element_size() for parameter in trained)
        element = str(trained[0].dtype).removeprefix("torch.") if trained else ""
        key = json.dumps(c10d._world.pg_names.get(group))
        self.detail = collective_text(key, self.peers, size_bytes, element, None, is_async=False)
        """That of the mark of its exchange."""

    def exchanges(self) -> bool:
        """Whether the present backward pass exchanges gradients; not so within `no_sync`."""
        module = self._module()
        return module is not None and self.peers > 1 and bool(module.require_backward_grad_sync)


def reducer_below(root: Any) -> Reducer | None:
    """The reducer of the first DDP module in or below a module, if there is one."""
    ddp = getattr(sys.modules.get(_DDP), "DistributedDataParallel", None)
    if ddp is None or not hasattr(root, "modules"):
        return None
    found = next((module for module in root.modules() if isinstance(module, ddp)), None)
    return None if found is None else Reducer(found)


def watch(tensors: Any, computed: Callable[[], None]) -> Callable[[], None] | None:
    """Have `computed` called when all gradients of the backward pass from these tensors are computed. It must not
    raise.

    Returns:
        What to call when the pass is over; None if this pass cannot be watched.
    """
    tensor = tensors if hasattr(tensors, "register_hook") else next(iter(tensors or ()), None)
    if tensor is None or not tensor.requires_grad:
        return None
    if getattr(sys.modules.get(_COMPILED_AUTOGRAD), "compiled_autograd_enabled", False):
        return None  # hooks would be compiled into the pass
    from torch.autograd import Variable

    queue = Variable._execution_engine.queue_callback

    def begins(_: Any) -> None:
        queue(computed)

    remove: Callable[[], None] = tensor.register_hook(begins).remove
    return remove
