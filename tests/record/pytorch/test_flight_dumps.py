"""Dumps that PyTorch itself writes while a job hangs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stepscope import open_run

pytest.importorskip("torch")

SCRIPT = """
import os, sys, threading, time
import torch, torch.distributed as dist
from torch._C import _distributed_c10d as c10d

folder, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
for _ in range(3):
    dist.all_reduce(torch.ones(8))

def dump():
    time.sleep(2)
    later = time.time_ns() + 15 * 10**9  # as if they had waited longer
    with open(f"{folder}/nccl_trace_rank_{rank}", "wb") as file:
        file.write(c10d._dump_fr_trace())
    os.utime(file.name, ns=(later, later))
    text = c10d._dump_fr_trace_json()
    with open(f"{folder}/json/rank_{rank}.json", "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.utime(file.name, ns=(later, later))
    open(f"{folder}/done_{rank}", "w").close()
    while not os.path.exists(f"{folder}/done_{1 - rank}"):
        time.sleep(0.01)  # the call of the other rank fails as soon as this process ends
    os._exit(0)

threading.Thread(target=dump).start()
if rank == 0:
    dist.all_gather([torch.ones(4), torch.ones(4)], torch.ones(4))
time.sleep(60)
"""


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_a_hang_of_gloo_is_explained(form: str, dumps: Path) -> None:
    run = open_run(dumps / form)

    found = run.analyse("hangs").select("kind", "ranks", "waiting_ranks", "operation", "sequence").rows()

    assert found == [("missing", "1", "0", "all_gather", 4)]
    places = run.analyse("unfinished_calls")["place"].to_list()
    assert all(("<module>" in place) if form == "pickle" else place is None for place in places)


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hang")
    (folder / "json").mkdir()
    script = folder / "train.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "50"}
    ranks = [
        subprocess.Popen([sys.executable, str(script), str(folder), str(rank)], env=environment) for rank in range(2)
    ]
    for rank in ranks:
        assert rank.wait(timeout=120) == 0
    (folder / "pickle").mkdir()
    for file in folder.glob("nccl_trace_rank_*"):
        file.rename(folder / "pickle" / file.name)
    return folder
