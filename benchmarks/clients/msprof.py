"""Let msprof-analyze read the `*_ascend_ms` directories that stepscope wrote, and compare its step table with ours.

    python benchmarks/clients/msprof.py --msprof VENV/bin/msprof-analyze OUTPUT_DIRECTORY

Exits with 1 if it reports an error, leaves out a result, or differs from our tables by more than rounding.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
from facts import recorded_run

from stepscope import Run

MODES = ("all", "communication_time", "communication_matrix")
"""Modes that read text; the others want databases."""
RESULTS = "cluster_analysis_output"
COLUMNS = {
    "Computing": pl.col("computing_ns"),
    "Communication(Not Overlapped)": pl.col("communication_not_overlapped_ns"),
    "Overlapped": pl.col("overlapped_ns"),
    "Communication": pl.col("communication_ns"),
    "Free": pl.col("free_ns") + pl.col("memory_not_overlapped_ns"),
    "Stage": pl.col("stage_ns"),
    "Bubble": pl.col("bubble_ns"),
    "Communication(Not Overlapped and Exclude Receive)": pl.col("communication_not_overlapped_exclude_receive_ns"),
}
ROUNDING_US = 0.001
_TROUBLE = re.compile(r"\[ERROR\]|Traceback|Exception|\[WARNING\](?!.*(?:root|comm_group_parallel_info))")
"""Lines that tell of trouble. Two warnings say nothing of the data: that the tool runs as root, and, in the mode of
the matrix alone, that it was not asked for groups."""


def main() -> None:
    """Run each mode and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="output directory, with profiler/ in it")
    parser.add_argument("--msprof", type=Path, required=True, help="the msprof-analyze command")
    arguments = parser.parse_args()
    profiler = arguments.directory / "profiler"
    run = recorded_run(arguments.directory)
    if run is None:
        raise SystemExit(f"{profiler}/recording: no raw data to compare with")
    problems = []
    with tempfile.TemporaryDirectory() as room:
        for mode in MODES:
            output = Path(room, mode)
            output.mkdir()
            found = [*_run(arguments.msprof, mode, profiler, output)]
            if mode == "all":
                found += [*_compare_steps(run, output / RESULTS), *_compare_calls(run, output / RESULTS)]
            print(f"cluster -m {mode:22} {'ok' if not found else ''}")
            print("".join(f"    {problem}\n" for problem in found), end="")
            problems += found
    raise SystemExit(1 if problems else 0)


def _run(command: Path, mode: str, directory: Path, output: Path) -> Iterator[str]:
    arguments = [str(command), "cluster", "-m", mode, "-d", str(directory), "-o", str(output)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"exit status {done.returncode}"
    yield from (line for line in (done.stdout + done.stderr).splitlines() if _TROUBLE.search(line))


def _compare_steps(run: Run, results: Path) -> Iterator[str]:
    """The step table against our breakdown."""
    file = results / "cluster_step_trace_time.csv"
    if not file.exists():
        yield f"made no {file.name}"
        return
    theirs = pl.read_csv(file).filter(pl.col("Type") == "rank")
    theirs = theirs.select(pl.col("Index").cast(pl.Int32).alias("rank"), pl.col("Step").cast(pl.Int32), *COLUMNS)
    ours = run.analyse("breakdown").select(
        "rank", pl.col("step").alias("Step"), *((expression / 1000).alias(name) for name, expression in COLUMNS.items())
    )
    if theirs.height != ours.height:
        yield f"has {theirs.height} steps, ours {ours.height}"
    both = ours.join(theirs, on=["rank", "Step"], suffix="_theirs")
    if both.height != ours.height:
        yield "other steps or ranks than ours"
    for name in COLUMNS:
        worst = (both[name] - both[f"{name}_theirs"]).abs().max()
        if both.height and (worst is None or float(str(worst)) > ROUNDING_US):
            yield f"{name} differs by up to {worst} us"
    print(f"    {both.height} steps of {both['rank'].n_unique()} ranks compared, {len(COLUMNS)} columns each")


def _compare_calls(run: Run, results: Path) -> Iterator[str]:
    """How many calls of communication it found."""
    if not run.has("collectives"):
        return
    file = results / "cluster_communication.json"
    if not file.exists():
        yield f"made no {file.name}"
        return
    theirs = 0
    for steps in json.loads(file.read_bytes()).values():
        for calls in steps.values():
            theirs += sum(len(ranks) for name, ranks in calls.items() if not name.startswith("Total Op Info"))
    ours = run.table("collectives").filter(pl.col("step").is_not_null()).select(pl.len()).collect().item()
    if theirs != ours:
        yield f"{theirs} communication calls, ours {ours}"
    print(f"    {theirs} communication calls")


if __name__ == "__main__":
    main()
