"""What a process writes down about itself, and dumps that NCCL's own thread makes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from stepscope.live.capture import dumping
from stepscope.live.capture.stacks import threads_in
from stepscope.live.messages import Dump

pytest.importorskip("torch")


def test_without_a_flight_recorder_there_are_stacks_and_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    monkeypatch.delenv("TORCH_NCCL_TRACE_BUFFER_SIZE", raising=False)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(dumping.dump(Dump("d"), 3, tmp_path)))
    asking.start()
    asking.join()

    (answer,) = answers
    assert (answer.rank, answer.error) == (3, "")
    assert "TORCH_FR_BUFFER_SIZE=2000" in answer.note
    (file,) = answer.files
    main = next(one for one in threads_in(Path(file).read_text()) if one.is_main)
    assert any(
        frame.function == test_without_a_flight_recorder_there_are_stacks_and_a_reason.__name__ for frame in main.frames
    )


def test_nccl_is_asked_through_its_pipe_where_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", f"{tmp_path}/pipe_")
    monkeypatch.setenv("TORCH_FR_DUMP_TEMP_FILE", f"{tmp_path}/trace_")
    monkeypatch.setattr(dumping, "_QUIET_NS", 50_000_000)
    pipe = tmp_path / "pipe_3.pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def nccl() -> None:
        while not os.read(reading, 1):
            pass
        (tmp_path / "trace_3").write_bytes(b"calls")

    os.set_blocking(reading, True)
    writing = os.open(pipe, os.O_WRONLY)  # keeps a blocking read from ending before the request
    thread = threading.Thread(target=nccl)
    thread.start()
    answer = dumping.dump(Dump("d", stacks=False), 3, tmp_path)
    thread.join()
    os.close(writing)
    os.close(reading)

    assert answer.note == ""
    assert Path(answer.files[0]).read_bytes() == b"calls"


def test_a_pipe_that_nobody_reads_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", f"{tmp_path}/pipe_")
    monkeypatch.delenv("TORCH_FR_BUFFER_SIZE", raising=False)
    os.mkfifo(tmp_path / "pipe_3.pipe")

    assert "are not kept" in dumping.dump(Dump("d", stacks=False), 3, tmp_path).note
