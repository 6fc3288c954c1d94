"""A live worker in a real training with MindSpore."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest
from live_rig import FakeProxy, Training, counts, ranges, train

if importlib.util.find_spec("mindspore") is None:  # not imported: that changes how other tests of the process behave
    pytest.skip("needs mindspore", allow_module_level=True)
ALL = ["step", "fp", "dataloader", "checkpoint"]
STATES = [ALL, [], *([one] for one in ALL), ALL]


def test_ranges_on_disk_are_those_run_while_their_kind_was_on(proxy: FakeProxy, tmp_path: Path) -> None:
    base = tmp_path / "records"
    training = Training(Path(__file__).with_name("mindspore_training.py"), base, str(tmp_path))
    (worker,) = proxy.wait(1)
    expected: Counter[str] = Counter()

    for revision, state in enumerate(STATES, 1):
        worker.switch(revision, state)
        train([training], "3")
        expected.update(dict.fromkeys(state, 3))
    assert training.end() == 0

    assert (worker.hello.rank, worker.hello.framework) == (2, "mindspore")
    assert counts(ranges(base, 2)) == expected
    last = worker.digests[-1]
    assert (last.step, last.units) == (3 * len(STATES), 32)
    assert None not in (last.forward_ns, last.backward_ns, last.optimizer_ns, last.data_ns, last.checkpoint_ns)
    assert last.communication_ns is None
