"""Work that only some ranks do by design: an output layer, an embedding, metrics."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from simulated.layouts import Shape, Writer
from simulated.operations import Operation

Programs = dict[int, list[list[Operation]]]

UNEVEN = "uneven"
"""Kind of a fault that is such work: nobody is to be accused of it."""

OUTPUT, EMBEDDING, METRICS = "vocabulary_gemm", "embedding_dense_kernel", "void grad_norm_kernel"


class _Output(Writer):
    """A rank of a stage that runs further kernels after its forward and before its backward passes."""

    length_ns = 0
    name = OUTPUT

    def _forward(self) -> None:
        super()._forward()
        self.out.append(Operation("kernel", self.name, self.length_ns, gap_ns=5000, operator="aten::linear"))

    def _backward(self, *, last: bool) -> None:
        self.out.append(Operation("kernel", self.name, 2 * self.length_ns, gap_ns=5000, operator="aten::linear"))
        super()._backward(last=last)


def on_stage(stage: int, length: float, name: str = OUTPUT) -> Callable[[Shape], Programs]:
    """A stage runs another kernel in each pass; its length is given in mean kernels."""

    def source(shape: Shape) -> Programs:
        found = {}
        for rank in range(shape.ranks):
            writer = _Output(shape, rank) if shape.place(rank)[0] == stage % shape.stages else Writer(shape, rank)
            if isinstance(writer, _Output):
                writer.length_ns, writer.name = round(length * shape.kernel_ns), name
            found[rank] = writer.program()
        return found

    return source


def on_rank(rank: int, length: float, times: int = 1) -> Callable[[Shape], Programs]:
    """A rank computes something at the end of each step, `length` mean kernels long, in some kernels."""

    def source(shape: Shape) -> Programs:
        found = {one: Writer(shape, one).program() for one in range(shape.ranks)}
        each = round(length * shape.kernel_ns / times)
        for operations in found[rank]:
            more = [Operation("kernel", METRICS, each, gap_ns=5000, operator="aten::norm") for _ in range(times)]
            operations[-1:-1] = more
        return found

    return source


def evened(programs: Programs, name: str) -> Programs:
    """The programs with the kernels of this name divided evenly, step by step: ranks that compute longer than the mean
    give away as much of them, and the others take it, as far as they compute less."""
    found: Programs = {rank: [] for rank in programs}
    for step in range(len(next(iter(programs.values())))):
        own = {rank: [copy(each) for each in steps[step]] for rank, steps in programs.items()}
        computing = {rank: sum(one.ns for one in _kernels(operations)) for rank, operations in own.items()}
        extra = {rank: sum(one.ns for one in _kernels(ops) if one.name == name) for rank, ops in own.items()}
        mean = sum(computing.values()) / len(computing)
        gives = {rank: min(extra[rank], max(0.0, computing[rank] - mean)) for rank in own}
        takes = {rank: max(0.0, mean - computing[rank]) for rank in own}
        taken = sum(gives.values()) / (sum(takes.values()) or 1)
        for rank, operations in own.items():
            for one in _kernels(operations):
                if one.name == name:
                    one.ns = round(one.ns * (1 - gives[rank] / extra[rank]))
                else:
                    one.ns = round(one.ns * (1 + taken * takes[rank] / computing[rank]))
            found[rank].append(operations)
    return found


def _kernels(operations: list[Operation]) -> list[Operation]:
    return [each for each in operations if each.what == "kernel" and each.kind == "compute"]
