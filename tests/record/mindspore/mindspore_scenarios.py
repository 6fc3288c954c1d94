"""Trainings that the tests record: run as a script, all in one process, each with a Profiler of its own.

    python mindspore_scenarios.py MODE DIRECTORY SCENARIO...

Each writes below DIRECTORY/SCENARIO. What a test needs to know besides is printed as `scenario key value`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mindspore as ms  # noqa: TID253 - a script of its own
import numpy as np
from mindspore import dataset, nn, ops  # noqa: TID253
from mindspore.train import Callback, Model, RunContext  # noqa: TID253

from stepscope.record.callbacks.model_train import ProfileEpochs, ProfileSteps
from stepscope.record.profiler import Profiler

OUT = Path(sys.argv[2])
loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
DATA = ms.Tensor(np.ones((2, 4), np.float32))
LABEL = ms.Tensor(np.zeros(2, np.int32))


class Training:
    """A functional training."""

    def __init__(self, optimizer: Any = nn.Momentum) -> None:
        self.net = nn.Dense(4, 3)
        self.optimizer = optimizer(self.net.trainable_params(), learning_rate=0.1, momentum=0.9)
        self.gradient = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, data: Any, label: Any) -> Any:
        return loss_fn(self.net(data), label)

    def step(self, data: Any = DATA, label: Any = LABEL) -> Any:
        loss, gradients = self.gradient(data, label)
        self.optimizer(gradients)
        return loss

    def evaluate(self, data: Any = DATA, label: Any = LABEL) -> Any:
        return loss_fn(self.net(data), label)


def profiler(name: str, **options: Any) -> Profiler:
    return Profiler(output_path=OUT / name, sampling_interval=100, **options)


def record(name: str, count: int, *steps: Callable[[], object], **options: Any) -> None:
    """Take all `steps` so many times, recorded from the first to the last."""
    recorder = profiler(name, **options)
    for _ in range(count):
        for step in steps:
            step()
    recorder.stop()


def batches(count: int) -> Any:
    def rows() -> Any:
        for _ in range(2 * count):
            yield np.ones(4, np.float32), np.array(0, np.int32)

    return dataset.GeneratorDataset(rows, ["data", "label"]).batch(2)


def model() -> Any:
    net = nn.Dense(4, 3)
    return Model(net, loss_fn, nn.Momentum(net.trainable_params(), 0.1, 0.9))


def functional_range() -> None:
    training, recorder = Training(), profiler("functional_range", start_profile=False, profile_memory=True)
    for i in range(10):
        training.step()
        if i == 2:
            recorder.start()
        if i == 6:
            recorder.stop()


def jit_with_evaluation() -> None:
    training = Training()
    step, evaluate = ms.jit(training.step), ms.jit(training.evaluate)
    step(DATA, LABEL)
    record("jit_with_evaluation", 4, lambda: step(DATA, LABEL), lambda: evaluate(DATA, LABEL))


def two_optimizers() -> None:
    record("two_optimizers", 3, Training().step, Training().step)


def train_step_cell() -> None:
    net = nn.WithLossCell(nn.Dense(4, 3), loss_fn)
    step = nn.TrainOneStepCell(net, nn.Momentum(net.trainable_params(), 0.1, 0.9))
    record("train_step_cell", 3, lambda: step(DATA, LABEL))


def user_steps() -> None:
    training, recorder = Training(), profiler("user_steps")
    for i in range(8):
        training.step()
        if i % 2:
            recorder.step()
    recorder.stop()


def schedule() -> None:
    from stepscope import schedule as make

    record("schedule", 12, Training().step, schedule=make(wait=2, warmup=1, active=2, repeat=2))


def checkpoint_and_loader() -> None:
    training, data = Training(), batches(3)
    recorder = profiler("checkpoint_and_loader")
    for _ in range(2):
        for data_batch, label in data.create_tuple_iterator():
            training.step(data_batch, label)
        ms.save_checkpoint(training.net, str(OUT / "net.ckpt"))
    recorder.stop()


def collective() -> None:
    recorder = profiler("collective", start_profile=False)
    print("collective hooked", hasattr(ops.AllReduce.__call__, "__wrapped__") and recorder.directory is None)


class StopsAndStarts(Callback):  # type: ignore[misc]
    """As users write them: start at the beginning of a step, stop at the end of another."""

    def __init__(self, recorder: Profiler, first: int, last: int) -> None:
        super().__init__()
        self.recorder, self.first, self.last = recorder, first, last

    def on_train_step_begin(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.first:
            self.recorder.start()

    def on_train_step_end(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == self.last:
            self.recorder.stop()


def own_callback() -> None:
    recorder = profiler("own_callback", start_profile=False)
    model().train(2, batches(4), callbacks=StopsAndStarts(recorder, 3, 6), dataset_sink_mode=False)


def two_trainings() -> None:
    record("two_trainings", 2, lambda: model().train(1, batches(3)))


class Fails(Callback):  # type: ignore[misc]
    """Fails in step 4."""

    def on_train_step_begin(self, run_context: Any) -> None:
        if run_context.original_args().cur_step_num == 4:
            raise ArithmeticError("made to fail")


def failing_training() -> None:
    callback = ProfileSteps(2, 100, output_path=OUT / "failing_training")
    callback.profiler.analyse = lambda: print("failing_training analysed True")
    try:
        model().train(2, batches(4), callbacks=[Fails(), callback])
    except ArithmeticError as error:
        print("failing_training raised", type(error).__name__)
    Training().step()  # a functional step afterwards is seen again, and recorded nowhere


def beyond_training() -> None:
    callbacks = [kind(7, 9, output_path=OUT / "beyond_training") for kind in (ProfileSteps, ProfileEpochs)]
    for callback in callbacks:
        model().train(2, batches(3), callbacks=[callback], dataset_sink_mode=False)


def epochs() -> None:
    callback = ProfileEpochs(2, 3, output_path=OUT / "epochs")
    callback.profiler.analyse = lambda: None
    model().train(4, batches(3), callbacks=[callback], dataset_sink_mode=True)


def broken_hook() -> None:
    recorder, training = profiler("broken_hook"), Training()

    def fails(*_: Any) -> None:
        raise KeyError("mine")

    assert recorder._recorder is not None
    recorder._recorder.steps.mark = fails  # type: ignore[method-assign]
    losses = [float(training.step()) for _ in range(3)]
    recorder.stop()
    print("broken_hook trained", losses[2] < losses[0])


def other_profiler() -> None:
    from mindspore.profiler import Profiler as Other

    other = Other(output_path=str(OUT / "other"))
    record("other_profiler", 2, Training().step)
    other.stop()


def other_profiler_begins() -> None:
    from mindspore.profiler import Profiler as Other

    recorder, training = profiler("other_profiler_begins", window_seconds=600), Training()
    for i in range(8):
        training.step()
        if i == 2:
            other = Other(output_path=str(OUT / "begun"))
        if i == 5:
            other.stop()
            other.analyse()
    recorder.stop()
    (file,) = (OUT / "begun").glob("*/FRAMEWORK/cpu_op_execute_timestamp_0.txt")
    updates = [line for line in file.read_text().splitlines() if "ApplyMomentum" in line]
    print("other_profiler_begins updates", sum(len(line.split(";")[2].split()) for line in updates))


def detached() -> None:
    from mindspore._c_expression import GraphExecutor_
    from mindspore.dataset.engine.iterators import Iterator
    from mindspore.graph import api

    places = [
        (nn.Cell, "__call__"), (api._JitExecutor, "__call__"), (Model, "_transform_callbacks"),
        (Iterator, "__next__"), (Iterator, "__init__"), (ms, "save_checkpoint"), (ops.AllReduce, "__call__"),
        (GraphExecutor_, "compile"),
    ]  # fmt: skip
    before = [getattr(*place) for place in places]
    many(places)
    print("detached many", before == [getattr(*place) for place in places])
    recorder = profiler("detached", start_profile=False)
    changed = [getattr(*place) is not original for place, original in zip(places, before, strict=True)]
    assert recorder._recorder is not None
    recorder._recorder.detach()
    restored = [getattr(*place) is original for place, original in zip(places, before, strict=True)]
    print("detached all", all(changed) and all(restored))


def many(places: list[tuple[Any, str]]) -> None:
    """Profilers one after the other, of which some are kept; how deep their wrappers lie on one another."""

    def depth(function: Any) -> int:
        return 1 + depth(function.__wrapped__) if hasattr(function, "__wrapped__") else 0

    base, deepest, kept = [depth(getattr(*place)) for place in places], 0, []
    for i in range(50):
        recorder = Profiler(output_path=OUT / "many", op_time=False)
        depths = [depth(getattr(*place)) - least for place, least in zip(places, base, strict=True)]
        deepest = max(deepest, *depths)
        recorder.stop()
        if i % 3:
            kept.append(recorder)
    print("many deepest", deepest)
    while kept:
        del kept[len(kept) // 2]


def without_data() -> None:
    training, recorder, data = Training(), profiler("without_data", data_process=False), batches(3)
    for row in data.create_tuple_iterator(num_epochs=1):
        training.step(*row)
    recorder.stop()


def functional_epochs() -> None:
    for name in ("functional_epochs", "functional_epochs_of_one_iterator"):
        training, data, validation = Training(), batches(3), batches(2)
        recorder = profiler(name, epochs=(2, 3), data_process=False)
        iterator = data.create_tuple_iterator(num_epochs=4)
        for _ in range(4):
            for row in validation.create_tuple_iterator(num_epochs=1):
                training.evaluate(*row)
            for row in data.create_tuple_iterator(num_epochs=1) if name == "functional_epochs" else iterator:
                training.step(*row)
        recorder.stop()


def loop_and_model() -> None:
    training, data, recorder = Training(), batches(3), profiler("loop_and_model")
    for row in data.create_tuple_iterator(num_epochs=1):
        training.step(*row)
    model().train(2, data, dataset_sink_mode=False)
    recorder.stop()


def sunk_steps() -> None:
    """What a device tells that takes ten batches at a time; a CPU takes each."""
    callback = ProfileSteps(2, 3, output_path=OUT / "sunk_steps")
    context = RunContext({"cur_step_num": 10})
    callback.on_train_step_begin(context)
    callback.on_train_step_end(context)
    callback.on_train_end(context)


def runtime_detail() -> None:
    record("runtime_detail", 3, Training().step, runtime_detail=True)


if __name__ == "__main__":
    ms.set_context(mode=ms.GRAPH_MODE if sys.argv[1] == "graph" else ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    for scenario in sys.argv[3:]:
        globals()[scenario]()
