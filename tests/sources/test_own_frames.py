"""The recorder's own functions do not stand among the user's."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from recordings import MS, Raw, op
from stepscope.run import open_run
from stepscope.sources.stacks import OWN_FRAME, OWN_THREAD, without_own_frames

HOOK = "stepscope/record/torch/hook.py(59): wrapper"


def event(category: str, name: str, start: int, length: int, thread: int = 1, **arguments: object) -> dict[str, object]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread, "ts": start, "dur": length,
            "args": arguments}  # fmt: skip


def test_what_a_hook_calls_is_called_by_what_calls_the_hook(tmp_path: Path) -> None:
    stack = f"train.py(5): main;/opt/{HOOK};optim.py(9): step"
    events = [
        event("python_function", "train.py(5): main", 0, 100),
        event("python_function", HOOK, 10, 80),
        event("python_function", "optim.py(9): step", 20, 60),
        event("cpu_op", "aten::add_", 30, 10, **{"Call stack": stack}),
        event("python_function", "threading.py(1002): _bootstrap", 0, 100, thread=2),
        event("python_function", "stepscope/record/session.py(203): _run", 0, 100, thread=2),
        event("python_function", "psutil/_pslinux.py(606): cpu_stats", 5, 5, thread=2),
    ]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))

    run = open_run(file)

    python = run.table("slices").filter(pl.col("category") == "python").collect()
    main, step = python.sort("start_ns").to_dicts()
    assert (main["name"], step["name"]) == ("train.py(5): main", "optim.py(9): step")
    assert step["parent"] == main["slice"]
    assert main["self_ns"] == 40_000
    assert run.table("stacks").collect()["text"].to_list() == ["train.py(5): main\noptim.py(9): step"]


def test_only_the_recorder_of_stepscope_is_hidden() -> None:
    names = pl.Series(
        [HOOK, "/a/stepscope/record/hooks.py(70): hooked", "record/hook.py(1): f", "stepscope/cli.py(2): g"]
    )

    assert names.str.contains(OWN_FRAME).to_list() == [True, True, False, False]
    assert not names.str.contains(OWN_THREAD).any()


def test_a_stack_of_own_frames_alone_is_empty() -> None:
    stacks = pl.Series([HOOK, f"{HOOK};a.py(1): f", f"a.py(1): f\n{HOOK}", None, ""])

    assert without_own_frames(stacks).to_list() == ["", "a.py(1): f", "a.py(1): f", None, ""]


def test_threads_that_a_recording_lists_as_its_own_are_hidden_where_no_function_tells_them(tmp_path: Path) -> None:
    """A window that begins while the thread waits shows what it calls, and not in which function it runs."""
    raw = Raw(tmp_path, about={"own_threads": [78, None, "x"]}).steps((1, 0, MS))
    events = [
        op("aten::mm", 0, 10),
        *(op("<built-in function sleep>", 20, 500, "python_function", thread) for thread in (77, 78)),
    ]
    raw.kineto(0, 0, MS, events)

    slices = open_run(tmp_path, use_store=False).table("slices").filter(pl.col("category") == "python").collect()

    assert slices["thread"].to_list() == ["77"]
