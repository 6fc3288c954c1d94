"""Programs of the ranks of a job: layers, micro-batches and collectives, as frameworks place them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from simulated.operations import Network, Operation

US, MS = 1_000, 1_000_000
COMPUTE, TENSOR, DATA, EXPERTS, SIDE = 7, 16, 20, 24, 32
SEND_FORWARD, RECEIVE_FORWARD, SEND_BACKWARD, RECEIVE_BACKWARD = 40, 41, 42, 43
"""Streams."""

LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
LAYER = (
    ("aten::layer_norm", "void at::native::vectorized_layer_norm_kernel<float>", 0.2),
    ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", 1.5),
    ("aten::scaled_dot_product_attention", "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>", 2.0),
    ("aten::add", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add>", 0.2),
    ("aten::addmm", "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn", 1.8),
    ("aten::gelu", "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernel>", 0.3),
)
"""Operator, kernel and relative length of the kernels of a layer."""


@dataclass(frozen=True)
class Shape:
    """What a job is: counts, lengths, noise.

    Args:
        ranks: How many; `tensor * stages` of them hold one copy of the model.
        kernel_ns: Mean length of a kernel.
        gap_ns: Python between two launches: above `kernel_ns` the job is bound by its hosts.
        layer_kernels: Kernels of a layer, forward; backward takes twice the time.
        layer_bytes: Gradients of a layer, or what its ranks exchange.
        synchronises: Whether each step ends with `.item()`.
        kernel_noise, host_noise, call_noise: Relative standard deviations.
        stall_ns, stalls: Random stalls of a host: length, and how many a rank has in a step on average.
        skew_ns: Random delay of each rank at the start of each step, at most.
        steady_skew: Whether it is the same in all steps.
        work_noise: Relative spread of all kernels of a rank in a step (its batch differs).
        internode: Calls among experts are kernels of a library that names no groups.
    """

    ranks: int = 8
    steps: int = 8
    layers: int = 4
    layer_kernels: int = 6
    kernel_ns: int = 150 * US
    gap_ns: int = 6 * US
    tensor: int = 1
    stages: int = 1
    micro_batches: int = 4
    sharded: bool = False
    experts: bool = False
    internode: bool = False
    ranks_per_host: int = 8
    layer_bytes: int = 20_000_000
    bucket_layers: int = 2
    synchronises: bool = True
    loader_ns: int = 200 * US
    kernel_noise: float = 0.01
    host_noise: float = 0.1
    call_noise: float = 0.02
    stall_ns: int = 0
    stalls: float = 0.0
    skew_ns: int = 0
    steady_skew: bool = False
    work_noise: float = 0.0
    clock_spread_ns: int = 0
    nic_bytes_per_s: float = 25e9
    seed: int = 0

    @property
    def copies(self) -> int:
        return self.ranks // (self.tensor * self.stages)

    def place(self, rank: int) -> tuple[int, int, int]:
        """Stage, copy and tensor rank."""
        return rank // (self.tensor * self.copies), rank // self.tensor % self.copies, rank % self.tensor

    def rank_at(self, stage: int, copy: int, tensor: int) -> int:
        return (stage * self.copies + copy) * self.tensor + tensor

    def stage_ranks(self, stage: int) -> list[int]:
        return [rank for rank in range(self.ranks) if self.place(rank)[0] == stage]

    def tensor_ranks(self, rank: int) -> list[int]:
        stage, copy, _ = self.place(rank)
        return [self.rank_at(stage, copy, tensor) for tensor in range(self.tensor)]

    def host_ranks(self, host: int) -> list[int]:
        return [rank for rank in range(self.ranks) if rank // self.ranks_per_host == host]


def groups_of(shape: Shape) -> dict[str, list[int]]:
    """Members of all groups of more than one rank."""
    found: dict[str, list[int]] = {}
    for rank in range(shape.ranks):
        stage, copy, tensor = shape.place(rank)
        if shape.tensor > 1:
            found[f"tp{stage}.{copy}"] = shape.tensor_ranks(rank)
        if shape.copies > 1:
            members = [shape.rank_at(stage, other, tensor) for other in range(shape.copies)]
            found[f"dp{stage}.{tensor}"] = members
            if shape.experts:
                found[f"ep{stage}.{tensor}"] = members
        if stage + 1 < shape.stages:
            after = shape.rank_at(stage + 1, copy, tensor)
            found[f"pp{rank}-{after}"] = [rank, after]
            found[f"pp{after}-{rank}"] = [after, rank]
    return found


def network_of(shape: Shape) -> Network:
    return Network(shape.ranks_per_host, nic_bytes_per_s=shape.nic_bytes_per_s, groups=groups_of(shape))


def call_noise(shape: Shape) -> dict[str, list[float]]:
    """Factors of the lengths of calls, by group."""
    return {group: _factors(Random(f"{shape.seed} {group}"), shape.call_noise, 509) for group in groups_of(shape)}


def _factors(chance: Random, spread: float, count: int) -> list[float]:
    return [max(0.5, 1 + spread * chance.gauss(0, 1)) for _ in range(count)]


def programs_of(shape: Shape) -> dict[int, list[list[Operation]]]:
    """What each rank does in each step, with all noise in it."""
    return {rank: Writer(shape, rank).program() for rank in range(shape.ranks)}


class Writer:
    """Writes the program of one rank."""

    def __init__(self, shape: Shape, rank: int) -> None:
        self.shape = shape
        self.stage, self.copy, self.tensor = shape.place(rank)
        self.rank = rank
        self.chance = Random(f"{shape.seed} {rank}")
        self.out: list[Operation] = []
        self.events = 0
        self.kernel_ns = float(shape.kernel_ns)
        self.skew_ns = round(Random(f"skew {shape.seed} {rank}").random() * shape.skew_ns)

    def program(self) -> list[list[Operation]]:
        steps = []
        for _ in range(self.shape.steps):
            self.out = []
            self.kernel_ns = self.shape.kernel_ns * max(0.3, 1 + self.shape.work_noise * self.chance.gauss(0, 1))
            self._step()
            self._stall()
            steps.append(self.out)
        return steps

    def _stall(self) -> None:
        number, rest = divmod(self.shape.stalls, 1)
        for _ in range(int(number) + (self.chance.random() < rest)):
            self.chance.choice(self.out).gap_ns += self.shape.stall_ns

    def _step(self) -> None:
        shape = self.shape
        skew = round(self.chance.random() * shape.skew_ns) if not shape.steady_skew else self.skew_ns
        self._add(Operation("host", LOADER, self._host_ns(shape.loader_ns), gap_ns=skew, kind="annotation"))
        copy = "Memcpy HtoD (Pinned -> Device)"
        self._add(
            Operation("kernel", copy, self._device_ns(0.5), kind="memory", operator="aten::copy_", size_bytes=10**6)
        )
        if shape.stages > 1:
            self._pipeline()
        else:
            self._forward()
            self._backward(last=True)
        if shape.copies > 1:
            self._order(DATA, COMPUTE)
        for number in range(2 if not shape.sharded else 1):
            self._kernel("Optimizer.step#AdamW.step", f"void multi_tensor_apply_kernel<AdamFunctor<{number}>>", 1.0)
        if shape.synchronises:
            self._add(Operation("synchronise", "cudaStreamSynchronize", operator="aten::item"))

    def _pipeline(self) -> None:
        """One forward, one backward, after as many forward as there are later stages."""
        count = self.shape.micro_batches
        ahead = min(self.shape.stages - self.stage - 1, count)
        for _ in range(ahead):
            self._forward()
        for number in range(count - ahead):
            self._forward()
            self._backward(last=number == count - 1)
        for number in range(count - ahead, count):
            self._backward(last=number == count - 1)

    def _forward(self) -> None:
        shape = self.shape
        if self.stage > 0:
            self._point_to_point("recv", self.stage - 1, RECEIVE_FORWARD)
        for _ in range(shape.layers):
            if shape.sharded and shape.copies > 1:
                self._call(self._data_group, "all_gather", shape.layer_bytes, DATA, blocking=True, after=False)
            self._layer(1.0)
        if self.stage + 1 < shape.stages:
            self._point_to_point("send", self.stage + 1, SEND_FORWARD)

    def _backward(self, *, last: bool) -> None:
        """The layers from the last to the first; in the last micro-batch, gradients are summed as they come."""
        shape = self.shape
        if self.stage + 1 < shape.stages:
            self._point_to_point("recv", self.stage + 1, RECEIVE_BACKWARD)
        for layer in reversed(range(shape.layers)):
            if shape.sharded and shape.copies > 1:
                self._call(self._data_group, "all_gather", shape.layer_bytes, DATA, blocking=True, after=False)
            self._layer(2.0)
            if shape.copies > 1 and last and layer % shape.bucket_layers == 0:
                operation = "reduce_scatter" if shape.sharded else "all_reduce"
                self._call(self._data_group, operation, shape.layer_bytes * shape.bucket_layers, DATA, blocking=False)
        if self.stage > 0:
            self._point_to_point("send", self.stage - 1, SEND_BACKWARD)

    @property
    def _data_group(self) -> str:
        return f"dp{self.stage}.{self.tensor}"

    def _layer(self, factor: float) -> None:
        shape = self.shape
        for number in range(shape.layer_kernels):
            operator, kernel, length = LAYER[number % len(LAYER)]
            if factor > 1:
                kernel = kernel.replace("fwd", "bwd").replace("_tn", "_nt")
            self._kernel(operator, kernel, factor * length)
            if shape.experts and shape.copies > 1 and number in (shape.layer_kernels // 2, shape.layer_kernels - 1):
                name = "dispatch" if number == shape.layer_kernels // 2 else "combine"
                self._exchange(name)
        if shape.tensor > 1:
            self._call(f"tp{self.stage}.{self.copy}", "all_reduce", shape.layer_bytes // 4, TENSOR, blocking=True)

    def _exchange(self, name: str) -> None:
        """Tokens to the experts' ranks and back; a library's kernels hide half of it behind the next kernel."""
        self._call(
            f"ep{self.stage}.{self.tensor}",
            "all_to_all",
            self.shape.layer_bytes,
            EXPERTS,
            blocking=not self.shape.internode,
        )
        if self.shape.internode:
            self.out[-1].name = f"void deep_ep::internode::{name}<false, 8, false, 20480>(int4*, float*, long*)"
            self.out[-1].operator = ""
            self._kernel("aten::mm", LAYER[1][1], 3.0)
            self._order(EXPERTS, COMPUTE)

    def _point_to_point(self, operation: str, stage: int, stream: int) -> None:
        other = self.shape.rank_at(stage, self.copy, self.tensor)
        pair = (self.rank, other) if operation == "send" else (other, self.rank)
        if operation == "send":
            self._order(COMPUTE, stream)
        self._add_call(f"pp{pair[0]}-{pair[1]}", operation, self.shape.layer_bytes // 4, stream, other)
        if operation == "recv":
            self._order(stream, COMPUTE)

    def _call(self, group: str, operation: str, size: int, stream: int, *, blocking: bool, after: bool = True) -> None:
        """A collective of what was computed so far (`after`), for which what follows waits if it blocks."""
        if after:
            self._order(COMPUTE, stream)
        self._add_call(group, operation, size, stream)
        if blocking:
            self._order(stream, COMPUTE)

    def _add_call(self, group: str, operation: str, size: int, stream: int, peer: int | None = None) -> None:
        kernel = {"all_reduce": "AllReduce_Sum_bf16_RING_LL", "all_gather": "AllGather_RING_LL",
                  "reduce_scatter": "ReduceScatter_Sum_bf16_RING_LL"}.get(operation, "SendRecv")  # fmt: skip
        end_ns = round(self.chance.random() * 2000)
        self._add(Operation("call", f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)", end_ns, stream=stream,
                            kind="communication", group=group, operation=operation, size_bytes=size, peer=peer,
                            operator=f"c10d::{operation}"))  # fmt: skip

    def _order(self, before: int, after: int) -> None:
        """Let one stream wait for what another one has been given so far."""
        number = self.events
        self.events += 1
        self._add(Operation("record", "cudaEventRecord", launch_ns=1000, stream=before, event=number), gap=0.0)
        self._add(Operation("wait", "cudaStreamWaitEvent", launch_ns=1000, stream=after, event=number), gap=0.0)

    def _kernel(self, operator: str, name: str, length: float) -> None:
        self._add(Operation("kernel", name, self._device_ns(length), operator=operator))

    def _device_ns(self, length: float) -> int:
        return round(self.kernel_ns * length * max(0.3, 1 + self.shape.kernel_noise * self.chance.gauss(0, 1)))

    def _host_ns(self, length: float) -> int:
        return round(length * max(0.3, 1 + self.shape.host_noise * self.chance.gauss(0, 1)))

    def _add(self, operation: Operation, gap: float = 1.0) -> None:
        operation.gap_ns += self._host_ns(gap * self.shape.gap_ns) if gap else 500
        operation.launch_ns = self._host_ns(operation.launch_ns)
        self.out.append(operation)


def noisier(shape: Shape, level: int) -> Shape:
    """The same job with one of five levels of noise, from 0 to 4."""
    kernel = (0.005, 0.01, 0.02, 0.03, 0.05)[level]
    host = (0.03, 0.08, 0.15, 0.25, 0.4)[level]
    stalls, stall_ns = ((0.0, 0), (0.02, 100 * US), (0.05, 200 * US), (0.1, 300 * US), (0.1, 500 * US))[level]
    return replace(shape, kernel_noise=kernel, host_noise=host, call_noise=2 * kernel, stalls=stalls, stall_ns=stall_ns)
