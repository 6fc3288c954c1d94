"""Hooks leave no trace where they are not wanted: in models, in other people's hooks, after `detach`."""

from __future__ import annotations

import copy
import logging
import os
import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_recorder import Attached, Net, attached, batches, make, train  # noqa: E402

import stepscope  # noqa: E402

dist = torch.distributed
autograd_profiler = torch.autograd.profiler
optimizer_module = pytest.importorskip("torch.optim.optimizer")
_BaseDataLoaderIter = torch.utils.data.dataloader._BaseDataLoaderIter


def hooked_places() -> dict[str, Any]:
    """Everything that hooks replace, as it is now."""
    return {
        "call": vars(torch.nn.Module)["__call__"],
        "root": vars(Net).get("__call__"),
        "backward": torch.autograd.backward,
        "next": vars(_BaseDataLoaderIter)["__next__"],
        "save": torch.save,
        "all_reduce": (dist.all_reduce, dist.distributed_c10d.all_reduce),
        "init": dist.init_process_group,
        "profiler": (autograd_profiler._prepare_profiler, autograd_profiler._disable_profiler),
        "scope": (
            vars(autograd_profiler.record_function)["__enter__"],
            vars(autograd_profiler.record_function)["__exit__"],
        ),
        "optimizers": (
            list(optimizer_module._global_optimizer_pre_hooks),
            list(optimizer_module._global_optimizer_post_hooks),
        ),
    }


def test_detach_restores_everything() -> None:
    before = hooked_places()
    with attached():
        assert hooked_places()["save"] is not before["save"]
        train(*make(), batches(3))
        assert vars(Net)["__call__"] is not None
        assert vars(torch.nn.Module)["__call__"] is before["call"]  # watched during the first steps only
    assert hooked_places() == before


def test_copies_of_functions_are_wrapped_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    script, late = ModuleType("a_script"), ModuleType("a_late_script")
    script.keep, original = torch.save, torch.save
    monkeypatch.setitem(sys.modules, "a_script", script)
    with attached() as recorder:
        script.keep({}, os.devnull)
        late.save = torch.save
        monkeypatch.setitem(sys.modules, "a_late_script", late)
    assert script.keep is late.save is torch.save is original
    assert len(recorder.of("checkpoint")) == 1


def test_what_somebody_put_on_top_stays_and_ours_is_passed_through(monkeypatch: pytest.MonkeyPatch) -> None:
    original = torch.autograd.backward
    calls = []
    with attached() as recorder:
        ours = torch.autograd.backward

        def theirs(*args: Any, **kwargs: Any) -> Any:
            calls.append(1)
            return ours(*args, **kwargs)

        torch.autograd.backward = theirs
    try:
        assert torch.autograd.backward is theirs
        recorder.steps.begin()
        train(*make(), batches(1))
        assert calls == [1]
        assert not recorder.of("backward")
    finally:
        torch.autograd.backward = original


def test_models_are_saved_and_copied_as_without() -> None:
    torch.manual_seed(0)
    model, optimizer = make()
    train(model, optimizer, batches(1))
    before = pickle.dumps(model)
    with attached():
        assert pickle.dumps(model) == before
        train(model, optimizer, batches(3))
        twin = copy.deepcopy(model)
        assert twin.__dict__.keys() == Net().__dict__.keys()
        assert pickle.loads(pickle.dumps(model)).state_dict().keys() == model.state_dict().keys()


def test_results_are_those_without_hooks() -> None:
    def weights(recorded: bool) -> list[Any]:
        torch.manual_seed(0)
        model, optimizer = make()
        if recorded:
            with attached():
                train(model, optimizer, batches(4))
        else:
            train(model, optimizer, batches(4))
        return [p.detach() for p in model.parameters()]

    assert all(torch.equal(a, b) for a, b in zip(weights(True), weights(False), strict=True))


