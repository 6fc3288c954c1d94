"""Python stacks from outside, and where ranks are."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stepscope.live.capture import stacks
from stepscope.live.capture.stacks import (
    Frame,
    NoStacks,
    Thread,
    elsewhere,
    lines_of_tree,
    merged,
    sentence,
    take_stacks,
    threads_in,
)

TORCH = "/venv/lib/python3.11/site-packages/torch"


def waiting(line: int = 88) -> list[Thread]:
    frames = [
        Frame("_wait", f"{TORCH}/work.py", 3),
        Frame("all_reduce", f"{TORCH}/distributed/distributed_c10d.py", 2806),
        Frame("wrapper", f"{TORCH}/distributed/c10d_logger.py", 81),
        Frame("hooked", "/x/stepscope/record/hooks.py", 80),
        Frame("train", "/home/me/train.py", line),
        Frame("<module>", "/home/me/train.py", 120),
    ]
    return [Thread("helper", [Frame("run", "/x/a.py", 1)]), Thread("MainThread", frames, is_main=True)]


def loading() -> list[Thread]:
    return [Thread("", [Frame("load_batch", "/home/me/data.py", 40), Frame("<module>", "/home/me/train.py", 99)])]


def test_ranks_in_one_call_are_named_together_and_the_odd_one_last() -> None:
    places = merged({rank: loading() if rank == 7 else waiting() for rank in range(8)})

    assert sentence(places) == "ranks 0-6 in all_reduce at train.py:88; rank 7 in load_batch at data.py:40"


def test_ranks_that_are_not_where_all_others_wait_are_known() -> None:
    library = "/venv/lib/python3.11/site-packages/torch"
    reduces = [Frame("all_reduce", f"{library}/distributed/distributed_c10d.py", 9), Frame("main", "/train.py", 5)]
    backward = [Frame("_engine_run_backward", f"{library}/autograd/graph.py", 9), Frame("main", "/train.py", 4)]
    loads = [Frame("load", "/data.py", 3), Frame("main", "/train.py", 2)]

    def odd(*stacks: list[Frame]) -> list[int]:
        return elsewhere(merged({rank: [Thread("", frames, is_main=True)] for rank, frames in enumerate(stacks)}))

    assert odd(reduces, loads, reduces) == [1]
    assert odd(backward, loads) == [1]
    assert odd(reduces, reduces) == odd(loads, loads) == []
    assert odd(reduces, backward, loads) == []
    assert odd(reduces, loads, loads) == []


def test_many_places_are_abridged() -> None:
    places = merged({rank: waiting(line=rank) for rank in range(20)})

    assert len(places) == 20
    assert "16 more places" not in sentence(places)
    assert "14 more ranks in 14 other places" in sentence(places)


def test_the_tree_splits_where_ranks_part() -> None:
    lines = list(lines_of_tree({0: waiting(), 1: loading()}))

    assert lines[0] == "<module> (train.py:120)  [0]"
    assert "<module> (train.py:99)  [1]" in lines
    assert not any("hooks.py" in line for line in lines)


@pytest.mark.parametrize("text", ["", "[", "{}", "nonsense", '[{"frames": 3}]', "null"])
def test_what_is_no_stack_is_refused(text: str) -> None:
    with pytest.raises(NoStacks):
        threads_in(text)


def test_a_process_is_read_from_outside(tmp_path: Path) -> None:
    script = tmp_path / "data.py"
    script.write_text("import time\ndef load_batch():\n    time.sleep(60)\nload_batch()\n")
    with subprocess.Popen([sys.executable, str(script)]) as process:
        try:
            time.sleep(1.0)
            text = asyncio.run(take_stacks(process.pid))
        except NoStacks as error:
            pytest.skip(str(error))
        finally:
            process.kill()

    assert sentence(merged({3: threads_in(text)})) == "rank 3 in load_batch at data.py:3"


def test_reasons_are_those_that_a_user_can_act_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "py-spy"
    monkeypatch.setattr(stacks, "_tool", lambda: str(fake))
    for printed, expected in (
        ("Error: Permission denied (os error 13)", "may not read process 5.*SYS_PTRACE"),
        ("Error: No such file or directory", "process 5 has ended"),
        ("Error: strange", "cannot read process 5: strange"),
    ):
        fake.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 1\n")
        fake.chmod(0o700)
        with pytest.raises(NoStacks, match=expected):
            asyncio.run(take_stacks(5))
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(stacks, "PATIENCE_S", 0.2)
    with pytest.raises(NoStacks, match="took more than"):
        asyncio.run(take_stacks(5))
    monkeypatch.undo()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(NoStacks, match="pip install py-spy"):
        asyncio.run(take_stacks(5))


def test_deep_stacks_and_many_threads_are_bounded() -> None:
    frame = {"name": "f", "filename": "/a.py", "line": 1}
    dumped = [{"pid": 1, "os_thread_id": number, "thread_name": None, "frames": [frame] * 500} for number in range(500)]

    threads = threads_in(json.dumps(dumped))

    assert len(threads) == stacks.MOST_THREADS
    assert len(threads[0].frames) == stacks.MOST_FRAMES
    assert [thread.is_main for thread in threads[:2]] == [False, True]
