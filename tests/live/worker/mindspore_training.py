"""A training with MindSpore (PyNative) that the tests trace: a line on its input is a number of steps."""

from __future__ import annotations

import sys

import mindspore as ms  # noqa: TID253 - a script of its own
import numpy as np
from mindspore import dataset, nn  # noqa: TID253

import stepscope.live

ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")


def main() -> None:
    assert stepscope.live.start_worker(2, 5000, "ms")
    net = nn.Dense(8, 2)
    optimizer = nn.SGD(net.trainable_params(), 0.1)
    gradient = ms.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
    batches = iter(dataset.NumpySlicesDataset(np.ones((4000, 8), np.float32), shuffle=False).batch(4))
    for line in sys.stdin:
        for _ in range(int(line)):
            (x,) = next(batches)
            _, gradients = gradient(x)
            optimizer(gradients)
            ms.save_checkpoint(net, f"{sys.argv[1]}/net.ckpt")
        print("done", flush=True)


if __name__ == "__main__":
    main()
