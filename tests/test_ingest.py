"""Reading inputs: several at a time, and none at the cost of another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from builders import ToySource, write_toy
from stepscope.errors import StepscopeError
from stepscope.ingest import Ingested, ingest
from stepscope.sources.base import Input, Sink
from stepscope.sources.registry import SOURCES
from stepscope.store import StoreSink


class Nosy(ToySource):
    """Tells which process reads, how many workers it may use, and how many threads Polars has."""

    name = "nosy"

    def read(self, item: Input, sink: Sink) -> None:
        sink.issue("note", item.path, f"{os.getpid()} {sink.workers} {pl.thread_pool_size()}", "-")
        super().read(item, sink)


class Loud(ToySource):
    """Prints while it reads."""

    name = "loud"

    def read(self, item: Input, sink: Sink) -> None:
        print("reading", item.path, flush=True)
        super().read(item, sink)


class Full(ToySource):
    """Takes away the directory that its rows go to, if any."""

    name = "full"

    def read(self, item: Input, sink: Sink) -> None:
        if isinstance(sink, StoreSink):
            sink.directory.rmdir()
        super().read(item, sink)


TOY, NOSY, LOUD, FULL = REGISTERED = (ToySource(), Nosy(), Loud(), Full())
START = "import sys; sys.path[:] = sys.argv[1:]; import test_ingest; test_ingest.serve()"


def serve() -> None:
    """What a worker runs: one that knows the toy formats."""
    from stepscope.ingest.worker import main

    SOURCES.extend(REGISTERED)
    main()


def read(*files: Path, source: ToySource = TOY, **options: object) -> Ingested:
    items = [Input(source.name, file, (file,)) for file in files]
    return ingest(items, sources=[source], **options)  # type: ignore[arg-type]


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading in two processes, however little there is to read."""
    monkeypatch.setenv("STEPSCOPE_WORKERS", "2")
    monkeypatch.setattr("stepscope.sources.registry.SOURCES", [*SOURCES, *REGISTERED])
    monkeypatch.setattr("stepscope.ingest.pool._START", START)
    monkeypatch.setattr("stepscope.ingest.inputs._LEAST_PROCESS_BYTES", 1)


def told(done: Ingested) -> list[list[int]]:
    notes = [recording.scan("issues").collect()["problem"].item() for recording in done.recordings]
    return [[int(number) for number in note.split()] for note in notes]


def readers(done: Ingested) -> set[int]:
    """The processes that read."""
    return {process for process, _, _ in told(done)}


@pytest.mark.usefixtures("cache", "processes")
def test_several_inputs_are_read_by_processes(tmp_path: Path) -> None:
    done = read(*(write_toy(tmp_path / f"{n}.json", rank=n) for n in range(5)), source=NOSY)

    assert [recording.facts["rank"] for recording in done.recordings] == [0, 1, 2, 3, 4]
    assert os.getpid() not in readers(done)
    assert {(workers, threads) for _, workers, threads in told(done)} == {(1, 1)}


@pytest.mark.usefixtures("cache", "processes")
def test_a_single_input_is_read_here_with_all_workers(tmp_path: Path) -> None:
    assert told(read(write_toy(tmp_path / "0.json"), source=NOSY)) == [[os.getpid(), 2, pl.thread_pool_size()]]


@pytest.mark.usefixtures("cache")
def test_small_inputs_are_not_worth_a_process(tmp_path: Path) -> None:
    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(5)), source=NOSY)

    assert readers(done) == {os.getpid()}


@pytest.mark.usefixtures("cache", "processes")
def test_a_reader_that_dies_takes_only_its_own_input_with_it(tmp_path: Path) -> None:
    files = [write_toy(tmp_path / f"{n}.json", rank=n, **({"kill": 1} if n in (1, 2) else {})) for n in range(6)]

    done = read(*files)

    assert [recording.facts["rank"] for recording in done.recordings] == [0, 3, 4, 5]
    assert sorted((Path(u.file).name, "SIGKILL" in u.problem) for u in done.unread) == [
        ("1.json", True),
        ("2.json", True),
    ]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_reader_that_fails_is_told_with_the_file(
    cache: Path, tmp_path: Path, parallel: bool, request: pytest.FixtureRequest
) -> None:
    if parallel:
        request.getfixturevalue("processes")
    good = write_toy(tmp_path / "good.json")
    done = read(write_toy(tmp_path / "bad.json", fail="oops"), good, write_toy(tmp_path / "cut.json", unreadable="cut"))

    told = {Path(u.file).name: u for u in done.unread}

    assert [recording.path for recording in done.recordings] == [good]
    assert "internal error of the reader toy (RuntimeError: oops)" in told["bad.json"].problem
    assert "Traceback" in (told["bad.json"].trace or "")
    assert (told["cut.json"].problem, told["cut.json"].remedy) == ("cut", "Record again")
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.usefixtures("cache")
def test_names_and_texts_that_are_not_utf8_are_told_in_escapes(
    tmp_path: Path, parallel: bool, request: pytest.FixtureRequest
) -> None:
    if parallel:
        request.getfixturevalue("processes")
    good = [write_toy(tmp_path / f"{n}.json", rank=n) for n in range(2)]
    named = write_toy(tmp_path / "\udcff.json")
    texts = write_toy(tmp_path / "texts.json", unreadable="cut at \ud800")

    done = read(named, *good, texts)

    assert [recording.path for recording in done.recordings] == good
    assert [(u.file, u.problem) for u in done.unread] == [
        (f"{tmp_path}/\\udcff.json", "has a name that is not UTF-8"),
        (str(texts), "cut at \\ud800"),
    ]


