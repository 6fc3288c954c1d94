"""Epochs of plain training loops."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from recorded import rows  # noqa: E402

import stepscope  # noqa: E402

DataLoader, TensorDataset = torch.utils.data.DataLoader, torch.utils.data.TensorDataset


def recorded(profiler: stepscope.Profiler, kind: str) -> list[str]:
    assert profiler.directory is not None
    return [row["name"] for row in rows(profiler.directory, kind=kind)]


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_are_passes_over_what_is_trained_on(tmp_path: Path, workers: int) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    training = DataLoader(
        TensorDataset(torch.randn(12, 4)), batch_size=4, num_workers=workers, persistent_workers=workers > 0
    )
    validation = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
    profiler = stepscope.Profiler(output_path=str(tmp_path), op_time=False, epochs=(2, 3), framework="torch")
    for _ in range(4):
        for (batch,) in validation:
            model(batch)
        for (batch,) in training:
            optimizer.zero_grad()
            model(batch).sum().backward()
            optimizer.step()
    profiler.stop()
    assert recorded(profiler, "step") == ["4", "5", "6", "7", "8", "9"]
    assert recorded(profiler, "epoch") == ["2", "3"]


def test_an_epoch_that_is_left_early_ends_where_the_next_begins(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = DataLoader(TensorDataset(torch.randn(12, 4)), batch_size=4)
    profiler = stepscope.Profiler(output_path=str(tmp_path), op_time=False, epochs=(1, 1), framework="torch")
    for _ in range(3):
        for (batch,) in loader:
            model(batch).sum().backward()
            optimizer.step()
            break
    profiler.stop()
    assert recorded(profiler, "step") == ["1"]
