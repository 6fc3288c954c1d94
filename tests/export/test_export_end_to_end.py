"""From raw files on disk to classic files, by the command in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from recordings import EPOCH_NS, MS, MindSporeRun, Raw, memory_curve, op
from stepscope import open_runs
from stepscope.advice import advise

SHAPES = {"Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepscope.export", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def torch_recording(root: Path, rank: int = 0) -> Raw:
    """Three steps of 10 ms, a matrix product and a backward pass in each; the process was killed in the next."""
    raw = Raw(root, rank=rank, about={"state": "recording", "world_size": 2, "spans": []})
    events = []
    for n in range(3):
        at, us = n * 10 * MS, n * 10_000
        raw.mark("data", "_SingleProcessDataLoaderIter", at, at + MS, n + 1)
        raw.mark("forward", "Net", at + 2 * MS, at + 5 * MS, n + 1)
        raw.mark("backward", "", at + 5 * MS, at + 8 * MS, n + 1)
        raw.steps((n + 1, at, at + 10 * MS))
        events.append(op("aten::mm", us + 2100, 1000, **SHAPES))
        events.append(op("autograd::engine::evaluate_function: MmBackward0", us + 5100, 2000))
    raw.kineto(1, 0, 30 * MS, events)
    with (raw.directory / "marks.csv").open("a") as file:
        file.write("data,_SingleProcessData")
    return raw


def test_all_ranks_of_a_killed_job_are_exported(tmp_path: Path) -> None:
    recordings = [torch_recording(tmp_path, rank).directory for rank in (0, 1)]

    done = run(*recordings)

    assert done.returncode == 0, done.stderr
    profiler = tmp_path / "profiler"
    for rank in (0, 1):
        rows = [
            row.split(",") for row in (profiler / f"step_trace_raw_{rank}_detail_time.csv").read_text().splitlines()
        ]
        assert [row[0] for row in rows] == ["step_num", "1", "2", "3", "-"]
        assert rows[2][6:9] == ["200000", "600000", "200000"]
        types = (profiler / f"cpu_op_type_info_{rank}.csv").read_text().splitlines()
        assert [row.split(",")[0] for row in types[1:]] == [
            "autograd::engine::evaluate_function: MmBackward0",
            "aten::mm",
        ]
        assert json.loads((profiler / f"flops_summary_{rank}.json").read_text())["cube_FLOPs"] == 3 * 128 / 1e6
        assert json.loads((profiler / f"profiler_info_{rank}.json").read_text())["rank_size"] == 2
        assert json.loads((profiler / f"cpu_timeline_display_{rank}.json").read_text())


def test_steps_pretty_and_limit_do_what_they_say(tmp_path: Path) -> None:
    recording = torch_recording(tmp_path).directory

    done = run(recording, "--steps", "2-3", "--pretty", "--timeline-limit-mb", "1")

    assert done.returncode == 0, done.stderr
    profiler = tmp_path / "profiler"
    assert (profiler / "step_trace_raw_0_detail_time.csv").read_text().count("\n") == 4
    assert (profiler / "profiler_info_0.json").read_text().startswith('{\n    "')


def test_one_operator_is_printed(tmp_path: Path) -> None:
    recording = torch_recording(tmp_path).directory

    found = run(recording, "--operator", "aten::mm")
    missing = run(recording, "--operator", "Conv2D")

    (row,) = json.loads(found.stdout)["aten::mm"]
    assert row["input_shape"] == "[4, 8],[8, 2]"
    assert row["op_total_time(us)"] == 3000.0
    assert missing.returncode == 1
    assert "no operator 'Conv2D'" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_what_mindspore_wrote_comes_out_as_it_went_in(tmp_path: Path) -> None:
    raw = Raw(tmp_path, about={"framework": "mindspore", "mode": "graph"})
    raw.steps((1, 0, 10 * MS), (2, 10 * MS, 20 * MS))
    forward, backward = "Default/net-Net/fc-Dense/MatMul-op0", "Gradients/Default/Grad_MatMul/MatMul-op1"
    shapes = ("[4, 8]", "[2, 8]", "NoShape")
    runs = [
        MindSporeRun(name, start * MS, length * MS, shapes)
        for name, start, length in ((forward, 1, 2), (backward, 4, 3), (forward, 11, 2), (backward, 14, 3))
    ]
    raw.mindspore(1, 0, 20 * MS, runs, memory_curve((MS, 100), (2 * MS, 300), (3 * MS, 0)))

    done = run(raw.directory)

    assert done.returncode == 0, done.stderr
    profiler, window = tmp_path / "profiler", raw.directory / "windows" / "000001"
    launches = (profiler / "cpu_framework_0.txt").read_text()
    assert launches == (window / "cpu_framework_0.txt").read_text().replace(";7;", ";0;")
    times = {}
    for place in (profiler, window):
        lines = (place / "cpu_op_execute_timestamp_0.txt").read_text().splitlines()
        calls = {line.split(";")[0]: line.split(";")[2].split() for line in lines}
        times[place] = {name: [tuple(map(float, one.split(","))) for one in found] for name, found in calls.items()}
    assert times[profiler] == times[window]
    points = json.loads((profiler / "step_trace_point_info_0.json").read_text())
    assert points == {"fp_start": forward, "bp_end": backward}
    rows = [row.split(",") for row in (profiler / "step_trace_raw_0_detail_time.csv").read_text().splitlines()]
    assert rows[1][6:9] == ["100000", "600000", "300000"]
    record = (profiler / "cpu_ms_memory_record_0.txt").read_text()
    assert record == (window / "cpu_ms_memory_record_0.txt").read_text()
    details = (profiler / "cpu_op_detail_info_0.csv").read_text().splitlines()
    assert details[1].split(",")[:7] == ["Host", "MatMul", "MatMul-op1", backward, "2", "6.0", "3.0"]


def test_what_is_copied_elsewhere_is_one_run_with_the_recorded_steps_and_no_queue(tmp_path: Path) -> None:
    raw = Raw(tmp_path / "job")
    for n in range(3):
        at = n * 10 * MS
        raw.steps((6 + n, at, at + 10 * MS))
        raw.add("batches", (EPOCH_NS + at + MS, "loader", 5 + n, 6 + n, MS, None, None, 0))
    raw.kineto(1, 0, 30 * MS, [op("aten::mm", 2100 + 10_000 * n, 1000, **SHAPES) for n in range(3)])
    assert run(raw.directory).returncode == 0
    for name, left_out in (("both", ""), ("classic", "_ascend_ms")):
        shutil.copytree(tmp_path / "job" / "profiler", tmp_path / name, ignore=shutil.ignore_patterns("recording"))
        for tree in (tmp_path / name).glob(f"*{left_out}") if left_out else ():
            shutil.rmtree(tree)

    both, classic = (open_runs(tmp_path / name, use_store=False) for name in ("both", "classic"))

    for found, source in ((both, "ascend"), (classic, "classic")):
        (job,) = found
        assert job.ranks[0].recording.source.startswith(source)
        assert job.table("steps").collect()["step"].to_list() == [6, 7, 8]
        assert job.table("operators").collect()["step"].to_list() == [6, 7, 8]
        assert not job.has("input_pipeline")
        assert not [finding for finding in advise(job) if "queue" in finding.rule]
    assert [job.path for job in open_runs([tmp_path / "both", tmp_path / "job"], use_store=False)] == [raw.directory]
