"""Identity and environment of this process, as known to torch."""

from __future__ import annotations

import sys
from typing import Any

from stepscope.record.backend import Surroundings
from stepscope.record.environment import Identity, number_of


def joined() -> Any:
    """The module `torch.distributed` if this process is in a process group, else None."""
    from torch import distributed

    return distributed if distributed.is_available() and distributed.is_initialized() else None


def identity() -> Identity:
    """Rank and world size of the process group; without one, as set by the launcher."""
    world = joined()
    return Identity(
        rank=world.get_rank() if world else number_of("RANK"),
        world_size=world.get_world_size() if world else number_of("WORLD_SIZE"),
        local_rank=number_of("LOCAL_RANK"),
        device_id=_device_index(),
    )


def surroundings(clock: dict[str, Any] | None, *, left: bool = False) -> Surroundings:
    """Framework, device and job.

    Args:
        clock: Offset of this rank's clock, if known.
        left: Whether this process was in a process group that was destroyed.
    """
    import torch

    return Surroundings(
        framework="torch",
        framework_version=str(torch.__version__),
        device_kind=device_kind(),
        device_name=_device_name(),
        mode="eager",
        backend=_backend(),
        parallel=_parallel(left=left),
        groups=[
            {"group": group["pg_name"], "name": group["pg_desc"] or None, "members": group["ranks"]}
            for group in groups()
        ],
        clock=clock,
    )


def device_kind() -> str:
    """`npu`, `rocm`, `cuda` or `cpu`."""
    import torch

    npu = sys.modules.get("torch_npu")
    if npu is not None and npu.npu.is_available():
        return "npu"
    if torch.cuda.is_available():
        return "rocm" if getattr(torch.version, "hip", None) else "cuda"
    return "cpu"


def groups() -> list[dict[str, Any]]:
    """The process groups known to this process, in the format of Kineto's `pg_config`."""
    if joined() is None:
        return []
    from torch.distributed import distributed_c10d as c10d

    found = []
    for group, name in list(c10d._world.pg_names.items()):
        if group is None or group not in c10d._world.pg_group_ranks:
            continue
        members = sorted(c10d._world.pg_group_ranks[group])
        description = str(getattr(group, "group_desc", "") or "")
        found.append(
            {
                "pg_name": str(name),
                "pg_desc": "" if description == "undefined" else description,
                "backend_config": str(c10d._world.pg_map[group][0]) if group in c10d._world.pg_map else "",
                "pg_size": len(members),
                "ranks": members,
            }
        )
    return found


def distributed_info() -> dict[str, Any] | None:
    """The content of Kineto's `distributedInfo`; None for a single process."""
    known = identity()
    if known.rank is None:
        return None
    config = groups()
    return {
        "backend": _backend(),
        "rank": known.rank,
        "world_size": known.world_size or 1,
        "pg_count": len(config),
        "pg_config": config,
    }


def _backend() -> str | None:
    world = joined()
    return str(world.get_backend()) if world else None


def _parallel(*, left: bool) -> dict[str, Any]:
    """The parallel mode of the job; empty if not known yet, or no longer."""
    has_peers = (identity().world_size or 1) > 1
    if joined() is None and (left or has_peers):
        return {}
    return {"parallel_mode": "data_parallel" if has_peers else "stand_alone"}


def _device_index() -> int | None:
    """The device in use. Before CUDA is initialized it is unknown, and a query would initialize it."""
    import torch

    kind = device_kind()
    if kind == "npu":
        return int(sys.modules["torch_npu"].npu.current_device())
    if kind == "cpu":
        return None
    return int(torch.cuda.current_device()) if torch.cuda.is_initialized() else None


def _device_name() -> str | None:
    import torch

    index = _device_index()
    if index is None:
        return None
    devices = sys.modules["torch_npu"].npu if device_kind() == "npu" else torch.cuda
    return str(devices.get_device_name(index))
