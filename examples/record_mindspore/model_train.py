"""Record a training with `Model.train`, with or without the Profiler in the script.

python examples/record_mindspore/model_train.py --out profiler_data
STEPSCOPE_OPTIONS='{"output_path": "profiler_data"}' python examples/record_mindspore/model_train.py --profiler 0
"""

from __future__ import annotations

import tiny
from mindspore import nn
from mindspore.train import Model

import stepscope


def main() -> None:
    """Train."""
    options = tiny.arguments(__doc__, epochs=2, batches=4, profiler=1)
    profiler = stepscope.Profiler(output_path=options.out) if options.profiler else None
    net = tiny.net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer)
    model.train(options.epochs, tiny.batches(options.batches))
    if profiler is not None:
        profiler.analyse()


if __name__ == "__main__":
    main()
