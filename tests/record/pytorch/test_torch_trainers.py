"""Callbacks of trainers: the same with the real ones, where they are installed, and with stand-ins."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from recorded import rows  # noqa: E402

import stepscope  # noqa: E402
from stepscope.record import analysing  # noqa: E402
from stepscope.record.callbacks import lightning, transformers  # noqa: E402

DataLoader = torch.utils.data.DataLoader


@pytest.fixture(autouse=True)
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The directories that were analysed; the analysis itself is not under test here."""
    done: list[Any] = []
    monkeypatch.setattr(analysing, "analyse", lambda limit, directories, *rest: done.extend(directories))
    return done


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a stand-in for a framework's module, with a class, where it would be imported from."""

    def put(name: str, base: str) -> type:
        for length in range(1, name.count(".") + 2):
            part = ".".join(name.split(".")[:length])
            monkeypatch.setitem(sys.modules, part, ModuleType(part))
        made = type(base, (), {})
        setattr(sys.modules[name], base, made)
        lightning._callback_class.cache_clear()
        transformers._callback_class.cache_clear()
        return made

    yield put
    lightning._callback_class.cache_clear()
    transformers._callback_class.cache_clear()


def counted(callback: Any) -> Counter[str]:
    return Counter(row["kind"] for row in rows(callback.profiler.directory))


def update(model: Any, optimizer: Any, batches: int) -> None:
    for _ in range(batches):
        model(torch.ones(2, 4)).sum().backward()
    optimizer.step()


def parts() -> tuple[Any, Any]:
    model = torch.nn.Linear(4, 2)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def test_lightning_counts_updates_and_not_batches(framework: Any, tmp_path: Path, analysed: list[Any]) -> None:
    base = framework("lightning.pytorch.callbacks", "Callback")
    callback = stepscope.LightningCallback(output_path=str(tmp_path), op_time=False)
    assert isinstance(callback, base)
    trainer = SimpleNamespace(global_step=0, current_epoch=0)
    model, optimizer = parts()
    callback.on_train_start(trainer, model)
    callback.on_train_epoch_start(trainer, model)
    for _ in range(3):
        callback.on_train_batch_end(trainer, model, None, None, 0)
        update(model, optimizer, 2)
        trainer.global_step += 1
        callback.on_train_batch_end(trainer, model, None, None, 1)
    callback.on_train_epoch_end(trainer, model)
    callback.on_train_end(trainer, model)
    callback.teardown(trainer, model, "fit")
    assert counted(callback) == {"forward": 6, "backward": 6, "optimizer": 3, "step": 3, "epoch": 1}
    assert analysed == [callback.profiler.directory]


def test_lightning_ends_with_an_exception(framework: Any, tmp_path: Path, analysed: list[Any]) -> None:
    framework("lightning.pytorch.callbacks", "Callback")
    callback = stepscope.LightningCallback(output_path=str(tmp_path), op_time=False)
    trainer = SimpleNamespace(global_step=0, current_epoch=0)
    callback.on_train_start(trainer, None)
    callback.on_exception(trainer, None, ValueError())
    assert analysed == [callback.profiler.directory]
    callback.on_train_start(trainer, None)  # and again
    callback.on_train_end(trainer, None)
    assert len(analysed) == 2


def test_transformers(framework: Any, tmp_path: Path, analysed: list[Any]) -> None:
    base = framework("transformers.trainer_callback", "TrainerCallback")
    callback = stepscope.TransformersCallback(output_path=str(tmp_path), op_time=False, epochs=(2, 2))
    assert isinstance(callback, base)
    model, optimizer = parts()
    state = SimpleNamespace(epoch=None)
    callback.on_train_begin(None, state, None)
    for epoch in range(3):
        state.epoch = float(epoch)
        callback.on_epoch_begin(None, state, None)
        for _ in range(2):
            update(model, optimizer, 1)
            callback.on_step_end(None, state, None)
        state.epoch = epoch + 1.0
        callback.on_epoch_end(None, state, None)
    callback.on_train_end(None, state, None)
    assert counted(callback)["step"] == 2
    assert analysed == [callback.profiler.directory]


def test_callbacks_can_be_copied_and_sent(framework: Any, tmp_path: Path) -> None:
    framework("transformers.trainer_callback", "TrainerCallback")
    callback = stepscope.TransformersCallback(output_path=str(tmp_path), op_time=False)
    callback.on_train_begin(None, SimpleNamespace(epoch=None), None)
    assert copy.deepcopy(callback).profiler is None
    assert pickle.loads(pickle.dumps(callback)).profiler is None
    callback.on_train_end(None, None, None)


@pytest.mark.parametrize("methods", [lightning._Methods, transformers._Methods])
def test_a_callback_leaves_its_users_their_names(methods: type) -> None:
    """Users derive callbacks of their own, with names such as `_steps` or `_end`."""
    own = {name for one in methods.__mro__[:-1] for name in vars(one)} | set(vars(methods()))
    allowed = {"_recording", "_epoch", "_latest_ns", "_updates", "_validates_from_ns"}

    assert {name for name in own if name.startswith("_") and not name.endswith("_")} <= allowed


def test_without_the_framework_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lightning", "lightning.pytorch", "pytorch_lightning", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    lightning._callback_class.cache_clear()
    transformers._callback_class.cache_clear()
    with pytest.raises(ModuleNotFoundError, match="pip install lightning"):
        _ = stepscope.LightningCallback
    with pytest.raises(ModuleNotFoundError, match="pip install transformers"):
        _ = stepscope.TransformersCallback


@pytest.mark.filterwarnings("ignore")
def test_lightnings_own_trainer(tmp_path: Path) -> None:
    pl = pytest.importorskip("lightning.pytorch")

    class Model(pl.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def training_step(self, batch: Any, index: int) -> Any:
            return self.layer(batch).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    callback = stepscope.LightningCallback(output_path=str(tmp_path / "out"), op_time=False)
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=[callback], accumulate_grad_batches=2, logger=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(Model(), DataLoader(torch.ones(32, 8), batch_size=4))
    assert counted(callback)["step"] == trainer.global_step == 8


@pytest.mark.filterwarnings("ignore")
def test_transformers_own_trainer(tmp_path: Path) -> None:
    hub = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 2)

        def forward(self, x: Any, labels: Any = None) -> Any:
            return {"loss": self.layer(x).sum(), "logits": self.layer(x)}

    samples = [{"x": torch.ones(8), "labels": torch.tensor(1)} for _ in range(32)]
    callback = stepscope.TransformersCallback(output_path=str(tmp_path / "out"), op_time=False)
    arguments = hub.TrainingArguments(
        output_dir=str(tmp_path / "hub"), num_train_epochs=2, per_device_train_batch_size=4, report_to=[],
        gradient_accumulation_steps=2, use_cpu=True, disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    trainer = hub.Trainer(model=Model(), args=arguments, train_dataset=samples, callbacks=[callback])
    trainer.train()
    assert counted(callback)["step"] == trainer.state.global_step == 8
