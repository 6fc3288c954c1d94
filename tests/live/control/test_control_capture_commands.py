"""`stepscope live capture` and `stepscope live stacks` with a manager, nodes and simulated workers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from control_rig import Rig, run_rig

from stepscope.errors import StepscopeError
from stepscope.live.capture import room
from stepscope.live.capture.stacks import Frame, Thread, text_of
from stepscope.live.messages import Capture, Captured, Check, Checked


async def command(rig: Rig, *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    said = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "stepscope", "live", *words, "--manager", f"127.0.0.1:{rig.port}"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ},
    )
    return said.returncode, said.stdout, said.stderr


def captured(rank: int, directory: Path) -> Any:
    """Answers to captures as a worker would, with a file."""

    def answer(request: Capture) -> Captured:
        made = room.new_capture(directory / str(rank), request.capture)
        (made / "trace.json").write_text("{}")
        steps = [request.first_step, request.first_step + request.steps - 1]
        return Captured(rank, request.capture, [str(made / "trace.json")], steps, directory=str(made))

    return answer


def test_profiles_are_listed_and_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        for rank in (0, 3):
            worker = rig.start_worker(rank, host="elsewhere")
            worker.answers[Capture] = captured(rank, tmp_path)
        await rig.ranks(0, 3)

        code, out, error = await command(rig, "capture", "--ranks", "0,3", "--steps", "4", "-o", str(tmp_path / "out"))

        assert (code, error) == (0, "")
        assert out.splitlines()[-1] == f"Next: stepscope analyze {tmp_path}/out/rank-0 {tmp_path}/out/rank-3"
        assert (tmp_path / "out" / "rank-3" / "trace.json").read_text() == "{}"
        requests = [one for worker in rig.workers.values() for one in worker.received if isinstance(one, Capture)]
        assert [one.steps for one in requests] == [4, 4]
        assert requests[0].first_step == requests[1].first_step

    run_rig(scenario, monkeypatch)


def test_a_rank_without_a_profile_is_named_and_changes_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        rig.start_worker(0).answers[Capture] = captured(0, tmp_path)
        rig.start_worker(1).answers[Capture] = lambda request: Captured(1, request.capture, error="it is busy")
        await rig.ranks(0, 1)

        code, out, _ = await command(rig, "capture", "--json")
        unknown, _, error = await command(rig, "capture", "--ranks", "9")
        other, _, reason = await command(rig, "capture", "job2")

        answer = json.loads(out)
        assert code == 1
        assert [row["error"] for row in answer["ranks"]] == ["", "it is busy"]
        assert (unknown, other) == (2, 2)
        assert "rank 9" in error
        assert "job2" in reason

    run_rig(scenario, monkeypatch)


def test_stacks_are_merged_over_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(_process: int) -> str:
        return text_of([Thread("", [Frame("load", "/home/me/data.py", 4)], is_main=True)])

    async def refuse(_process: int) -> str:
        raise StepscopeError("py-spy is not installed on this host")

    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node("a", take_stacks=take)
        await rig.start_node("b", take_stacks=refuse)
        for rank in range(4):
            rig.start_worker(rank, node="b" if rank == 3 else "a")
        await rig.ranks(0, 1, 2, 3)

        code, out, _ = await command(rig, "stacks")
        whole, tree, _ = await command(rig, "stacks", "--ranks", "0-2", "--tree")

        assert code == 1
        assert out.splitlines() == [
            "Ranks 0-2 in load at data.py:4",
            "No stacks of rank 3: py-spy is not installed on this host",
        ]
        assert whole == 0
        assert tree.splitlines()[0] == "load (data.py:4)  [0-2]"

    run_rig(scenario, monkeypatch)


def test_a_difference_that_is_no_larger_than_between_rounds_is_not_called_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        rounds = {0: [10, 12, 13], 1: [14, 11, 13]}
        for rank, times in rounds.items():
            left = iter(times)

            def answer(request: Check, rank: int = rank, left: Any = left) -> Checked:
                return Checked(rank, request.check, {"gemm_ns": next(left) * 10**6, "gemm_flops": 10**9})

            rig.start_worker(rank).answers[Check] = answer
        await rig.ranks(0, 1)

        code, out, _ = await command(rig, "check")

        assert code == 0
        assert out.splitlines() == [
            "Rank 0: matrix product 12.00 ms (10.00 ms to 13.00 ms), 0.08 TFLOP/s, no clear difference",
            "Rank 1: matrix product 13.00 ms (11.00 ms to 14.00 ms), 0.08 TFLOP/s, no clear difference",
        ]

    run_rig(scenario, monkeypatch)


def test_checks_are_shown_beside_the_median(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        for rank, time_ns in ((0, 10_000_000), (1, 10_000_000), (2, 30_000_000)):
            found = {"gemm_ns": time_ns, "gemm_best_ns": time_ns, "gemm_flops": 10**9}
            found |= {"link_0_ns": 4 << 20, "link_0_latency_ns": 5000} if rank else {}
            answer = Checked(rank, "", found)
            rig.start_worker(rank).answers[Check] = lambda request, answer=answer: msgspec.structs.replace(
                answer, check=request.check
            )
        await rig.ranks(0, 1, 2)

        code, out, error = await command(rig, "check", "--link")
        nothing, _, reason = await command(rig, "check", "--no-gemm")

        assert (code, error) == (0, "")
        assert "Rank 2: matrix product 30.00 ms (30.00 ms to 30.00 ms), 0.03 TFLOP/s, 3.00x the median" in out
        assert "Rank 0: matrix product 10.00 ms (10.00 ms to 10.00 ms), 0.10 TFLOP/s, no clear difference" in out
        assert "Rank 1 to 0: 1.00 GB/s, round trip 5.0 us" in out
        assert nothing == 2
        assert "nothing to measure" in reason

    run_rig(scenario, monkeypatch)
