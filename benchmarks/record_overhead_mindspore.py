"""What recording costs a MindSpore training on CPU, beside nothing and beside MindSpore's own profiler.

One process; blocks of steps without a profiler, with MindSpore's own and with ours take turns, so that whatever else
the machine does falls on all alike. Processor time of the process is compared, wall time is only shown: it follows the
load. Starting and stopping a profiler is not measured, its threads during the block are. Run it with:

    python benchmarks/record_overhead_mindspore.py --mode pynative
"""

from __future__ import annotations

import argparse
import logging
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BOUND = 1.03
"""Most that our profiler may cost, as a ratio to MindSpore's own."""
WARM_UP = 3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mode", choices=("graph", "pynative"), default="graph")
    parser.add_argument("--blocks", type=int, default=10, help="blocks of each kind")
    parser.add_argument("--steps", type=int, default=60, help="steps of a block")
    parser.add_argument("--width", type=int, default=256, help="width of the layers")
    options = parser.parse_args()
    step = training(options.mode, options.width)
    logging.getLogger("stepscope").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        kinds = {"none": nothing, "mindspore": own(Path(directory)), "stepscope": ours(Path(directory))}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for number in range(options.blocks):
            order = list(kinds) if number % 2 else list(reversed(kinds))
            for name in order:
                times[name] += block(kinds[name], step, options.steps)
    show(options.mode, times)


def training(mode: str, width: int) -> Callable[[], None]:
    """One step of a net of six layers; waits for its result."""
    import mindspore as ms
    import numpy as np  # noqa: PLC0415
    from mindspore import nn

    ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE)
    ms.set_device("CPU")
    layers = [part for _ in range(5) for part in (nn.Dense(width, width), nn.ReLU())]
    net = nn.SequentialCell(*layers, nn.Dense(width, 10))
    loss_fn = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    optimizer = nn.Momentum(net.trainable_params(), 0.01, 0.9)

    def forward(data: Any, label: Any) -> Any:
        return loss_fn(net(data), label)

    gradient = ms.value_and_grad(forward, None, optimizer.parameters)
    data = ms.Tensor(np.random.default_rng(0).standard_normal((64, width)).astype(np.float32))
    label = ms.Tensor(np.zeros(64, np.int32))

    def step() -> None:
        loss, gradients = gradient(data, label)
        optimizer(gradients)
        loss.asnumpy()

    return step


def nothing() -> Callable[[], None]:
    """No profiler."""
    return lambda: None


def own(directory: Path) -> Callable[[], Callable[[], None]]:
    """MindSpore's own, collecting only."""

    def begin() -> Callable[[], None]:
        from mindspore.profiler import profile, tensorboard_trace_handler

        tensorboard_trace_handler(str(directory / "own"), analyse_flag=False)
        profiler: Any = profile(start_profile=False)
        profiler.start()
        return lambda: profiler.stop()  # noqa: PLW0108 - keeps it alive

    return begin


def ours(directory: Path) -> Callable[[], Callable[[], None]]:
    """`stepscope.Profiler` with its defaults."""

    def begin() -> Callable[[], None]:
        import stepscope  # noqa: PLC0415

        profiler = stepscope.Profiler(output_path=directory / "ours", framework="mindspore")

        def end() -> None:
            profiler.stop()
            assert profiler.directory is not None
            assert (profiler.directory / "windows.csv").exists(), "no operators were recorded"

        return end

    return begin


def block(begin: Callable[[], Callable[[], None]], step: Callable[[], None], steps: int) -> list[tuple[float, float]]:
    """Processor and wall time of each step of one block, in seconds."""
    end = begin()
    for _ in range(WARM_UP):
        step()
    times = []
    for _ in range(steps):
        cpu, wall = time.process_time(), time.perf_counter()
        step()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    end()
    return times


def show(mode: str, times: dict[str, list[tuple[float, float]]]) -> None:
    """Print a table of processor time: the fastest tenth, which other load disturbs least, and the median."""
    figures = {name: figures_of([cpu for cpu, _ in rows]) for name, rows in times.items()}
    print(f"{mode}: {len(times['none'])} steps of each kind; ms of processor time a step")
    print(f"{'profiler':12}{'p10':>9}{'p50':>9}{'p10 / none':>12}{'p10 / own':>12}{'p50 / own':>12}{'wall p50':>10}")
    for name, (low, middle) in figures.items():
        wall = statistics.median(wall for _, wall in times[name])
        ratios = (low / figures["none"][0], low / figures["mindspore"][0], middle / figures["mindspore"][1])
        print(f"{name:12}{low * 1e3:9.3f}{middle * 1e3:9.3f}" + "".join(f"{x:12.3f}" for x in ratios), end="")
        print(f"{wall * 1e3:10.3f}")
    ratio = figures["stepscope"][0] / figures["mindspore"][0]
    print(f"bound: {BOUND} of MindSpore's own: {'kept' if ratio <= BOUND else 'BROKEN'} ({ratio:.3f} at p10)")
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def figures_of(seconds: list[float]) -> tuple[float, float]:
    """10th percentile and median."""
    tenths = statistics.quantiles(seconds, n=10)
    return tenths[0], tenths[4]


if __name__ == "__main__":
    main()
