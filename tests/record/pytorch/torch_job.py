"""Jobs of two processes that tests start: `python torch_job.py NAME RANK RENDEZVOUS OUT`, see `two`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def two(name: str, tmp_path: Path, port: int | None = None) -> list[dict[str, Any]]:
    """Run a job of two ranks and give what each has written."""
    where = tmp_path.joinpath("rendezvous").as_uri() if port is None else f"tcp://127.0.0.1:{port}"
    outs = [tmp_path / f"out-{rank}.json" for rank in range(2)]
    command = [sys.executable, "-W", "error", __file__, name]
    jobs = [subprocess.Popen([*command, str(rank), where, str(out)]) for rank, out in enumerate(outs)]
    assert [job.wait(timeout=120) for job in jobs] == [0, 0]
    return [json.loads(out.read_text()) for out in outs]


def init(rank: int, where: str) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=where, rank=rank, world_size=2)


def collectives(rank: int, where: str) -> dict[str, Any]:
    import torch
    import torch.distributed as dist
    from torch_recorder import attached

    with attached() as recorder:
        init(rank, where)
        pair = dist.new_group([0, 1], group_desc="pair")
        ones = torch.ones(4, dtype=torch.float64)
        dist.all_reduce(ones)
        dist.all_reduce(ones, group=pair, async_op=True).wait()
        dist.all_gather([torch.empty(4, dtype=torch.float64) for _ in range(2)], ones)
        dist.broadcast(ones, 0)
        dist.send(ones, 1) if rank == 0 else dist.recv(ones, src=0)
        operation = dist.isend if rank == 0 else dist.irecv
        for work in dist.batch_isend_irecv([dist.P2POp(operation, ones, 1 - rank, pair)]):
            work.wait()
        dist.all_gather_object([None, None], {"rank": rank})
        dist.barrier()
        around, who = recorder.backend.surroundings(), recorder.backend.identity()
        marks = [(mark[1], json.loads(mark[6])) for mark in recorder.of("collective")]
        name = dist.distributed_c10d._world.pg_names[pair]
        dist.destroy_process_group()
        changes = recorder.identity_changes
    return {"marks": marks, "who": vars(who), "around": vars(around), "pair": name, "changes": changes}


def windows(rank: int, where: str) -> dict[str, Any]:
    import torch
    from torch.nn.parallel import DistributedDataParallel
    from torch_recorder import Net, attached, batches, train

    init(rank, where)  # before the hooks are there
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    directory = Path(sys.argv[4]).parent / f"rank-{rank}"
    directory.mkdir()
    with attached() as recorder:
        recorder.backend.windows.begin(directory)
        train(model, optimizer, batches(3))
        recorder.finish(directory)
        torch.distributed.destroy_process_group()
    return {"ended": recorder.ended, "forward": [mark[1] for mark in recorder.of("forward")]}


def clock(rank: int, where: str, host: str | None = "own", shift_ns: int = 40_000_000_000) -> dict[str, Any]:
    import torch.distributed as dist

    from stepscope.record.torch.clock import ClockOffset

    init(rank, where)
    shifted = ClockOffset(now_ns=lambda: time.time_ns() + rank * shift_ns, host=host and f"{host}-{rank}")
    shifted.attach()
    end = time.monotonic() + 60
    while (result := shifted.result) is None and time.monotonic() < end:
        time.sleep(0.01)
    if rank == 0:
        dist.distributed_c10d._get_default_store().wait(["finished"])
    else:
        dist.distributed_c10d._get_default_store().set("finished", "")
    news = shifted.news
    shifted.stop()
    dist.destroy_process_group()
    return {"clock": result, "news": news}


def same_host(rank: int, where: str) -> dict[str, Any]:
    return clock(rank, where, host=None, shift_ns=0)


JOBS: dict[str, Callable[[int, str], dict[str, Any]]] = {
    "collectives": collectives,
    "windows": windows,
    "clock": clock,
    "same_host": same_host,
}

if __name__ == "__main__":
    Path(sys.argv[4]).write_text(json.dumps(JOBS[sys.argv[1]](int(sys.argv[2]), sys.argv[3])))
