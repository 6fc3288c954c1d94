"""Which names mean communication: kernels of communication libraries, and types of operators that communicate.

The tables below are all that is known, for every reader. A pattern is searched in the name of a kernel's function
alone, with its namespaces: what its template and its parameters are called says nothing about what it does.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Kernels:
    """The kernels of a library.

    Args:
        library: Whose they are; several if their names are alike.
        pattern: What their names contain, in lower case.
        operation: The operation of a call, if the name does not say it in words of its own.
        are_calls: Whether one kernel is one call that all members of a group make, so that it can be matched across
            ranks. Others are parts of calls, such as the half that sends, or of unknown meaning.
    """

    library: str
    pattern: str
    operation: str | None = None
    are_calls: bool = True


_EXPERTS = r"(?:ep|uccl)(?:::|\d+)"
"""The namespace of a library for expert parallelism, also as compilers write it (`_ZN7deep_ep9intranode8dispatch`)."""

KERNELS = (
    Kernels("DeepEP, UCCL and others", _EXPERTS + r"int(?:er|ra)node(?:::|\d+)(?:dispatch|combine)", "all_to_all"),
    Kernels("DeepEP, UCCL and others", _EXPERTS + r"int(?:er|ra)node(?:_ll)?(?:::|\d)", are_calls=False),
    Kernels("DeepEP", r"hybrid_ep(?:::|\d+)(?:dispatch|combine|device_sync|update_expected)|deep_?ep", are_calls=False),
    Kernels("NCCL EP", r"nccl_ep_\w*(?:dispatch|combine)", are_calls=False),
    Kernels("MORI", r"ep(?:dispatch|combine)\w*(?:intra|inter)node", are_calls=False),
    Kernels("pplx", r"a2a_(?:dispatch|combine)_(?:send|recv)", are_calls=False),
    Kernels("TensorRT-LLM", r"moea2a(?:dispatch|combine|prepare)|moe_?all_?to_?all|allreduce_fusion", are_calls=False),
    Kernels("NVSHMEM, ROC_SHMEM, Intel SHMEM", r"nvshmem|rocshmem|ishmem", are_calls=False),
    Kernels("Flux", r"cuda_?ipc_?barrier|flux\w*::\w*(?:all2all|a2a_|barrier_all)", are_calls=False),
    Kernels("CANN", r"moe_?distribute_?(?:dispatch|combine)|distribute_?barrier", are_calls=False),
    Kernels("NCCL, RCCL, HCCL, oneCCL, MSCCL, MSCCL++, Gloo", r"nccl|rccl|hccl|hcom|oneccl|msccl|gloo"),
    Kernels("vLLM, SGLang", r"cross_device_reduce", "all_reduce"),
    Kernels("symmetric memory of PyTorch", r"multimem_all|(?:one|two)_?shot_all_?reduce"),
    Kernels("any", r"all_?reduce|reduce_?scatter|all_?gather|all_?to_?all|send_?recv"),
)
"""The first that fits counts."""

COMPUTES = (
    r"(?:ep|uccl)(?:::|\d+)layout",  # counts which expert gets which tokens
    r"gemm|matmul",  # computing is the larger part of a kernel that also moves its operands or result
    r"^triton_(?:poi|per|red|tem|mm|for)_",  # a compiler's, named after all operators whose results it uses
)
"""Names that contain one of these compute, although they name a library or an operation."""

OPERATOR = (
    r"(?i)^(hcom|hccl|nccl|all_?(reduce|gather|to_?all)|reduce_?scatter|broadcast$|send$|receive$|barrier$"
    r"|moe_?distribute_?(dispatch|combine))"
)
"""Types of a graph's operators that communicate; `Gather`, `Scatter` and `Reduce` alone are none."""

HOST_OPERATOR = (
    r"^(Dist|Inner)?(Comm)?(AllReduce|AllGather\w*|ReduceScatter\w*|Broadcast|All[tT]oAll\w*|NeighborExchange\w*"
    r"|Send|Isend|Receive|Irecv|Barrier|(Collective)?(Scatter|Gather)|Reduce)$"
)
"""Types of operators that communicate on the host."""

_PLACE = r"\(anonymous namespace\)::|`anonymous namespace'::"
_FUNCTION = r"^(?:void |static |inline )*([^<(]*)"


def library_kernels(names: pl.Series) -> pl.DataFrame:
    """What the names of kernels say: `is_communication`, `is_call` and `operation`, as `Kernels` has them.

    Examples:
        >>> names = pl.Series(["void x::gemm<nccl>(int)", "void deep_ep::intranode::dispatch<8>(int)"])
        >>> library_kernels(names).rows()
        [(False, False, None), (True, True, 'all_to_all')]
    """
    function = pl.col("name").str.replace_all(_PLACE, "").str.extract(_FUNCTION, 1).str.to_lowercase()
    row = pl.coalesce(
        pl.when(function.str.contains("|".join(COMPUTES))).then(pl.lit(-1)),
        *(pl.when(function.str.contains(kernels.pattern)).then(pl.lit(at)) for at, kernels in enumerate(KERNELS)),
        pl.lit(-1),
    )
    found = pl.DataFrame({"name": names}).select(row=row)
    known = pl.col("row") >= 0
    calls = [at for at, kernels in enumerate(KERNELS) if kernels.are_calls]
    operations = {at: kernels.operation for at, kernels in enumerate(KERNELS) if kernels.operation}
    return found.select(
        is_communication=known,
        is_call=pl.col("row").is_in(calls),
        operation=pl.col("row").replace_strict(operations, default=None, return_dtype=pl.String),
    )


_MOST_JUDGED = 1 << 16
_judged: dict[str | None, bool | None] = {}
"""What was said of names before: the ranks of a job run the same kernels."""


def is_library_kernel(names: pl.Series) -> pl.Series:
    """Whether the names of kernels are those of communication."""
    texts = names.to_list()
    new = [text for text in dict.fromkeys(texts) if text not in _judged]
    if len(new) > _MOST_JUDGED:
        return library_kernels(names)["is_communication"]
    if new:
        if len(_judged) + len(new) > _MOST_JUDGED:
            _judged.clear()
            new = [*dict.fromkeys(texts)]
        _judged.update(zip(new, library_kernels(pl.Series(new, dtype=pl.String))["is_communication"], strict=True))
    return pl.Series("is_communication", [_judged[text] for text in texts], dtype=pl.Boolean)
