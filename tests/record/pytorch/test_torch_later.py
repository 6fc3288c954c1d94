"""What comes into a job later, or from beside it, and what is left of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_recorder import attached, batches, make, train  # noqa: E402

from stepscope.record.options import Options  # noqa: E402


def test_another_optimizer_ends_steps_once_the_first_is_no_longer_used() -> None:
    model, first = make()
    later = torch.optim.Adam(model.parameters())
    with attached() as recorder:
        train(model, first, batches(3))
        train(model, later, batches(4))
    assert recorder.ended == [1, 2, 3, 4, 5, 6]


def test_two_optimizers_in_turn_are_one_step() -> None:
    model, first = make()
    second = torch.optim.Adam(model.parameters())
    with attached() as recorder:
        for _ in range(4):
            train(model, first, batches(1))
            train(model, second, batches(1))
    assert recorder.ended == [1, 2, 3, 4]


def test_a_model_that_comes_late_is_found() -> None:
    model, optimizer = make()
    late = torch.nn.Sequential(model.body, model.head)
    with attached() as recorder:
        train(model, optimizer, batches(4))
        train(late, optimizer, batches(4))
    assert [mark[1] for mark in recorder.of("forward")] == ["Net"] * 4 + ["Sequential"] * 3


def test_steps_without_a_module_are_not_watched_for_ever() -> None:
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    untouched = vars(torch.nn.Module)["__call__"]
    with attached():
        train(lambda x: x * weight, optimizer, batches(12))
        assert vars(torch.nn.Module)["__call__"] is untouched


def test_what_another_thread_infers_makes_no_root_of_inner_modules() -> None:
    served = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    begun, over = threading.Event(), threading.Event()

    class Slow(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            begun.set()
            assert over.wait(20)
            return served(x)

    with attached() as recorder:
        thread = threading.Thread(target=Slow(), args=(torch.ones(3, 4),))
        thread.start()
        assert begun.wait(20)
        train(*make(), batches(1))
        over.set()
        thread.join()
    assert sorted(mark[1] for mark in recorder.of("forward")) == ["Net", "Slow"]


def test_without_data_marks_epochs_are_still_told() -> None:
    model, optimizer = make()
    loader = torch.utils.data.DataLoader(batches(2))
    with attached(Options(data_process=False)) as recorder:
        for _ in range(2):
            train(model, optimizer, loader)
    assert not recorder.of("data")
    assert len(recorder.of("epoch")) == 2


def test_spawned_workers_of_a_loader_know_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "from torch_recorder import *\n"
        "recorder = Attached()\n"
        "print(recorder.backend.in_data_worker(), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    for _ in torch.utils.data.DataLoader([1, 2], num_workers=1, multiprocessing_context='spawn'): pass\n"
        "    print(recorder.backend.in_data_worker(), flush=True)\n"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [sys.executable, str(tmp_path / "job.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == ["False", "True", "False"], done.stderr


def test_a_job_whose_group_is_gone_is_not_taken_for_a_process_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with attached() as recorder:
        assert recorder.backend.surroundings().parallel == {"parallel_mode": "stand_alone"}
        monkeypatch.setenv("WORLD_SIZE", "8")
        assert recorder.backend.surroundings().parallel == {}
        monkeypatch.delenv("WORLD_SIZE")
        torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
        torch.distributed.destroy_process_group()
        assert recorder.backend.surroundings().parallel == {}
