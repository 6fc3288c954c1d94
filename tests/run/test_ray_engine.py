"""Workers of a Ray cluster give the same answers as this process, and leave nothing behind."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import psutil
import pytest
from polars.testing import assert_frame_equal

from stepscope import StepscopeError, Unavailable, open_run, ray_workers
from stepscope.analysis import ANALYSES
from stepscope.ingest import inputs
from stepscope.ray_workers import RayCluster, RayWorker
from stepscope.run import Processes, Ray, Threads, engine_of
from stepscope.run.engine import named

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_gloo_4rank_slow_loader"
QUESTIONS = ("breakdown", "activity", "segments", "slow_ranks", "operator_flops", "kernel_totals", "waits")


def need_ray() -> None:
    """Skip a test without Ray, but leave loading it, which fixes its settings, to the engine."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: make test EXTRAS=ray")


@pytest.fixture(scope="module")
def engine() -> Iterator[Ray]:
    need_ray()
    with Ray(count=2) as engine:
        yield engine


def answers(engine: Ray | Processes | Threads, path: Path = EXAMPLE) -> dict[str, pl.DataFrame | str]:
    run = open_run(path, engine=engine)
    run._store = None  # computed by each engine, not taken from the store
    found: dict[str, pl.DataFrame | str] = {}
    for question in QUESTIONS:
        try:
            found[question] = run.analyse(question)
        except Unavailable as reason:
            found[question] = str(reason)
    return found


def test_ray_and_processes_give_the_same_tables_as_this_process(
    engine: Ray, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_LEAST_PROCESS_BYTES", 1)  # so that the cluster reads, too
    by_ray = answers(engine)
    shutil.rmtree(cache)
    with Processes(2) as processes:
        by_processes = answers(processes)
    shutil.rmtree(cache)
    here = answers(Threads(1))

    for found in (by_ray, by_processes):
        for question, expected in here.items():
            if isinstance(expected, pl.DataFrame):
                assert_frame_equal(found[question], expected, check_exact=True)
            else:
                assert found[question] == expected


def test_a_directory_is_read_after_questions_to_all_workers(
    engine: Ray, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_LEAST_PROCESS_BYTES", 1)
    monkeypatch.setattr(ray_workers, "_START_S", 30.0)
    first = open_run(EXAMPLE, engine=engine)
    answer = first.analyse("breakdown")
    shutil.rmtree(cache)

    second = open_run(EXAMPLE, engine=engine)

    assert second.issues.rows() == first.issues.rows()
    assert_frame_equal(second.analyse("breakdown"), answer)


def test_workers_that_are_at_work_go_on(engine: Ray, cache: Path) -> None:
    idle, busy = (engine.cluster.worker("stepscope.run.worker:serving") for _ in range(2))
    held = threading.Event()
    done = threading.Event()

    def work() -> None:
        with busy.at_work:
            held.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    assert engine.cluster.make_room() == 1
    done.set()
    thread.join()
    assert engine.cluster.make_room() == 0
    assert not idle.is_started


def test_a_worker_that_died_is_replaced_and_one_that_dies_twice_is_named(engine: Ray, cache: Path) -> None:
    from ray_analyses import asked_on_ray

    run = open_run(EXAMPLE, engine=engine)
    before = {*run.analyse(asked_on_ray)["process"]}
    for process in before:
        psutil.Process(process).kill()
    run = open_run(EXAMPLE, engine=engine)
    after = {*run.analyse(asked_on_ray)["process"]}
    with pytest.raises(StepscopeError, match=r"asked_on_ray: the process that computed it died .*, twice, for rank 0"):
        run.analyse(asked_on_ray, fault="death")
    del ANALYSES["asked_on_ray"]

    assert os.getpid() not in before | after
    assert before.isdisjoint(after)


def test_a_store_that_nodes_do_not_see_is_named(engine: Ray, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RayWorker, "missing", lambda self, paths: paths[1:2])
    run = open_run(EXAMPLE, engine=engine)

    with pytest.raises(StepscopeError, match=r"node .* has no .*: the stored rows of 1 ranks.*STEPSCOPE_CACHE"):
        run.analyse("breakdown")


def test_a_cluster_of_our_own_leaves_no_files_and_no_processes(cache: Path) -> None:
    need_ray()
    folders = {*Path(tempfile.gettempdir()).glob("ss-ray-*")}
    code = f"from stepscope import open_run; open_run({str(EXAMPLE)!r}, engine='ray:1').analyse('breakdown')"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert (ran.stdout, ran.stderr) == ("", "")
    assert {*Path(tempfile.gettempdir()).glob("ss-ray-*")} <= folders
    assert not [one for one in psutil.process_iter(["environ"]) if _is_of(one, str(cache))]


def test_a_start_that_is_interrupted_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    ended: list[str] = []
    ray = SimpleNamespace(is_initialized=lambda: False, shutdown=lambda: ended.append("ray"))
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(ray_workers, "_start", interrupted)
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: str(tmp_path / "cluster"))
    (tmp_path / "cluster").mkdir()

    with pytest.raises(KeyboardInterrupt):
        RayCluster().worker("stepscope.run.worker:serving")

    assert ended == ["ray"]
    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize(
    "problem", ["The current node timed out during startup.", "Timed out waiting for file gcs_port"]
)
def test_a_start_that_timed_out_is_tried_once_more(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_: object, folder: str, __: int | None) -> None:
        tried.append(folder)
        raise RuntimeError(problem)

    tried: list[str] = []
    ray = SimpleNamespace(is_initialized=lambda: False, shutdown=lambda: None)
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(ray_workers, "_start", late)

    with pytest.raises(StepscopeError, match=f"Ray does not start here: {problem}"):
        RayCluster().worker("stepscope.run.worker:serving")

    assert len(set(tried)) == 2
    assert not any(Path(folder).exists() for folder in tried)


def _is_of(process: psutil.Process, cache: str) -> bool:
    """Whether a process, except this one, was started with this cache."""
    environment = process.info["environ"] or {}
    return process.pid != os.getpid() and environment.get("STEPSCOPE_CACHE") == cache and "raylet" in process.name()


def test_without_ray_the_remedy_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(StepscopeError, match=r"needs Ray: pip install 'stepscope\[ray\]'"):
        open_run(EXAMPLE, engine=Ray()).analyse("breakdown")


def test_a_cluster_that_does_not_answer_is_named(cache: Path) -> None:
    need_ray()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"

        with pytest.raises(StepscopeError, match=rf"no Ray cluster answers at {address}"):
            Ray(address).workers()
    with pytest.raises(StepscopeError, match="'somewhere' is not the address"):
        Ray("somewhere").workers()


def test_engines_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(named.VARIABLE, raising=False)
    assert engine_of(None) is None
    assert engine_of("processes:3") is engine_of("processes:3")
    assert isinstance(engine_of("processes:3"), Processes)
    remote = engine_of("ray://host:6379")
    assert isinstance(remote, Ray)
    assert remote.cluster.address == "host:6379"
    monkeypatch.setenv(named.VARIABLE, "threads:1")
    assert isinstance(engine_of(None), Threads)
    monkeypatch.setenv(named.VARIABLE, "cloud")
    with pytest.raises(StepscopeError, match=r"STEPSCOPE_ENGINE: 'cloud' is not an engine. Give threads, processes"):
        engine_of(None)
