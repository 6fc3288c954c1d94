"""A recording with Python stacks shows the user's functions, and none of the recorder's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stepscope.pages.reasons import missing_data
from stepscope.run import open_run

pytest.importorskip("torch")

SCRIPT = """
import time, torch
from stepscope import Profiler

def pause():
    time.sleep(0.6)  # meanwhile the recorder's own thread works

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Profiler(output_path="out", host_stack=True):
    for step in range(2):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        if step == 0:
            pause()
        optimizer.step()
"""


def test_functions_are_the_users_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "job.py"], cwd=tmp_path, check=True, capture_output=True, timeout=120)

    run = open_run(tmp_path / "out", use_store=False)

    names = run.table("slices").filter(pl.col("category") == "python").select("name").collect()["name"]
    # Files alone: PyTorch may name a module that it imports itself by a text in memory that was freed and used again.
    assert not names.str.contains("stepscope/record/|psutil/").any()
    (sleep,) = run.analyse("functions").filter(pl.col("function").str.contains("sleep")).to_dicts()
    assert sleep["called_by"] == "pause (job.py:5)"
    assert 0.6e9 <= sleep["self_ns"] == sleep["idle_ns"]
    assert not any(line.startswith("stacks") for line in missing_data(run))
