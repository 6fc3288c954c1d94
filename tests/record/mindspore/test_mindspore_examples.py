"""The examples of `examples/record_mindspore` run as they stand, and on two ranks; each records the steps it says."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest
import recorded
from recorded import BOOTSTRAP, recordings, rows, steps

_spec = importlib.util.find_spec("mindspore")
if _spec is None or _spec.origin is None:  # a directory of this name, as that of this file, is no installation
    pytest.skip("needs mindspore", allow_module_level=True)

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "record_mindspore"
BIN = Path(sys.executable).parent
"""Not resolved: the interpreter of a virtual environment is a link."""


def run(command: list[str], directory: Path, **environment: str) -> None:
    path = os.pathsep.join([str(BIN), os.environ.get("PATH", "")])  # msrun starts `python`
    result = recorded.run(command, directory, PATH=path, **environment)
    assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["steps_functional.py", "--mode", "pynative", "--jit", "0"], range(6, 10)),
        (["steps_functional.py", "--mode", "graph"], range(6, 10)),
        (["unconditional_functional.py", "--mode", "pynative"], range(1, 9)),
        (["model_train.py", "--mode", "graph"], range(1, 9)),
        (["own_callback.py", "--mode", "graph", "--by-epoch", "1", "--first", "2", "--last", "2"], range(5, 9)),
        (["ready_callbacks.py", "--mode", "pynative"], range(3, 7)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_example_records_its_steps(arguments: list[str], expected: range, tmp_path: Path) -> None:
    run([sys.executable, str(EXAMPLES / arguments[0]), *arguments[1:], "--out", str(tmp_path / "out")], tmp_path)

    (recording,) = recordings(tmp_path / "out")
    assert steps(recording) == list(expected)
    assert list((tmp_path / "out" / "profiler").glob("*_0*"))  # analysed


@pytest.mark.parametrize("mode", ["graph", "pynative"])
def test_the_environment_alone_starts_a_recording(mode: str, tmp_path: Path) -> None:
    options = json.dumps({"output_path": str(tmp_path / "out")})
    command = [sys.executable, str(EXAMPLES / "model_train.py"), "--profiler", "0", "--mode", mode]

    run(command, tmp_path, PYTHONPATH=str(BOOTSTRAP), STEPSCOPE_OPTIONS=options)

    (recording,) = recordings(tmp_path / "out")
    assert steps(recording) == list(range(1, 9))


RANKS = """
import sys

import mindspore as ms
import numpy as np
from mindspore import communication, nn, ops
from mindspore.communication import init

import stepscope

recorder = stepscope.Profiler(output_path=sys.argv[1], data_process=False)
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_device("CPU")
init()
communication.create_group("pair", [0, 1])
net, loss_fn = nn.Dense(4, 3), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
gradient = ms.value_and_grad(lambda data, label: loss_fn(net(data), label), None, optimizer.parameters)
reduce = ops.AllReduce(group="pair")
data, label = ms.Tensor(np.ones((2, 4), np.float32)), ms.Tensor(np.zeros(2, np.int32))
for _ in range(3):
    loss, gradients = gradient(data, label)
    optimizer(tuple(reduce(each) for each in gradients))
recorder.stop()
net.weight.asnumpy()  # a rank that leaves before the others are done ends the job
"""


@pytest.mark.skipif(not (BIN / "msrun").exists() and shutil.which("msrun") is None, reason="needs msrun")
def test_two_ranks_know_themselves_and_their_groups(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(RANKS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    workers = ["--worker_num=2", "--local_worker_num=2", f"--master_port={port}", "--join=True"]

    run(["msrun", *workers, f"--log_dir={tmp_path / 'log'}", str(script), str(tmp_path / "out")], tmp_path)

    found = recordings(tmp_path / "out")
    about = [recorded.about(recording) for recording in found]
    world = {"group": "mccl_world_group", "name": "mccl_world_group", "members": [0, 1]}
    assert [(one["rank"], one["world_size"], one["local_rank"]) for one in about] == [(0, 2, 0), (1, 2, 1)]
    for rank, (recording, one) in enumerate(zip(found, about, strict=True)):
        assert one["backend"] == "mccl"
        assert one["groups"] == [world, {"group": "pair", "name": "pair", "members": [0, 1]}]
        assert steps(recording) == [1, 2, 3]
        calls = rows(recording, kind="collective")
        sizes = [json.loads(row["detail"])["size_bytes"] for row in calls]
        assert [row["name"] for row in calls] == ["all_reduce"] * 6
        assert sizes == [4 * 3 * 4, 3 * 4] * 3
        assert (recording / "windows" / "000000" / f"cpu_op_execute_timestamp_{rank}.txt").exists()
