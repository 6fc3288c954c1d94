"""A rank of a job that PyTorch's DistributedDataParallel keeps alike: the buckets of its backward pass."""

from __future__ import annotations

from tests.kineto_job import Device, RankTrace

MIB = 2**20
AUTOGRAD = 2
FORWARD, BACKWARD, STEP = 10_000, 20_000, 40_000
LATENCY, PER_MIB = 100, 100
"""Of an all-reduce, us."""


def rank_of(
    number: int, sizes: list[int], *, device: Device = "cuda", backward_us: int = BACKWARD, thread: int = AUTOGRAD
) -> RankTrace:
    """Three steps: forward, and backward in as many parts as there are buckets, each of which begins after its part.

    Args:
        number: Rank.
        sizes: Bytes of the buckets.
        device: What it runs on.
        backward_us: Computing of a backward pass.
        thread: The thread that calls the all-reduces.
    """
    trace = RankTrace(number, 2, device, groups={"0": [0, 1]})
    part = backward_us / len(sizes)
    for step in range(3):
        begun = step * STEP
        trace.step(step, begun, STEP)
        trace.add("user_annotation", "DistributedDataParallel.forward", begun + 10, 500)
        trace.operator("aten::mm", begun + 20, 100).kernel("sgemm", begun + 200, FORWARD, launched=begun + 50)
        backward = begun + 200 + FORWARD
        free = 0.0
        for place, size in enumerate(sizes):
            at = begun + 600 + 20 * place
            trace.operator(
                "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at, 19, thread=AUTOGRAD
            )
            trace.kernel("sgemm", backward + place * part, part - 1, launched=at + 1, thread=AUTOGRAD)
            reduce = at + 10
            trace.operator("c10d::allreduce_", reduce, 8, thread=thread)
            length = LATENCY + PER_MIB * size / MIB
            free = max(free, backward + (place + 1) * part)
            trace.collective("allreduce", free, length, elements=size // 4, launched=reduce + 1, thread=thread)
            free += length
        trace.add("user_annotation", "Optimizer.step#SGD.step", begun + 5000, 100)
        trace.kernel("multi_tensor_apply_kernel", free + 50, 100, launched=begun + 5010)
    return trace