@pytest.mark.usefixtures("cache", "processes")
def test_a_source_of_the_users_own_is_read_here_even_if_one_of_its_name_is_registered(tmp_path: Path) -> None:
    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(3)), source=Nosy())

    assert readers(done) == {os.getpid()}


@pytest.mark.usefixtures("cache", "processes")
@pytest.mark.parametrize("attribute", ["name", "version"])
def test_a_source_that_workers_do_not_know_is_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribute: str
) -> None:
    stranger = Nosy()
    setattr(stranger, attribute, {"name": "stranger", "version": 7}[attribute])
    monkeypatch.setattr("stepscope.sources.registry.SOURCES", [stranger])

    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(3)), source=stranger)

    assert readers(done) == {os.getpid()}


@pytest.mark.usefixtures("cache", "processes")
@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python", "", None])
def test_without_a_python_to_start_inputs_are_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python: str | None
) -> None:
    monkeypatch.setattr(sys, "executable", python)

    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(3)), source=NOSY)

    assert readers(done) == {os.getpid()}


@pytest.mark.usefixtures("cache", "processes")
@pytest.mark.parametrize("words", ["hello", "welcome to this machine", "\\0" * 8])
def test_a_python_that_talks_at_its_start_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setattr("stepscope.ingest.pool._START", f"print('{words}', flush=True); {START}")

    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(3)), source=NOSY)

    assert readers(done) == {os.getpid()}


@pytest.mark.usefixtures("cache", "processes")
def test_what_a_reader_prints_does_no_harm(tmp_path: Path) -> None:
    done = read(*(write_toy(tmp_path / f"{n}.json") for n in range(3)), source=Loud())

    assert (len(done.recordings), done.unread) == (3, [])


@pytest.mark.usefixtures("processes")
def test_a_store_that_fails_midway_costs_a_warning_only(cache: Path, tmp_path: Path) -> None:
    files = [write_toy(tmp_path / f"{n}.json", rank=n) for n in range(4)]

    done = read(*files, source=FULL)

    assert [recording.facts["rank"] for recording in done.recordings] == [0, 1, 2, 3]
    assert len(done.warnings) == 1
    assert list(cache.iterdir()) == []


@pytest.mark.usefixtures("cache")
def test_progress_is_told_in_bytes(tmp_path: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    files = [write_toy(tmp_path / f"{n}.json") for n in range(2)]
    total = sum(file.stat().st_size for file in files)

    read(*files, progress=lambda *call: calls.append(call))
    read(*files, progress=lambda *call: calls.append(call))

    assert calls == [(0, total, ""), (total // 2, total, "0.json"), (total, total, "1.json")]


def test_without_a_store_nothing_is_kept(cache: Path, tmp_path: Path) -> None:
    done = read(write_toy(tmp_path / "a.json"), use_store=False)

    assert done.recordings[0].scan("slices").collect().height == 4
    assert not cache.exists()


def test_an_interrupted_reading_leaves_nothing(cache: Path, tmp_path: Path) -> None:
    code = f"""if 1:
        import stepscope.ingest.inputs as i
        i._LEAST_PROCESS_BYTES = 1
        import stepscope.ingest.pool as p
        from pathlib import Path
        from test_ingest import REGISTERED, SOURCES, START, read
        p._START = START
        SOURCES.extend(REGISTERED)
        read(*sorted(Path({str(tmp_path)!r}).glob("*.json")))
    """
    for n in range(4):
        write_toy(tmp_path / f"{n}.json", sleep_s=30)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "STEPSCOPE_WORKERS": "2"}
    reading = subprocess.Popen([sys.executable, "-c", code], env=env, start_new_session=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and (not cache.is_dir() or len(list(cache.iterdir())) < 2):
        time.sleep(0.05)

    os.killpg(reading.pid, signal.SIGINT)
    reading.communicate(timeout=20)

    assert list(cache.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(reading.pid, 0)


@pytest.mark.parametrize("text", ["0", "many", "-1"])
def test_a_bad_number_of_workers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("STEPSCOPE_WORKERS", text)

    with pytest.raises(StepscopeError, match="STEPSCOPE_WORKERS"):
        read(write_toy(tmp_path / "a.json"))
