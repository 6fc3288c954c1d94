"""Record a small data-parallel job on CPU in which one rank has a slow data loader.

Four processes train a small transformer with `DistributedDataParallel` over gloo. Reading a sample takes
longer on one of them, as if its storage were slow, so the others wait for it in every all-reduce. Each rank
writes a trace of `torch.profiler` as any training script would. Run it with:

    python examples/record_ddp.py --out out/ddp
    stepscope analyze out/ddp

It needs torch (`pip install torch`) and Linux; no accelerator.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, DistributedSampler

BATCH = 8
TOKENS = 64
VOCABULARY = 1000
WIDTH = 192
LAYERS = 2


@dataclass(frozen=True)
class Job:
    """What to record.

    Args:
        out: Directory that receives one trace a rank.
        ranks: Number of processes.
        slow_rank: The rank with the slow loader; none has one if there is no such rank.
        delay_ms: Additional time that the slow rank needs to read one batch.
        warmup: Steps before the recorded ones; the last of them runs with the profiler warming up.
        steps: Recorded steps.
        rendezvous: File by which the processes find each other; must not exist yet.
    """

    out: Path
    ranks: int
    slow_rank: int
    delay_ms: float
    warmup: int
    steps: int
    rendezvous: Path


class Samples:
    """A map-style data set of random tokens and labels; each sample takes `delay_s` seconds to read."""

    def __init__(self, count: int, delay_s: float) -> None:
        self.count = count
        self.delay_s = delay_s

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if self.delay_s:
            time.sleep(self.delay_s)
        source = torch.Generator().manual_seed(index)
        tokens = torch.randint(VOCABULARY, (TOKENS + 1,), generator=source)
        return tokens[:-1], tokens[1:]


def build_model() -> Any:
    """A transformer of about 1.3 million parameters: small for one core, yet with phases to see."""
    layer = nn.TransformerEncoderLayer(
        WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.Sequential(
        nn.Embedding(VOCABULARY, WIDTH),
        nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False),
        nn.Linear(WIDTH, VOCABULARY),
    )


def train(rank: int, job: Job) -> None:
    """Train and record one rank."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo", init_method=job.rendezvous.as_uri(), rank=rank, world_size=job.ranks)
    total = job.warmup + job.steps
    delay_s = job.delay_ms / 1000 / BATCH if rank == job.slow_rank else 0.0
    samples = Samples(total * BATCH * job.ranks, delay_s)
    sampler = DistributedSampler(samples, num_replicas=job.ranks, rank=rank, shuffle=False)
    loader = DataLoader(samples, batch_size=BATCH, sampler=sampler)
    model = DistributedDataParallel(build_model(), bucket_cap_mb=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=job.warmup - 1, warmup=1, active=job.steps, repeat=1),
        on_trace_ready=tensorboard_trace_handler(str(job.out), worker_name=f"rank-{rank}", use_gzip=True),
        record_shapes=True,
        profile_memory=True,
    ) as profiler:
        for tokens, labels in loader:
            logits = model(tokens)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
    dist.barrier()
    dist.destroy_process_group()


def make_neutral(trace: Path) -> None:
    """Replace the host name and the output path in a trace; everything else stays byte for byte."""
    text = gzip.decompress(trace.read_bytes())
    name = trace.name.removesuffix(".gz").encode()
    text = re.sub(rb'("host_name": )"[^"]*"', rb'\1"train-host"', text)
    text = re.sub(rb'("traceName": )"[^"]*"', lambda match: match[1] + b'"' + name + b'"', text)
    trace.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))


def main() -> None:
    """Record the job and print where the traces are."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory for the traces; made if missing")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--slow-rank", type=int, default=2, help="-1: no rank is slow")
    parser.add_argument("--delay-ms", type=float, default=60.0, help="additional time of the slow rank per batch")
    parser.add_argument("--warmup", type=int, default=4, help="steps before the recorded ones (at least 1)")
    parser.add_argument("--steps", type=int, default=5, help="recorded steps")
    options = parser.parse_args()
    if options.warmup < 1:
        parser.error("--warmup must be at least 1")
    options.out.mkdir(parents=True, exist_ok=True)
    if any(options.out.glob("*.pt.trace.json*")):
        parser.error(f"{options.out} already holds traces; choose another directory or delete them")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all ranks are on this machine
    with tempfile.TemporaryDirectory() as directory:
        job = Job(
            out=options.out,
            ranks=options.ranks,
            slow_rank=options.slow_rank,
            delay_ms=options.delay_ms,
            warmup=options.warmup,
            steps=options.steps,
            rendezvous=Path(directory) / "rendezvous",
        )
        mp.spawn(train, args=(job,), nprocs=job.ranks)
    for trace in sorted(options.out.glob("*.pt.trace.json.gz")):
        make_neutral(trace)
        print(f"{trace}  {trace.stat().st_size} bytes")


if __name__ == "__main__":
    main()
