"""Identity and environment of this process, as known to MindSpore."""

from __future__ import annotations

from typing import Any

from stepscope.record.backend import Surroundings
from stepscope.record.environment import Identity, number_of
from stepscope.record.hooks import Hooks
from stepscope.record.options import Target
from stepscope.record.steps import StepTracker

_TARGETS: dict[str, Target] = {"CPU": "cpu", "GPU": "gpu", "Ascend": "ascend"}
_KINDS = {"cpu": "cpu", "gpu": "cuda", "ascend": "npu"}


def watch_groups(hooks: Hooks, steps: StepTracker) -> None:
    """Report when the world group is created or destroyed."""
    from mindspore import communication

    def changed(_token: bool, _returned: bool) -> None:
        steps.identity_changed()

    for function in (communication.init, communication.release):
        hooks.around_everywhere(function, lambda _args, _kwargs: True, changed)


def target() -> Target:
    """Where the operators run.

    Raises:
        RuntimeError: For a device that is neither Ascend nor GPU nor CPU.
    """
    from mindspore import get_context

    name = str(get_context("device_target"))
    if name not in _TARGETS:
        raise RuntimeError(f"Profiler: unknown device target {name!r}; use one of {', '.join(_TARGETS)}")
    return _TARGETS[name]


def executors() -> Any:
    """The module with the executors, which has moved between releases."""
    try:
        from mindspore.graph import api
    except ImportError:
        from mindspore.common import api
    return api


def identity() -> Identity:
    """From the communication group if there is one, else from the variables that launchers set."""
    communication = _helper()
    if communication.GlobalComm.INITED:
        from mindspore import communication as world

        return Identity(world.get_rank(), world.get_group_size(), _local_rank(world), number_of("DEVICE_ID"))
    world_size = number_of("RANK_SIZE")
    if world_size is None:
        world_size = number_of("MS_WORKER_NUM")
    return Identity(number_of("RANK_ID"), world_size, None, number_of("DEVICE_ID"))


def surroundings() -> Surroundings:
    """Framework, device, mode and groups."""
    import mindspore

    communication = _helper()
    joined = communication.GlobalComm.INITED
    where = target()
    return Surroundings(
        framework="mindspore",
        framework_version=str(mindspore.__version__),
        device_kind=_KINDS[where],
        device_name=None,
        mode="graph" if mindspore.get_context("mode") == mindspore.GRAPH_MODE else "pynative",
        backend=str(communication.GlobalComm.BACKEND).rpartition(".")[2].lower() if joined else None,
        parallel=_parallel(mindspore),
        groups=_groups(communication) if joined else [],
    )


def group_members(group: str) -> list[int] | None:
    """Global ranks of a group; None if it is not known here."""
    communication = _helper()
    if not communication.GlobalComm.INITED:
        return None
    if group == communication.GlobalComm.WORLD_COMM_GROUP:
        from mindspore.communication import get_group_size

        return list(range(get_group_size()))
    members = communication._ExistingGroup.ITEMS.get(group)
    return None if members is None else [int(member) for member in members]


def _groups(communication: Any) -> list[dict[str, Any]]:
    names = [communication.GlobalComm.WORLD_COMM_GROUP, *communication._ExistingGroup.ITEMS]
    return [{"group": name, "name": name, "members": group_members(name)} for name in dict.fromkeys(names)]


def _parallel(mindspore: Any) -> dict[str, Any]:
    known = {}
    for key, name in (("parallel_mode", "parallel_mode"), ("stage_num", "pipeline_stages")):
        try:
            known[key] = mindspore.get_auto_parallel_context(name)
        except (ValueError, RuntimeError):  # not in this release, or not yet set
            continue
    return known


def _local_rank(world: Any) -> int | None:
    try:
        return int(world.get_local_rank())
    except (RuntimeError, ValueError):  # not every backend knows
        return None


def _helper() -> Any:
    from mindspore.communication import _comm_helper

    return _comm_helper
