"""FSDP as PyTorch 2.13 records it on GPUs: traces of two ranks, from the files to the advice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.advice import Finding, worded
from stepscope.run import open_run
from tests.kineto_job import Device, RankTrace, advised, by_rule, grave

LAYERS, PARAMETERS = 4, 32 * 2**20
AUTOGRAD = 2
COMPUTE, GATHER, REDUCE = 10_000, 4_000, 3_000
LATE_RANK_US = 500
"""By how much the second rank enters each call later."""


class Sharded:
    """A rank whose layers are wrapped by `fully_shard`, in bfloat16.

    Args:
        rank: Its number; rank 1 enters each call late.
        device: What it runs on.
        ahead: Whether layers are gathered while the one before computes, with marks of prefetching.
        covered: Whether they are gathered as soon without such marks, as the host is ahead.
        shards: Marks of `fully_shard`, or of FullyShardedDataParallel.
    """

    def __init__(
        self, rank: int, device: Device = "cuda", *, ahead: bool = False, covered: bool = False, shards: bool = True
    ) -> None:
        self.trace = RankTrace(rank, 2, device, groups={"0": [0, 1]})
        self.delay = LATE_RANK_US if rank else 0
        self.ahead, self.covered, self.shards = ahead, covered, shards
        self.now = 1000.0
        for step in range(3):
            self.step(step)

    def step(self, number: int) -> None:
        """Forward, backward and optimizer."""
        begun = self.now
        for phase, layers in (("forward", range(LAYERS)), ("backward", reversed(range(LAYERS)))):
            for place, layer in enumerate(layers):
                self.layer(phase, layer, place)
        host, device = self.now, self.now + 200
        self.trace.add("user_annotation", "Optimizer.step#AdamW.step", host, 300)
        self.trace.kernel("multi_tensor_apply_kernel", device, 2000, launched=host + 50)
        self.now = device + 2000
        self.trace.step(number, begun - 500, self.now - begun)

    def layer(self, phase: str, layer: int, place: int) -> None:
        """Gather a layer, then compute it; backward also reduces and scatters its gradients."""
        thread = 1 if phase == "forward" else AUTOGRAD
        ahead = (self.ahead or self.covered) and place > 0
        sent = max(self.now - COMPUTE, 0) + 100 if ahead else self.now + 100
        host = sent - 60
        self.marks(phase, layer, host, thread, prefetched=self.ahead and place > 0)
        sizes = (PARAMETERS // 2, PARAMETERS)
        self.call("_allgather_base", sent, GATHER, host + 20, "AllGather_RING_LL", sizes, thread=thread)
        done = sent + GATHER + 100
        start = max(self.now, done)
        name = "nvjet_tst_128x256" if self.trace.device == "cuda" else "Cijk_Ailk_Bljk_BBS_BH"
        launched = start - 30
        self.trace.operator("aten::mm", launched - 5, 10, thread=thread)
        if phase == "backward":
            engine = "autograd::engine::evaluate_function: MmBackward0"
            self.trace.operator(engine, launched - 6, 20, thread=thread)
        self.trace.kernel(name, start, COMPUTE, launched=launched, thread=thread)
        self.now = start + COMPUTE
        if phase == "backward":
            self.reduce(layer, thread)

    def reduce(self, layer: int, thread: int) -> None:
        """What follows the backward pass of a layer; the computing of the next one covers it."""
        host = self.now - 40
        self.trace.add("user_annotation", f"FSDP::post_backward_reduce (layers.{layer})", host, 30, thread=thread)
        at, kind = self.now + GATHER + 300, "ReduceScatter_Sum_bf16_RING_LL"
        sizes = (PARAMETERS, PARAMETERS // 2)
        self.call("_reduce_scatter_base", at, REDUCE, host + 5, kind, sizes, thread=thread, stream=21)

    def marks(self, phase: str, layer: int, host: float, thread: int, *, prefetched: bool) -> None:
        """What PyTorch marks around the launch of a gather."""
        if self.shards:
            around = (
                f"FSDP::{phase}_prefetch for layers.{layer}" if prefetched else f"FSDP::pre_{phase} (layers.{layer})"
            )
            inner = f"FSDP::all_gather (layers.{layer})"
        else:
            own = {"forward": "_pre_forward", "backward": "_pre_backward_hook"}[phase]
            around = f"FullyShardedDataParallel.{own}{'_prefetch' if prefetched and phase == 'forward' else ''}"
            if prefetched and phase == "backward":
                around = "FullyShardedDataParallel._pre_backward_prefetch"
            inner = "c10d::_allgather_base_"
        self.trace.add("user_annotation", around, host, 50, thread=thread)
        self.trace.add("user_annotation", inner, host + 10, 30, thread=thread)

    def call(
        self,
        operation: str,
        at: float,
        length: float,
        launched: float,
        kind: str,
        sizes: tuple[int, int],
        **options: int,
    ) -> None:
        """A call that both ranks leave together, of so many elements in and out."""
        self.trace.collective(
            *(operation, at + self.delay, length),
            elements=sizes[0],
            out=sizes[1],
            launched=launched,
            kind=kind,
            dtype="BFloat16",
            **{"stream": 20, **options},
        )


def job(device: Device = "cuda", *, ahead: bool = False, covered: bool = False, shards: bool = True) -> list[RankTrace]:
    ranks = [Sharded(rank, device, ahead=ahead, covered=covered, shards=shards).trace for rank in (0, 1)]
    for event in ranks[1].events:  # the last to enter decides; all leave together
        if "Collective name" in event["args"]:
            event["dur"] -= LATE_RANK_US
    return ranks


def told(findings: list[Finding]) -> dict[str, Finding]:
    return {message: one for (rule, message), one in by_rule(findings).items() if rule == "data-parallel"}


def test_gathers_of_layers_are_read_with_their_pass_size_and_transmission(tmp_path: Path) -> None:
    for rank in job():
        rank.write(tmp_path)

    rows = open_run(tmp_path).analyse("sharded_gathers").filter(rank=0)

    sent = (GATHER - LATE_RANK_US) * 1000
    assert rows.select("phase", "module", "calls", "ahead").rows() == [
        (phase, f"layers.{layer}", 3, 0) for phase in ("forward", "backward") for layer in range(LAYERS)
    ]
    assert rows["gathered_bytes"].unique().to_list() == [2 * PARAMETERS]
    assert rows["transmit_ns"].unique().to_list() == [3 * sent]  # without the wait for the late rank
    late = rows.filter(pl.col("late_ns") > 0)
    assert late.group_by("phase", maintain_order=True).len().rows() == [("forward", 3), ("backward", 3)]


@pytest.mark.parametrize("device", ["cuda", "rocm"])
@pytest.mark.parametrize("shards", [True, False])
def test_late_gathers_are_told_with_what_they_cost(tmp_path: Path, device: Device, shards: bool) -> None:
    found = told(advised(tmp_path, *job(device, shards=shards)))

    assert set(found) == {"forward_gathers", "backward_gathers"}
    each = (LAYERS - 1) * (GATHER - LATE_RANK_US) * 1000
    for finding in found.values():
        assert finding.saving_ns == pytest.approx(each)
        assert (finding.saving_low_ns, finding.severity) == (0, "medium")
    assert "set_modules_to_forward_prefetch" in worded(found["forward_gathers"]).action
    assert "BACKWARD_PRE" in worded(found["backward_gathers"]).action
    named = found["forward_gathers"].parameters["module"]
    assert named == ("layers.1" if shards else None)


@pytest.mark.parametrize("ahead", [True, False])
def test_gathers_that_computing_covers_are_no_finding(tmp_path: Path, ahead: bool) -> None:
    findings = advised(tmp_path, *job(ahead=ahead, covered=not ahead))

    assert told(findings) == {}
    assert not [one for one in grave(findings) if not one.startswith("slow-rank")]
