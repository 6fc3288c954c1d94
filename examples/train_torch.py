"""Record a small PyTorch training with `stepscope.Profiler`, one rank or several, on a CPU or a GPU.

    python examples/train_torch.py --out out/torch
    torchrun --nproc-per-node 4 examples/train_torch.py --out out/torch
    stepscope analyze out/torch

It needs torch (`pip install torch`).
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import stepscope


def main() -> None:
    """Train for some steps, and record a range of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="./data", help="directory for what is recorded")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--first", type=int, default=11, help="first recorded step")
    parser.add_argument("--last", type=int, default=30, help="last recorded step")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))

    torch.manual_seed(0)
    model: nn.Module = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
    if ranks > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    samples = TensorDataset(torch.randn(options.steps * 32, 64), torch.randint(10, (options.steps * 32,)))
    loader = DataLoader(samples, batch_size=32, num_workers=1)

    profiler = stepscope.Profiler(output_path=options.out, steps=(options.first, options.last))
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
    profiler.analyse()
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
