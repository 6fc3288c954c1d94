"""Live workers in real trainings with PyTorch."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from live_rig import BOOTSTRAP, FakeProxy, Training, counts, ranges, train, until

from ports import free_port
from stepscope.live.messages import Pulse

pytest.importorskip("torch")
SCRIPT = Path(__file__).with_name("torch_training.py")
ALL = ["step", "fp", "dataloader", "checkpoint", "communication"]
STATES = [ALL, [], *([one] for one in ALL), [], ["step", "fp", "dataloader", "checkpoint"], ALL]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "records"


@pytest.fixture
def two(base: Path) -> list[Training]:
    """Two ranks of one job."""
    port = str(free_port())
    shared = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "MINDX_TASK_ID": "job"}
    shared["STEPSCOPE_LIVE_SWITCHES"] = "all"
    return [Training(SCRIPT, base, "explicit", RANK=str(rank), **shared) for rank in range(2)]


def test_ranges_on_disk_are_those_run_while_their_kind_was_on_and_digests_blame_the_late_rank(
    proxy: FakeProxy, base: Path, two: list[Training]
) -> None:
    workers = proxy.wait(2)
    expected: Counter[str] = Counter()

    for revision, state in enumerate(STATES, 1):
        answers = [worker.switch(revision, state) for worker in workers]
        assert train(two, "steps 3") == ["done", "done"]
        assert {(tuple(one.switches), one.error) for one in answers} == {(tuple(state), "")}
        for name in state:
            expected[name] += 3 * (2 if name == "communication" else 1)  # the reducer of DDP, and one of the script
    train(two, "steps 8 1")
    expected.update({name: 8 * (2 if name == "communication" else 1) for name in ALL})
    train(two, "group")
    until(lambda: all(len(worker.hello.groups) == 2 for worker in workers))
    assert [one.end() for one in two] == [0, 0]

    for rank in range(2):
        assert counts(ranges(base, rank)) == expected
        groups = json.loads((base / "job" / str(rank) / "parallel_group.json").read_text())
        assert groups["0"] == {"group_name": "default_group", "group_rank": rank, "global_ranks": [0, 1]}
        assert len(groups) == 2
    punctual, late = (worker.digests[-6:] for worker in workers)
    assert [one.step for one in punctual] == [one.step for one in late]
    for early, own in zip(punctual, late, strict=True):
        assert early.backward_ns is not None and early.backward_own_ns is not None and own.backward_own_ns is not None
        assert early.backward_ns - early.backward_own_ns > 30_000_000  # waits for gradients of the late rank
        assert own.backward_own_ns < 30_000_000
        (calls,) = early.calls
        assert (calls.operation, calls.group, calls.count, calls.launched) == ("all_reduce", "0", 2, False)
        assert early.units == 32
        assert None not in (early.checkpoint_ns, early.garbage_ns, early.data_ns, early.forward_ns)


def test_a_worker_outlives_its_proxy_and_a_killed_one_leaves_valid_records(
    proxy: FakeProxy, base: Path, tmp_path: Path
) -> None:
    training = Training(SCRIPT, base, "explicit")
    (worker,) = proxy.wait(1)
    worker.switch(5, ["step"])
    train([training], "steps 2")
    until(lambda: len(worker.digests) == 2)

    proxy.close()
    train([training], "steps 3")
    again = FakeProxy(tmp_path / "proxy.sock")
    (returned,) = again.wait(1)

    assert (returned.hello.revision, returned.hello.switches, returned.hello.job) == (5, ["step"], "default_task_id")
    until(lambda: [one.step for one in returned.digests] == [3, 4, 5])  # kept while there was no link
    assert train([training], "fork") == ["['MainThread'] 0"]  # neither a thread nor a link in the child
    train([training], "steps 2")
    until(lambda: counts(ranges(base))["step"] == 7)
    training.kill()
    assert counts(ranges(base))["step"] == 7
    until(lambda: returned.is_gone)
    again.close()


def test_from_the_environment_a_worker_waits_for_training_and_its_hooks_can_be_removed(
    proxy: FakeProxy, base: Path
) -> None:
    training = Training(SCRIPT, base, "environment", STEPSCOPE_LIVE="1", PYTHONPATH=str(BOOTSTRAP), RANK="3")
    time.sleep(0.1)
    assert train([training], "hooks") == ["True"]
    assert not base.exists() and not proxy.workers

    train([training], "steps 12")

    (worker,) = proxy.wait(1)
    assert (worker.hello.rank, worker.hello.framework, worker.hello.device) == (3, "torch", "cpu")
    pulse = until(lambda: worker.of(Pulse))[-1]
    assert (pulse.rank, pulse.problem, pulse.dropped) == (3, "", 0)
    assert train([training], "stop") == ["True"]
    assert train([training], "hooks") == ["True"]
    train([training], "steps 2")
    assert train([training], "stop") == ["False"]
    assert training.end() == 0
    assert counts(ranges(base, 3)) == {"step": 12, "fp": 12, "dataloader": 12, "checkpoint": 12}