@pytest.mark.filterwarnings("ignore")
def test_compiled_models_are_compiled_once() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model = Net()
    compiled = torch.compile(lambda x: model(x) * 2, backend=backend, fullgraph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attached() as recorder:
        train(compiled, optimizer, batches(4))
    train(compiled, optimizer, batches(1))
    assert len(graphs) == 1
    assert recorder.ended == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore")
def test_compiled_modules_are_marked_outside() -> None:
    torch._dynamo.reset()
    model = torch.compile(Net(), backend="eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with attached() as recorder:
        train(model, optimizer, batches(4))
    assert [mark[1] for mark in recorder.of("forward")] == ["OptimizedModule"] * 4


def test_a_hook_that_fails_goes_quiet_and_training_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with attached() as recorder, caplog.at_level(logging.WARNING, "stepscope"):
        mark = recorder.steps.mark

        def failing(kind: str, *rest: Any) -> None:
            if kind == "backward":
                raise ValueError("broken")
            mark(kind, *rest)

        monkeypatch.setattr(recorder.steps, "mark", failing)
        train(*make(), batches(4))
    assert recorder.ended == [1, 2, 3, 4]
    assert len(recorder.of("forward")) == 4
    assert [r.message for r in caplog.records] == [
        "Profiler: backward passes are no longer recorded (ValueError: broken)"
    ]


def test_an_exception_of_the_model_passes_and_leaves_no_mark() -> None:
    with attached() as recorder:
        with pytest.raises(RuntimeError):
            Net()(torch.ones(3, 5))
        train(*make(), batches(1))
    assert len(recorder.of("forward")) == 1


def test_scripted_functions_with_ranges_still_compile() -> None:
    def ranged(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.profiler.record_function("range"):
            return x + 1

    with attached(), pytest.warns(DeprecationWarning) if torch.__version__ >= "2.10" else _nothing():
        assert torch.jit.script(ranged)(torch.ones(1)).item() == 2


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.parametrize("last_first", [True, False])
def test_many_leave_nothing_in_whatever_order_they_go(last_first: bool) -> None:
    """A new Profiler is often made before the old one is gone."""
    before = hooked_places()
    recorders = [Attached() for _ in range(2)]
    for _ in range(3):
        recorders[0].backend.detach()
        recorders = [recorders[1], Attached()]
        for recorder in recorders:
            recorder.steps.begin()
        train(*make(), batches(3))
    assert [len(recorders[1].of(kind)) for kind in ("forward", "backward", "optimizer")] == [3, 3, 3]
    for recorder in reversed(recorders) if last_first else recorders:
        recorder.backend.detach()
    assert hooked_places() == before


def depth(function: Any) -> int:
    return 1 + depth(function.__wrapped__) if hasattr(function, "__wrapped__") else 0


def layers() -> list[int]:
    """How many of our wrappers lie on one another: around a forward pass, each function, and an optimizer."""
    depths = []

    class Deep(Net):
        def forward(self, x: Any) -> Any:
            files = [Path(frame.filename) for frame in traceback.extract_stack()]
            depths.append(sum(file.parts[-3:-1] == ("record", "torch") for file in files))
            return super().forward(x)

    Deep()(torch.ones(3, 4))
    places = hooked_places()
    wrapped = (places["backward"], places["next"], places["save"], places["init"], *places["profiler"])
    depths += [depth(function) for function in wrapped]
    return [*depths, len(places["optimizers"][0])]


@pytest.mark.parametrize("keep", ["none", "all", "two"])
def test_hooks_of_many_profilers_do_not_pile_up(keep: str, tmp_path: Path) -> None:
    before, base, kept = hooked_places(), layers(), []
    for i in range(12):
        profiler = stepscope.Profiler(output_path=str(tmp_path), framework="torch", op_time=i % 4 == 0)
        assert max(deep - least for deep, least in zip(layers(), base, strict=True)) == 1
        profiler.stop()
        kept = {"none": [], "all": [*kept, profiler], "two": [*kept[-1:], profiler]}[keep]
    kept.reverse()
    while kept:
        del kept[len(kept) // 2]
    del profiler
    assert hooked_places() == before


def test_a_profiler_that_made_way_for_another_records_again(tmp_path: Path) -> None:
    profilers = [stepscope.Profiler(output_path=str(tmp_path / "first"), framework="torch")]
    train(*make(), batches(2))
    profilers[0].stop()
    profilers.append(stepscope.Profiler(output_path=str(tmp_path / "second"), framework="torch"))
    train(*make(), batches(3))
    profilers[1].stop()
    profilers[0].start()
    train(*make(), batches(3))
    profilers[0].stop()
    for profiler, steps in zip(profilers, (5, 3), strict=True):
        assert profiler.directory is not None
        windows = (profiler.directory / "windows.csv").read_text().splitlines()[1:]
        assert [line.split(",")[6] for line in windows] == ["complete"] * (1 if steps == 3 else 2)
        kinds = [line.split(",")[0] for line in (profiler.directory / "marks.csv").read_text().splitlines()]
        assert [kinds.count(kind) for kind in ("step", "forward", "backward")] == [steps] * 3
