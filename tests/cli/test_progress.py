"""How far reading has come, also within one large input; and Ctrl-C, which ends any command with one line."""

from __future__ import annotations

import functools
import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stepscope import open_run
from stepscope.cli import main
from stepscope.cli.progress import ProgressBar
from stepscope.ingest import read
from stepscope.ingest.worker import ReadOrder, Stored, _work
from stepscope.processes import receive, send
from stepscope.sources.discover import discover
from stepscope.sources.kineto import KinetoSource
from stepscope.sources.kineto import reading as kineto
from stepscope.store import Store

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace of many chunks, of each of which is told."""
    monkeypatch.setattr(read, "INTERVAL_S", 0)
    monkeypatch.setattr(kineto, "TraceEvents", functools.partial(kineto.TraceEvents, chunk_bytes=100_000))
    path = tmp_path / "traces" / "rank-0.json"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(next(EXAMPLE.glob("rank-0*")).read_bytes()))
    return path


@pytest.mark.parametrize("use_store", [True, False])
def test_one_input_tells_how_far_it_is_read(trace: Path, use_store: bool) -> None:
    size, told = trace.stat().st_size, list[tuple[int, int, str]]()

    open_run(trace, use_store=use_store, progress=lambda *now: told.append(now))

    done = [now[0] for now in told]
    assert done == sorted(done)
    assert len({*done}) > 10
    assert (done[0], done[-1]) == (0, size)
    assert {now[1:] for now in told[1:]} == {(size, trace.name)}


def test_a_worker_tells_how_far_it_is(trace: Path, tmp_path: Path) -> None:
    (item,) = discover([trace]).inputs
    order = ReadOrder(
        item=item,
        source_version=KinetoSource.version,
        input_bytes=trace.stat().st_size,
        store=Store(tmp_path / "store").directory,
        key="a" * 32,
        workers=1,
    )
    payload, told = io.BytesIO(), list[int]()
    send(payload, order)
    payload.seek(0)

    answer = _work(receive(payload), told.append)

    assert isinstance(answer, Stored)
    assert sum(told) == trace.stat().st_size


class Screen(io.StringIO):
    """A terminal, as far as a bar cares."""

    def isatty(self) -> bool:
        return True


def test_a_bar_appears_although_an_input_says_nothing_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.cli.progress.PATIENCE_S", 0.05)
    monkeypatch.setattr(sys, "stderr", Screen())

    with ProgressBar() as bar:
        assert bar.watch is not None
        bar.watch(0, 1000, "large.json")
        time.sleep(0.5)
        bar.watch(400, 1000, "large.json")

    assert "reading large.json" in sys.stderr.getvalue()  # type: ignore[attr-defined]


def test_the_bar_fits_a_line_of_80_and_shortens_only_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with ProgressBar() as bar:
        bar._last = (123_400_000, 1_000_000_000, "a_name_longer_than_what_is_left_of_a_line.json.gz")
        bar._start()

    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]", screen.getvalue())]
    (line,) = {line for line in lines if "reading" in line}
    assert len(line) <= 80
    assert "a_name" in line and "…" in line and "0.1/1.0 GB" in line


def test_nobody_is_told_unless_there_is_a_terminal() -> None:
    with ProgressBar() as bar:
        assert bar.watch is None


PLACES = [
    ("stepscope.sources.kineto.source.KinetoSource.read", ["steps", str(EXAMPLE)]),
    ("stepscope.sources.trace_events.decode.EventDecoder.decode", ["info", str(EXAMPLE)]),
    ("stepscope.ingest.pool._Worker.receive", ["analyze", str(EXAMPLE)]),
    ("stepscope.store.cache.Store.find", ["ops", str(EXAMPLE)]),
    ("stepscope.run.run.Run.analyse", ["analyze", str(EXAMPLE)]),
    ("polars.SQLContext.execute", ["sql", str(EXAMPLE), "SELECT rank FROM ranks"]),
    ("stepscope.cli.output.print_frame", ["sql", str(EXAMPLE), "SELECT rank FROM ranks"]),
    ("stepscope.cli.app.program_for", ["rules"]),
]


@pytest.mark.parametrize(("place", "words"), PLACES, ids=[place for place, _ in PLACES])
def test_ctrl_c_ends_any_command_with_one_line(capfd, monkeypatch, place: str, words: list[str]) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(place, interrupted)
    if "pool" in place:
        monkeypatch.setenv("STEPSCOPE_WORKERS", "2")
        monkeypatch.setattr("stepscope.ingest.inputs._LEAST_PROCESS_BYTES", 1)

    assert main(words) == 130

    out, err = capfd.readouterr()
    assert err.splitlines()[-1] == "stepscope: interrupted"
    assert "Traceback" not in out + err


SLOW = """
import sys, time
from stepscope.sources.trace_events.decode import EventDecoder
decode = EventDecoder.decode
def slow(self, *words, **more):
    print("decoding", flush=True)
    time.sleep(0.3)
    return decode(self, *words, **more)
EventDecoder.decode = slow
from stepscope.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_real_ctrl_c_while_threads_decode_ends_the_process_and_leaves_nothing(tmp_path: Path, workers: str) -> None:
    environment = {**os.environ, "STEPSCOPE_CACHE": str(tmp_path / "cache"), "STEPSCOPE_WORKERS": workers}
    words = [sys.executable, "-c", SLOW, "steps", str(next(EXAMPLE.glob("rank-0*")))]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"decoding")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, b"stepscope: interrupted\n")
    assert [*(tmp_path / "cache").rglob("*.parquet")] == []
