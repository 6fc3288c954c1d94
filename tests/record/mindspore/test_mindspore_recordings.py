"""Real MindSpore trainings on CPU, recorded: exact steps, phases and operators in all modes."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import recorded

_spec = importlib.util.find_spec("mindspore")
if _spec is None or _spec.origin is None:  # a directory of this name, as that of this file, is no installation
    pytest.skip("needs mindspore", allow_module_level=True)

HERE = Path(__file__).parent
MODES = ("graph", "pynative")
SCENARIOS = (
    "detached",  # while no other Profiler has placed its hooks
    "runtime_detail",  # MindSpore decides at its first step whether it records that
    "functional_range",
    "jit_with_evaluation",
    "two_optimizers",
    "train_step_cell",
    "user_steps",
    "schedule",
    "checkpoint_and_loader",
    "without_data",
    "functional_epochs",
    "loop_and_model",
    "sunk_steps",
    "collective",
    "own_callback",
    "two_trainings",
    "failing_training",
    "beyond_training",
    "epochs",
    "broken_hook",
    "other_profiler_begins",
    "other_profiler",
)


class Outcome:
    """What the scenarios of one mode left behind."""

    def __init__(self, out: Path, mode: str) -> None:
        self.out, self.mode = out, mode
        command = [sys.executable, str(HERE / "mindspore_scenarios.py"), mode, str(out), *SCENARIOS]
        done = recorded.run(command, out, GLOG_v="2")
        self.log = done.stdout + done.stderr
        assert done.returncode == 0, self.log[-3000:]
        self.said = {tuple(line.split()) for line in self.log.splitlines()}

    def recording(self, scenario: str) -> Path:
        (found,) = recorded.recordings(self.out / scenario)
        return found

    def rows(self, scenario: str, name: str = "marks.csv") -> list[dict[str, str]]:
        return recorded.rows(self.recording(scenario), name)

    def marks(self, scenario: str, kind: str) -> list[dict[str, str]]:
        return recorded.rows(self.recording(scenario), kind=kind)

    def phases(self, scenario: str) -> list[dict[str, str]]:
        """All marks but those of garbage collections, which come when they come."""
        return [row for row in self.rows(scenario) if row["kind"] != "gc"]

    def steps(self, scenario: str) -> list[int]:
        return recorded.steps(self.recording(scenario))

    def about(self, scenario: str) -> dict[str, Any]:
        return recorded.about(self.recording(scenario))

    def operators(self, scenario: str) -> Counter[str]:
        """How often each operator ran, over all windows, by the type in its name."""
        count: Counter[str] = Counter()
        for file in self.recording(scenario).glob("windows/*/cpu_op_execute_timestamp_0.txt"):
            for line in file.read_text().splitlines():
                name, _, times = line.split(";")
                count[name.rpartition("/")[2].partition("-op")[0]] += len(times.split())
        return count


@pytest.fixture(scope="module", params=MODES)
def outcome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return Outcome(tmp_path_factory.mktemp(request.param), request.param)


def test_start_and_stop_between_steps_record_the_steps_between(outcome: Outcome) -> None:
    assert outcome.steps("functional_range") == [4, 5, 6, 7]
    assert outcome.operators("functional_range")["ApplyMomentum"] == 2 * 4  # weight and bias
    (window,) = outcome.rows("functional_range", "windows.csv")
    assert (window["first_step"], window["last_step"], window["kind"]) == ("4", "7", "mindspore_cpu")
    assert window["state"] == "complete"


def test_phases_are_told_apart_where_they_can_be(outcome: Outcome) -> None:
    count = Counter((row["kind"], row["name"]) for row in outcome.phases("functional_range") if row["kind"] != "step")

    if outcome.mode == "pynative":
        assert count == {
            ("forward", "Dense"): 4,
            ("forward", "SoftmaxCrossEntropyWithLogits"): 4,
            ("backward", "grad"): 4,
            ("optimizer", "Momentum"): 4,
        }
    else:
        assert count == {("forward", "forward"): 4, ("optimizer", "Momentum"): 4}


def test_allocations_of_a_window_are_those_of_its_time(outcome: Outcome) -> None:
    (window,) = outcome.rows("functional_range", "windows.csv")
    file = outcome.recording("functional_range") / "windows" / "000000" / "cpu_ms_memory_record_0.txt"
    times = [int(line.split(",")[0]) for line in file.read_text().splitlines()[1:]]

    slack_ns = 50_000_000  # two clocks, read one after the other
    assert times
    assert all(int(window["start_ns"]) - slack_ns <= time <= int(window["end_ns"]) + slack_ns for time in times)


def test_a_compiled_function_is_a_step_only_if_it_trains(outcome: Outcome) -> None:
    names = Counter(row["name"] for row in outcome.marks("jit_with_evaluation", "forward"))

    assert len(outcome.steps("jit_with_evaluation")) == 4
    assert names == {"step": 4, "evaluate": 4}
    assert outcome.operators("jit_with_evaluation")["ApplyMomentum"] == 2 * 4
    assert outcome.about("jit_with_evaluation")["mode"] == ("jit" if outcome.mode == "pynative" else "graph")


def test_compiling_is_marked_where_a_graph_is_compiled(outcome: Outcome) -> None:
    """The training function was compiled before the recording began. A method is known by its object."""
    compiled = outcome.marks("jit_with_evaluation", "compile")

    assert [row["name"] for row in compiled] == ["Training"]
    assert all(int(row["end_ns"]) - int(row["start_ns"]) > 1_000_000 for row in compiled)


def test_two_optimizers_make_one_step(outcome: Outcome) -> None:
    assert len(outcome.steps("two_optimizers")) == 3
    assert len(outcome.marks("two_optimizers", "optimizer")) == 6


def test_a_cell_that_trains_is_seen_through_where_possible(outcome: Outcome) -> None:
    kinds = Counter(row["kind"] for row in outcome.phases("train_step_cell") if row["kind"] != "compile")

    expected = {"step": 3, "forward": 3}
    assert kinds == (expected if outcome.mode == "graph" else {**expected, "backward": 3, "optimizer": 3})


def test_steps_of_the_user_override_those_of_hooks(outcome: Outcome) -> None:
    steps = outcome.steps("user_steps")

    assert len(steps) == 4 + 1  # the first optimizer call came before the first word of the user
    assert steps == list(range(steps[0], steps[0] + 5))


def test_a_schedule_records_its_steps_with_exact_counts(outcome: Outcome) -> None:
    windows = outcome.rows("schedule", "windows.csv")

    assert outcome.steps("schedule") == [4, 5, 9, 10]
    assert [(row["first_step"], row["last_step"]) for row in windows] == [("4", "5"), ("9", "10")]
    assert outcome.operators("schedule")["ApplyMomentum"] == 2 * 4


def test_batches_and_checkpoints_are_marked(outcome: Outcome) -> None:
    batches = outcome.rows("checkpoint_and_loader", "batches.csv")
    saved = outcome.marks("checkpoint_and_loader", "checkpoint")

    assert len(outcome.steps("checkpoint_and_loader")) == 6
    assert len(outcome.marks("checkpoint_and_loader", "data")) == 6
    assert [(row["pipeline"], row["batch"]) for row in batches] == [("BatchDataset", str(n)) for n in range(6)]
    assert [(row["name"], row["detail"]) for row in saved] == [("save_checkpoint", str(outcome.out / "net.ckpt"))] * 2


def test_the_input_pipeline_is_recorded_only_where_it_is_wanted(outcome: Outcome) -> None:
    recording = outcome.recording("without_data")

    assert len(outcome.steps("without_data")) == 3
    assert outcome.marks("without_data", "data") == []
    assert not (recording / "batches.csv").exists() or outcome.rows("without_data", "batches.csv") == []
    assert not (recording / "minddata").exists()


@pytest.mark.parametrize("scenario", ["functional_epochs", "functional_epochs_of_one_iterator"])
def test_epochs_of_a_loop_are_passes_over_what_is_trained_on(outcome: Outcome, scenario: str) -> None:
    assert outcome.steps(scenario) == [4, 5, 6, 7, 8, 9]
    assert [row["name"] for row in outcome.marks(scenario, "epoch")] == ["2", "3"]


def test_epochs_that_a_model_tells_are_not_counted_again(outcome: Outcome) -> None:
    assert [row["name"] for row in outcome.marks("loop_and_model", "epoch")] == ["1", "1", "2"]


def test_each_pipeline_is_observed_by_minddata(outcome: Outcome) -> None:
    directories = sorted((outcome.recording("checkpoint_and_loader") / "minddata").iterdir())

    assert [directory.name for directory in directories] == ["0", "1"]  # an iterator an epoch
    for directory in directories:
        batches = (directory / "dataset_iterator_profiling_0.txt").read_text().splitlines()
        assert len(batches) == 4 * 3
        assert all(file.stat().st_mode & 0o777 == 0o600 for file in directory.iterdir())


def test_collectives_have_hooks(outcome: Outcome) -> None:
    assert ("collective", "hooked", "True") in outcome.said


def test_a_callback_of_the_user_starts_and_stops(outcome: Outcome) -> None:
    assert outcome.steps("own_callback") == [3, 4, 5, 6]
    assert outcome.operators("own_callback")["ApplyMomentum"] == 2 * 4
    assert [row["name"] for row in outcome.marks("own_callback", "epoch")] == ["1"]


def test_steps_of_a_second_training_are_counted_on(outcome: Outcome) -> None:
    assert outcome.steps("two_trainings") == [1, 2, 3, 4, 5, 6]
    assert [row["name"] for row in outcome.marks("two_trainings", "epoch")] == ["1", "1"]


def test_a_training_that_fails_is_recorded_up_to_there(outcome: Outcome) -> None:
    assert ("failing_training", "raised", "ArithmeticError") in outcome.said
    assert ("failing_training", "analysed", "True") in outcome.said
    assert outcome.steps("failing_training") == [2, 3]
    assert outcome.about("failing_training")["state"] == "stopped"


def test_a_range_beyond_the_end_of_training_is_told_once(outcome: Outcome) -> None:
    assert outcome.log.count("steps 7 to 9 were not reached; training ended with step 6") == 1
    assert outcome.log.count("epochs 7 to 9 were not reached; training ended with epoch 2") == 1
    assert outcome.log.count("steps 2 to 3 were not reached; training ended with step 10. Steps are invisible") == 1
    assert outcome.log.count("were not reached") == 3


def test_epochs_are_recorded_with_a_data_sink_too(outcome: Outcome) -> None:
    assert outcome.steps("epochs") == [4, 5, 6, 7, 8, 9]
    assert [row["name"] for row in outcome.marks("epochs", "epoch")] == ["2", "3"]


def test_a_hook_that_fails_leaves_training_alone(outcome: Outcome) -> None:
    assert ("broken_hook", "trained", "True") in outcome.said
    assert "are no longer recorded" in outcome.log


def test_another_profiler_of_mindspore_is_respected(outcome: Outcome) -> None:
    assert len(outcome.steps("other_profiler")) == 2
    assert not (outcome.recording("other_profiler") / "windows.csv").exists()
    assert any("MindSpore's own profiler is active" in text for text in outcome.about("other_profiler")["problems"])


def test_a_window_gives_way_to_another_profiler_of_mindspore(outcome: Outcome) -> None:
    (window,) = outcome.rows("other_profiler_begins", "windows.csv")
    assert (window["first_step"], window["last_step"], window["state"]) == ("1", "3", "complete")
    assert outcome.operators("other_profiler_begins")["ApplyMomentum"] == 2 * 3
    assert ("other_profiler_begins", "updates", str(2 * 3)) in outcome.said
    told = "another profiler took over in step 4; while it is active, operators are not recorded"
    problems = outcome.about("other_profiler_begins")["problems"]
    assert problems[0] == told
    assert [text.split(" (")[0] for text in problems[1:]] == ["operators are missing in 5 of 8 steps"]
    assert outcome.log.count(told) == 1


def test_all_hooks_are_taken_away(outcome: Outcome) -> None:
    assert ("detached", "all", "True") in outcome.said


def test_hooks_of_many_profilers_do_not_pile_up(outcome: Outcome) -> None:
    assert ("many", "deepest", "1") in outcome.said
    assert ("detached", "many", "True") in outcome.said


def test_runtime_detail_is_moved_to_the_recording(outcome: Outcome) -> None:
    files = [file.name for file in (outcome.recording("runtime_detail") / "runtime").iterdir()]

    assert any(name.startswith("RuntimeProfilerDetail") for name in files)
    assert not list(outcome.out.glob("rank_*"))
