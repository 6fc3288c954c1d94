"""What names of process groups say: which parallel dimensions a group spans."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

REPLICATE, SHARD = "replicate", "shard"
"""The two ways in which a part of data parallelism keeps weights: whole on each rank, or divided among the ranks."""

GROUP_WORDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("tp", "tensor", "mp", "slice"), ("tp",)),
    **dict.fromkeys(("pp", "pipeline", "pipe"), ("pp",)),
    **dict.fromkeys(("dp", "data", "batch", "hsdp"), ("dp",)),
    **dict.fromkeys(("ddp", "replicate", "replica", "dpr", "outer"), (REPLICATE,)),
    **dict.fromkeys(("fsdp", "shard", "zero", "dps", "inner"), (SHARD,)),
    **dict.fromkeys(("cp", "context", "sp", "sequence", "seq", "ulysses"), ("cp",)),
    **dict.fromkeys(("ep", "expert", "exp", "moe"), ("ep",)),
    "loss": ("dp", "cp"),
    "etp": ("ep", "tp"),
    "edp": ("ep", "dp"),
    "efsdp": ("ep", SHARD),
}
"""Words in names of groups, and what they span, as Megatron, DeepSpeed, MindSpeed, MindSpore, torchtitan and others
that use PyTorch's device meshes write them. Of names of several words it is the product: `dp_shard_cp` spans the ranks
that share the shards of a model and those that share a sequence."""

FILLERS = frozenset(
    (
        *("model", "parallel", "group", "groups", "mesh", "pg", "process", "comm", "hccl", "nccl", "gloo", "new"),
        *("stream", "for", "dim"),
    )
)
"""Words in names of groups that say nothing of their purpose."""

JOINING = frozenset(("modulo", "mod", "in", "and", "with", "without"))
"""Words between two purposes."""

DATA_PARTS = frozenset(("dp", REPLICATE, SHARD))
"""What data parallelism is called, whole or in parts."""


@dataclass(frozen=True)
class Named:
    """What a name says.

    Args:
        parts: The dimensions that the group spans: short names, and `replicate` and `shard` for parts of data
            parallelism; empty if the name says nothing, or something else as well.
        of_experts: Whether it divides ranks of other dimensions anew, for experts: their tensor or data parallelism.
        together: Whether it joins tensor parallelism and experts, e.g. `tp_ep`, and is not one of experts, e.g. `etp`.
    """

    parts: frozenset[str] = frozenset()
    of_experts: bool = False
    together: bool = False


@lru_cache(maxsize=4096)
def named(name: str | None) -> Named:
    """What a group spans, by its name.

    Examples:
        >>> sorted(named("mesh_dp_shard_cp").parts), named("default_pg").parts
        (['cp', 'shard'], frozenset())
        >>> named("EXPERT_TENSOR_PARALLEL_GROUP") == Named(frozenset({"tp"}), of_experts=True)
        True
    """
    words = [word for word in re.findall("[a-z]+", (name or "").lower()) if word not in FILLERS]
    purposes = [word for word in words if word not in JOINING]
    if not purposes or any(word not in GROUP_WORDS for word in purposes):
        return Named()
    parts = {part for word in purposes for part in GROUP_WORDS[word]}
    if parts & {REPLICATE, SHARD}:
        parts -= {"dp"}  # `dp_shard` is that part only
    if "ep" not in parts or parts == {"ep"}:
        return Named(frozenset(parts))
    if parts == {"ep", "tp"} and ("and" in words or GROUP_WORDS[purposes[0]] == ("tp",)):
        return Named(frozenset(parts), of_experts=True, together=True)
    return Named(frozenset(parts - {"ep"}), of_experts=True)
