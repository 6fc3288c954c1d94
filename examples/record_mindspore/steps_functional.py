"""Record a range of steps of a training loop of one's own: start and stop where the loop counts.

python examples/record_mindspore/steps_functional.py --mode pynative --out data_steps
stepscope analyze data_steps
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import tiny
from mindspore import nn

import stepscope


def main() -> None:
    """Train, and record the steps after `start` up to `stop`."""
    options = tiny.arguments(__doc__, steps=12, start=4, stop=8, jit=1)
    net, loss_fn = tiny.net(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

    def forward(data: Any, label: Any) -> tuple[Any, Any]:
        logits = net(data)
        return loss_fn(logits, label), logits

    gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def train_step(data: Any, label: Any) -> Any:
        (loss, _), gradients = gradient(data, label)
        optimizer(gradients)
        return loss

    if options.jit:
        train_step = ms.jit(train_step)
    profiler = stepscope.Profiler(start_profile=False, output_path=options.out)
    for i, batch in enumerate(tiny.batches(options.steps).create_dict_iterator()):
        train_step(batch["data"], batch["label"])
        if i == options.start:
            profiler.start()
        if i == options.stop:
            profiler.stop()
    profiler.analyse()


if __name__ == "__main__":
    main()
