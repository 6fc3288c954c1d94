"""Recording without a line in the script: by `stepscope record`, and by variables."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
import recorded
from recorded import BOOTSTRAP

from stepscope.record import autostart

pytest.importorskip("torch")

TRAIN = """
import os, sys, torch
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)

def train(steps, **loading):
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = TensorDataset(torch.randn(4 * steps, 8))
    for (batch,) in DataLoader(data, batch_size=4, **loading):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
"""


def run(
    tmp_path: Path, script: str, *command: str, launch: tuple[str, ...] = (), status: int = 0, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a training script as a user would; `command` comes before the interpreter, `launch` instead of it."""
    file = tmp_path / "train.py"
    file.write_text(TRAIN + script)
    environment = {"STEPSCOPE_CACHE": str(tmp_path / "cache"), "PYTHONPATH": "" if command else str(BOOTSTRAP)}
    words = [*command, *(launch or (sys.executable,)), str(file)]
    done = recorded.run(words, tmp_path, **{**environment, **variables})
    assert done.returncode == status, done.stderr
    return done


def steps(output: Path) -> dict[int, int]:
    """Recorded steps by rank."""
    return {recorded.about(one)["rank"]: len(recorded.steps(one)) for one in recorded.recordings(output)}


def recorder(*options: str) -> tuple[str, ...]:
    """`stepscope record` with options."""
    return (sys.executable, "-m", "stepscope", "record", *options, "--")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last thing that was said."""
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("script", "options", "told", "code"),
    [
        ("sys.exit(3)", (), "torch was loaded, but nothing showed that it trains", 3),
        ("train(2)", ("--steps", "50-60"), "steps 50 to 60 never began; 2 steps ended", 0),
        ("train(2)", ("--framework", "mindspore"), "no process loaded mindspore", 0),
        ("import signal, time; train(3); time.sleep(3); os.kill(os.getpid(), signal.SIGKILL)", (), "0 was killed", 137),
    ],
)
def test_record_says_why_nothing_or_not_all_was_recorded(
    tmp_path: Path, script: str, options: tuple[str, ...], told: str, code: int
) -> None:
    done = run(tmp_path, script, *recorder("-o", "out", *options), status=code)

    assert told in last_line(done)


def test_record_a_command_that_is_no_python(tmp_path: Path) -> None:
    done = run(tmp_path, "", *recorder("-o", "out"), launch=("cat",))

    assert "def train" in done.stdout
    assert "no Python process" in last_line(done)


def test_record_a_script_that_knows_nothing_of_it(tmp_path: Path) -> None:
    done = run(tmp_path, "train(6); sys.exit(7)", *recorder("-o", "out", "--steps", "2-4"), status=7)
    assert last_line(done) == "stepscope: 1 rank, 3 steps in out/; next: stepscope analyze out"
    assert "stepscope: analysing" in done.stderr
    assert steps(tmp_path / "out") == {0: 3}
    exported = json.loads((tmp_path / "out" / "profiler" / "exported-0.json").read_text())
    assert "step_trace_raw_0_detail_time.csv" in exported["files"]
    trace = (tmp_path / "out" / "profiler" / "step_trace_raw_0_detail_time.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in trace[1:]] == ["1", "2", "3", "-"]
    assert exported["steps"] == [2, 3, 4]


def test_record_every_rank_of_a_launcher(tmp_path: Path) -> None:
    script = "torch.distributed.init_process_group('gloo'); train(5); torch.distributed.destroy_process_group()"
    launch = (sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2")
    done = run(tmp_path, script, *recorder("-o", "out"), launch=launch)
    assert last_line(done) == "stepscope: 2 ranks, 5 steps in out/; next: stepscope analyze out"
    assert steps(tmp_path / "out") == {0: 5, 1: 5}
    for directory in recorded.recordings(tmp_path / "out"):
        about = recorded.about(directory)
        assert (about["world_size"], about["state"]) == (2, "stopped")
        assert [group["members"] for group in about["groups"]] == [[0, 1]]
    assert {path.name for path in (tmp_path / "out" / "profiler").glob("exported-*")} == {
        "exported-0.json",
        "exported-1.json",
    }


@pytest.mark.parametrize("name", ["STEPSCOPE_OPTIONS", "MS_PROFILER_OPTIONS"])
def test_start_by_variable(tmp_path: Path, name: str) -> None:
    options = json.dumps({"start": True, "output_path": str(tmp_path / "out"), "profile_memory": False})
    script = "if __name__ == '__main__':\n    train(4, num_workers=1, multiprocessing_context='spawn')"
    run(tmp_path, script, **{name: options})
    assert steps(tmp_path / "out") == {0: 4}  # and nothing of the worker, which runs the script's head again
    assert (tmp_path / "out" / "profiler" / "exported-0.json").exists()


@pytest.mark.parametrize("text", ["{not json", '{"start": true, "output_path": "/proc/nowhere"}', '{"start": 1}'])
def test_a_bad_variable_harms_nothing(tmp_path: Path, text: str) -> None:
    done = run(tmp_path, "train(3); print('trained')", MS_PROFILER_OPTIONS=text)
    assert done.stdout.strip() == "trained"
    assert "MS_PROFILER_OPTIONS" in done.stderr or "training continues" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_program_that_does_not_train_leaves_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "print(torch.ones(2).sum())", STEPSCOPE_OPTIONS='{"output_path": "out"}')
    assert not done.stderr
    assert not (tmp_path / "out").exists()


def test_the_scripts_own_profiler_takes_over(tmp_path: Path) -> None:
    script = """
