"""Record steps or epochs of `Model.train` with a callback of one's own that starts and stops the Profiler.

python examples/record_mindspore/own_callback.py --out data_step
python examples/record_mindspore/own_callback.py --by-epoch 1 --first 2 --last 2 --out data_epoch
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny
from mindspore import nn
from mindspore.train import Callback, Model

import stepscope


class StopAtStep(Callback):  # type: ignore[misc]
    """Records steps `first` to `last`."""

    def __init__(self, first: int, last: int, output_path: Path) -> None:
        super().__init__()
        self.first, self.last = first, last
        self.profiler = stepscope.Profiler(start_profile=False, output_path=output_path)

    def on_train_step_begin(self, run_context: Any) -> None:
        """Start with the first."""
        if run_context.original_args().cur_step_num == self.first:
            self.profiler.start()

    def on_train_step_end(self, run_context: Any) -> None:
        """Stop with the last."""
        if run_context.original_args().cur_step_num == self.last:
            self.profiler.stop()
            self.profiler.analyse()


class StopAtEpoch(Callback):  # type: ignore[misc]
    """Records epochs `first` to `last`."""

    def __init__(self, first: int, last: int, output_path: Path) -> None:
        super().__init__()
        self.first, self.last = first, last
        self.profiler = stepscope.Profiler(start_profile=False, output_path=output_path)

    def on_train_epoch_begin(self, run_context: Any) -> None:
        """Start with the first."""
        if run_context.original_args().cur_epoch_num == self.first:
            self.profiler.start()

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Stop with the last."""
        if run_context.original_args().cur_epoch_num == self.last:
            self.profiler.stop()
            self.profiler.analyse()


def main() -> None:
    """Train with one of them."""
    options = tiny.arguments(__doc__, epochs=3, batches=4, first=3, last=6, by_epoch=0)
    net = tiny.net()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    model = Model(net, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), optimizer)
    kind = StopAtEpoch if options.by_epoch else StopAtStep
    callback = kind(options.first, options.last, options.out)
    model.train(options.epochs, tiny.batches(options.batches), callbacks=[callback], dataset_sink_mode=False)


if __name__ == "__main__":
    main()
