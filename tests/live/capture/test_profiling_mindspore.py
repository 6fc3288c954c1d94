"""Profiles of whole steps of MindSpore, in a process of its own: it does not share one with torch."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from stepscope.live.messages import Captured, Checked, from_worker

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mindspore") is None, reason="needs mindspore")

SCRIPT = """
import sys, time
from pathlib import Path
import numpy, mindspore
from mindspore import nn
from stepscope.live.capture import in_worker
from stepscope.live.messages import Capture, Check, line_of
from stepscope.live.worker.tracker import LiveTracker
from stepscope.record.mindspore.backend import MindSporeBackend
from stepscope.record.options import Options
mindspore.set_context(mode=mindspore.PYNATIVE_MODE, device_target="CPU")
tracker, backend = LiveTracker(lambda: None), MindSporeBackend()
backend.attach(tracker, Options(op_time=False, data_process=False))
net = nn.Dense(8, 8)
optimizer = nn.SGD(net.trainable_params(), 0.01)
gradient = mindspore.value_and_grad(lambda x: net(x).sum(), None, optimizer.parameters)
x, answers = mindspore.Tensor(numpy.ones((2, 8), numpy.float32)), []
def step():
    optimizer(gradient(x)[1])
step()
for request in (Capture("c", 2), Check("k", ["gemm"], 10**6)):
    in_worker.begin(request, tracker, answers.append, backend=backend, directory=Path(sys.argv[1]))
    end = time.monotonic() + 30
    while not answers and time.monotonic() < end:
        step()
    sys.stdout.buffer.write(line_of(answers.pop()))
"""


def test_operators_are_recorded_and_checks_are_refused_with_a_reason(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=False, capture_output=True, timeout=120)
    captured, checked = (from_worker(line) for line in done.stdout.splitlines() if line.startswith(b'{"type"'))

    assert isinstance(captured, Captured) and isinstance(checked, Checked)
    assert captured.error == ""
    assert captured.steps[1] - captured.steps[0] == 1
    assert any("cpu_op_execute_timestamp" in file for file in captured.files)
    assert checked.error == "active checks are only made in PyTorch"
    assert msgspec.json.decode(done.stdout.splitlines()[-1])["type"] == "checked"
