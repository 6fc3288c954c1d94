"""Record steps or epochs of `Model.train` with the callbacks that stepscope brings along.

python examples/record_mindspore/ready_callbacks.py --first 3 --last 6 --out data_step
python examples/record_mindspore/ready_callbacks.py --by-epoch 1 --first 2 --last 2 --out data_epoch
"""

from __future__ import annotations

import tiny
from mindspore import nn
from mindspore.train import Model

from stepscope.record.callbacks.model_train import ProfileEpochs, ProfileSteps


def main() -> None:
    """Train with one of them."""
    options = tiny.arguments(__doc__, epochs=3, batches=4, first=3, last=6, by_epoch=0, sink=0)
    net = tiny.net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer)
    kind = ProfileEpochs if options.by_epoch else ProfileSteps
    callback = kind(options.first, options.last, output_path=options.out)
    model.train(
        options.epochs, tiny.batches(options.batches), callbacks=[callback], dataset_sink_mode=bool(options.sink)
    )


if __name__ == "__main__":
    main()
