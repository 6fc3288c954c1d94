"""What the examples train: a net of two layers on random data, small enough for any machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import dataset, nn

BATCH = 4
FEATURES = 8
CLASSES = 3


def arguments(about: str | None, **defaults: int) -> argparse.Namespace:
    """Read the command line and set MindSpore's mode; `defaults` are whole-number options with their defaults."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--mode", choices=("graph", "pynative"), default="graph")
    parser.add_argument("--out", type=Path, default=Path("data"), help="output_path of the Profiler")
    parser.add_argument("--device", default="CPU", help="CPU, GPU or Ascend")
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    options = parser.parse_args()
    ms.set_context(mode=ms.GRAPH_MODE if options.mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device(options.device)
    ms.set_seed(0)
    return options


def net() -> Any:
    """Two dense layers."""
    return nn.SequentialCell(nn.Dense(FEATURES, 16), nn.ReLU(), nn.Dense(16, CLASSES))


def batches(count: int) -> Any:
    """A data set of `count` batches of features and labels."""
    random = np.random.default_rng(0)
    features = random.standard_normal((count * BATCH, FEATURES)).astype(np.float32)
    labels = random.integers(CLASSES, size=count * BATCH).astype(np.int32)

    def rows() -> Any:
        for feature, label in zip(features, labels, strict=True):
            yield feature, np.array(label)

    return dataset.GeneratorDataset(rows, ["data", "label"], shuffle=False).batch(BATCH)
