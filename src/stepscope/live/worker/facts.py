"""Who this worker is: what it tells the proxy when it registers."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass, field, replace

from stepscope.live.messages import MOST_TEXT, Group, Hello
from stepscope.live.places import task_id
from stepscope.record.backend import Backend, Surroundings
from stepscope.record.environment import stated_identity
from stepscope.recording_format.light import DEFAULT_GROUP

_BY_DEVICE = ("nccl", "hccl", "rccl", "xccl")
"""Backends whose calls only launch work on the device."""
_OF_ALL = ("default_pg", "hccl_world_group", "nccl_world_group", "mccl_world_group")
"""What frameworks call the group of all ranks."""


@dataclass(frozen=True)
class Facts:
    """What is known of this process.

    Args:
        rank: Global rank; 0 if unknown.
        device: `cpu`, `cuda`, `rocm` or `npu`.
        launches: Whether calls of communication only launch it.
    """

    rank: int = 0
    world_size: int | None = None
    local_rank: int | None = None
    framework: str = ""
    device: str = ""
    launches: bool = False
    groups: tuple[Group, ...] = ()
    job: str = field(default_factory=task_id)
    started_at_ns: int = field(default_factory=time.time_ns)

    def look(self, backend: Backend, rank: int | None) -> Facts:
        """With what the backend knows now. What was known before stays known after the process group is destroyed.

        Args:
            rank: If the script has given it.
        """
        found, stated, around = backend.identity(), stated_identity(quiet=True), backend.surroundings()
        known = next((one for one in (rank, found.rank, stated.rank) if one is not None), self.rank)
        world_size = found.world_size or stated.world_size or self.world_size
        groups = tuple(_group(one) for one in around.groups if one.get("members"))
        return replace(
            self,
            rank=known,
            world_size=world_size,
            local_rank=stated.local_rank if found.local_rank is None else found.local_rank,
            framework=around.framework,
            device=around.device_kind,
            launches=_launches(around),
            groups=groups or self.groups,
        )

    def hello(self, revision: int, switches: list[str], directory: str) -> Hello:
        """How it registers."""
        return Hello(
            job=self.job,
            rank=self.rank,
            pid=os.getpid(),
            host=socket.gethostname()[:MOST_TEXT],
            started_at_ns=self.started_at_ns,
            world_size=self.world_size,
            local_rank=self.local_rank,
            framework=self.framework,
            device=self.device,
            revision=revision,
            switches=switches,
            groups=list(self.groups),
            directory=directory,
        )


def _launches(around: Surroundings) -> bool:
    if around.framework == "mindspore":  # runs operators on a thread of its own, also on a CPU
        return True
    return around.device_kind != "cpu" and any(name in (around.backend or "") for name in _BY_DEVICE)


def _group(known: dict[str, object]) -> Group:
    members = [int(member) for member in known["members"]]  # type: ignore[attr-defined]
    name = str(known.get("name") or "")
    if name in _OF_ALL:
        name = DEFAULT_GROUP
    return Group(str(known["group"])[:MOST_TEXT], members, name[:MOST_TEXT])
