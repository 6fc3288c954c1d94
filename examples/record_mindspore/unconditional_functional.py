"""Record a whole training with a loop of one's own.

python examples/record_mindspore/unconditional_functional.py --mode pynative --out profiler_data
stepscope analyze profiler_data
"""

from __future__ import annotations

from typing import Any

import mindspore as ms
import tiny
from mindspore import nn

import stepscope


def main() -> None:
    """Train for some epochs, evaluate after each, and record all of it."""
    options = tiny.arguments(__doc__, epochs=2, batches=4, jit=1)
    profiler = stepscope.Profiler(output_path=options.out)
    net, loss_fn = tiny.net(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)

    def forward(data: Any, label: Any) -> tuple[Any, Any]:
        logits = net(data)
        return loss_fn(logits, label), logits

    gradient = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)

    def train_step(data: Any, label: Any) -> Any:
        """One step of training."""
        (loss, _), gradients = gradient(data, label)
        optimizer(gradients)
        return loss

    def evaluate(data: Any, label: Any) -> Any:
        """No step: nothing is learned."""
        return loss_fn(net(data), label)

    if options.jit:
        train_step, evaluate = ms.jit(train_step), ms.jit(evaluate)
    train_set, test_set = tiny.batches(options.batches), tiny.batches(1)
    for _ in range(options.epochs):
        for data, label in train_set.create_tuple_iterator():
            train_step(data, label)
        for data, label in test_set.create_tuple_iterator():
            evaluate(data, label)
    profiler.analyse()


if __name__ == "__main__":
    main()
