"""Steps and phases of PyTorch training loops, exactly as many as there were."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch_recorder import Net, attached, batches, make, train  # noqa: E402

DataLoader = torch.utils.data.DataLoader


def test_plain_loop() -> None:
    with attached() as recorder:
        train(*make(), batches(5))
    assert recorder.ended == [1, 2, 3, 4, 5]
    assert [mark[1] for mark in recorder.of("step")] == ["1", "2", "3", "4", "5"]
    for step in range(1, 6):
        assert recorder.kinds(step) == ["forward", "backward", "optimizer"]
    assert {mark[1] for mark in recorder.of("forward")} == {"Net"}
    assert {mark[1] for mark in recorder.of("optimizer")} == {"SGD"}


def test_marks_lie_within_their_steps_and_do_not_overlap() -> None:
    with attached() as recorder:
        train(*make(), DataLoader(batches(4), batch_size=None))
    spans = {mark[4]: mark[2:4] for mark in recorder.of("step")}
    last = 0
    for kind, _, start, end, step, *_ in recorder.marks:
        if kind in ("step", "epoch"):
            continue
        assert spans[step][0] <= start <= end <= spans[step][1]
        assert start >= last
        last = end


def test_attached_after_the_model_was_made_and_used() -> None:
    model, optimizer = make()
    train(model, optimizer, batches(2))
    with attached() as recorder:
        train(model, optimizer, batches(3))
    assert recorder.ended == [1, 2, 3]
    assert recorder.kinds(3) == ["forward", "backward", "optimizer"]


def test_gradient_accumulation_is_one_step() -> None:
    model, optimizer = make()
    with attached() as recorder:
        for _ in range(3):
            for x in batches(4):
                model(x).sum().backward()
            optimizer.step()
    assert recorder.ended == [1, 2, 3]
    for step in range(1, 4):
        assert recorder.kinds(step) == ["forward", "backward"] * 4 + ["optimizer"]


def test_with_two_optimizers_the_first_ends_the_step() -> None:
    models = [Net(), Net()]
    optimizers = [torch.optim.SGD(models[0].parameters(), lr=0.1), torch.optim.Adam(models[1].parameters())]
    with attached() as recorder:
        for x in batches(4):
            for model, optimizer in zip(models, optimizers, strict=True):
                train(model, optimizer, [x])
    assert recorder.ended == [1, 2, 3, 4]
    assert [mark[1] for mark in recorder.of("optimizer")] == ["SGD", "Adam"] * 4


def test_a_new_optimizer_takes_over_where_the_first_is_gone() -> None:
    with attached() as recorder:
        train(*make(), batches(2))
        train(*make(), batches(2))
    assert recorder.ended == [1, 2, 3, 4]


def test_optimizers_within_the_backward_pass_end_one_step_where_it_is_over() -> None:
    model = Net()
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda p: optimizers[p].step())
    with attached() as recorder:
        for x in batches(3):
            model(x).sum().backward()
    assert recorder.ended == [1, 2, 3]
    ends = [mark[3] for mark in recorder.of("backward")]
    assert all(step[3] >= end for step, end in zip(recorder.of("step"), ends, strict=True))


def test_the_users_steps_replace_those_of_the_optimizer() -> None:
    model, optimizer = make()
    with attached() as recorder:
        for _ in range(4):
            train(model, optimizer, batches(1))
            recorder.steps.user_step()
    assert [mark[1] for mark in recorder.of("step")] == ["1", "2", "3", "4"]


def test_steps_are_counted_but_not_kept_while_nothing_is_recorded() -> None:
    model, optimizer = make()
    with attached(active=False) as recorder:
        train(model, optimizer, batches(3))
        recorder.steps.begin()
        train(model, optimizer, batches(1))
    assert recorder.ended == [1, 2, 3, 4]
    assert recorder.kinds(4) == ["forward", "backward", "optimizer"]
    assert {mark[4] for mark in recorder.marks} == {4}


def test_loader_without_workers() -> None:
    with attached() as recorder:
        train(*make(), DataLoader(torch.ones(12, 4), batch_size=3))
    assert recorder.kinds(2) == ["data", "forward", "backward", "optimizer"]
    assert {mark[1] for mark in recorder.of("data")} == {"_SingleProcessDataLoaderIter"}
    assert [(b[1], b[2], b[3], *b[5:]) for b in recorder.batches] == [
        ("Tensor", n, n + 1, None, None, 0) for n in range(4)
    ]


def test_loader_with_forked_workers() -> None:
    loader = DataLoader(
        torch.ones(24, 4), batch_size=3, num_workers=2, prefetch_factor=3, multiprocessing_context="fork"
    )
    model, optimizer = make()
    with attached() as recorder:
        pids = []
        for x in loader:
            train(model, optimizer, [x])
            pids.append(recorder.backend.worker_pids())
    assert len(recorder.of("data")) == len(recorder.of("step")) == 8
    assert sorted(pids[0].values()) == ["Tensor worker 0", "Tensor worker 1"]
    assert all(b[6] == 6 and b[7] == 2 and 0 <= b[5] <= 6 for b in recorder.batches)


def test_checkpoints_say_where(tmp_path) -> None:
    with attached() as recorder:
        torch.save({"a": 1}, tmp_path / "model.pt")
        with (tmp_path / "other.pt").open("wb") as file:
            torch.save({"a": 1}, file)
    assert [(mark[1], mark[6]) for mark in recorder.of("checkpoint")] == [
        ("torch.save", str(tmp_path / "model.pt")),
        ("torch.save", str(tmp_path / "other.pt")),
    ]