import stepscope
train(2)
with stepscope.Profiler(output_path="own"):
    train(3)
"""
    run(tmp_path, script, STEPSCOPE_OPTIONS='{"output_path": "out"}')
    assert steps(tmp_path / "out") == {0: 2}
    assert steps(tmp_path / "own") == {0: 3}


def test_processes_that_a_script_spawns_to_train(tmp_path: Path) -> None:
    script = """
def rank(number):
    os.environ.update(RANK=str(number), WORLD_SIZE="2")
    train(3)

if __name__ == "__main__":
    torch.multiprocessing.spawn(rank, nprocs=2)
"""
    run(tmp_path, script, STEPSCOPE_OPTIONS='{"output_path": "out", "op_time": false}')
    assert steps(tmp_path / "out") == {0: 3, 1: 3}
    assert [recorded.about(one)["state"] for one in recorded.recordings(tmp_path / "out")] == ["stopped", "stopped"]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_ranks_of_a_script_that_looks_at_its_data_first(tmp_path: Path, method: str) -> None:
    script = f"""
def rank(number):
    os.environ.update(RANK=str(number), WORLD_SIZE="2")
    train(3)

if __name__ == "__main__":
    for _ in DataLoader(TensorDataset(torch.randn(8, 8))):
        pass
    os.environ["RANK"] = "9"
    torch.multiprocessing.start_processes(rank, nprocs=2, start_method="{method}")
"""
    run(tmp_path, script, STEPSCOPE_OPTIONS='{"output_path": "out", "op_time": false}')
    found = steps(tmp_path / "out")
    assert (found[0], found[1]) == (3, 3)


def test_training_that_raises(tmp_path: Path) -> None:
    done = run(tmp_path, "train(3); raise ZeroDivisionError", STEPSCOPE_OPTIONS='{"output_path": "out"}', status=1)
    assert "ZeroDivisionError" in done.stderr
    assert steps(tmp_path / "out") == {0: 3}


def test_a_site_of_the_users_own_still_runs(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("print('site')")
    path = os.pathsep.join([str(BOOTSTRAP), str(tmp_path / "site")])
    done = run(tmp_path, "print('script')", PYTHONPATH=path)
    assert done.stdout.split() == ["site", "script"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--steps", "5-2", "--", "python"), "--steps"),
        (("--schedule", "wait=x", "--", "python"), "--schedule"),
        (("--schedule", "often=1", "--", "python"), "--schedule"),
        (("--option", "optime=false", "--", "python"), "--option"),
        (("--option", "window_seconds=-1", "--", "python"), "window_seconds"),
        (("--framework", "jax", "--", "python"), "framework"),
        (("-o", "with space", "--", "python"), "output_path"),
        (("-o", "/proc/nowhere", "--", "python"), "/proc/nowhere"),
        (("--", "no-such-program"), "no-such-program"),
        ((), "COMMAND"),
    ],
)
def test_bad_words(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    done = recorded.run([sys.executable, "-m", "stepscope", "record", *words], tmp_path)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert "__init__" not in done.stderr


class OneForAll:
    """A finder that is itself the loader of its modules, as import hooks may be."""

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name in ("framework_of_the_test", "another_of_the_test") else None

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.loaded = True


def test_a_loader_of_many_modules_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(autostart, "FRAMEWORKS", ("framework_of_the_test",))
    hook = OneForAll()
    waiting = autostart._Waiting([(None, started.append)])
    monkeypatch.setattr(sys, "meta_path", [waiting, hook, *sys.meta_path])

    importlib.util.find_spec("framework_of_the_test")  # as libraries look for what is installed
    importlib.import_module("another_of_the_test")
    assert started == []

    module = importlib.import_module("framework_of_the_test")
    assert (module.loaded, module.__loader__, vars(hook), started) == (True, hook, {}, ["framework_of_the_test"])
