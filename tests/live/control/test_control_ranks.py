"""Ranks that are lost, end or answer, and those who listen to the manager."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import msgspec
import pytest
from control_rig import Rig, run_rig, until

from stepscope.errors import StepscopeError
from stepscope.live.control.bounds import Bounds
from stepscope.live.messages import Capture, Captured, Check, Digest, Digests, Hello, Pulse, line_of
from stepscope.live.show.view import view_of
from stepscope.live.verdicts import Cause, Verdict

IMPATIENT = Bounds(retry_s=0.1, lost_after_s=0.6)
WORKER = """
import json, os, socket, sys, time
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
hello = {"type": "hello", "job": "job", "rank": 3, "pid": os.getpid(), "host": "h", "started_at_ns": time.time_ns()}
link.sendall(json.dumps(hello).encode() + b"\\n")
time.sleep(60)
"""


class FakeDetector:
    """Notes what it is told; finds one verdict, and fails on a rank."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.wants_communication = True

    def hello(self, hello: Hello) -> None:
        self.told.append(hello)

    def left(self, rank: int, now_ns: int) -> None:
        self.told.append(("left", rank))

    def digest(self, digest: Digest) -> None:
        if digest.rank == 1:
            raise RuntimeError("a mistake in the detector")
        self.told.append(digest)

    def pulse(self, pulse: Pulse, now_ns: int) -> None:
        self.told.append(pulse)

    def look(self, now_ns: int) -> list[Verdict]:
        return [Verdict("slow_compute:0", Cause.COMPUTE, [0], 1, now_ns, 1.3, 1000, 0.99)]


def test_a_rank_that_is_silent_is_lost_and_comes_back_when_it_is_heard_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        changes: list[str] = []
        rig.manager.listen(lambda event: changes.append(getattr(event, "change", "")))
        rig.start_worker(0)
        await rig.ranks(0)
        rig.stop_worker(0)
        await until(lambda: not rig.manager.ranks[0].alive)
        assert rig.manager.board.acknowledged == {}

        rig.start_worker(0, started_at_ns=rig.workers[0].started_at_ns)
        await rig.ranks(0)

        assert [change for change in changes if change] == ["joined", "lost", "returned"]

    run_rig(scenario, monkeypatch, IMPATIENT)


def test_the_end_of_a_process_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        changes: list[str] = []
        rig.manager.listen(lambda event: changes.append(getattr(event, "change", "")))
        process = subprocess.Popen([sys.executable, "-c", WORKER, str(rig.socket())])
        await rig.ranks(3)

        process.kill()
        process.wait()

        await until(lambda: "left" in changes, timeout_s=5)

    run_rig(scenario, monkeypatch, Bounds(retry_s=0.1, lost_after_s=60))


def test_a_command_that_names_an_unknown_rank_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match="no rank of the job is connected"):
                await client.stacks()
            for rank in (0, 1, 2):
                rig.start_worker(rank)
            await rig.ranks(0, 1, 2)
            for asked in (client.capture([1, 7, 9], 2), client.check([7, 9], ["gemm"]), client.stacks([7, 9])):
                with pytest.raises(StepscopeError, match=r"ranks 7,9: not connected\. Connected ranks: 0-2"):
                    await asked

    run_rig(scenario, monkeypatch)


def test_a_capture_goes_to_the_named_ranks_and_their_answers_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(3)
        begun: list[tuple[str, list[int]]] = []
        rig.manager.capture_begun.append(lambda name, ranks: begun.append((name, ranks)))
        rig.workers[0].answers = {Capture: lambda asked: Captured(0, asked.capture, ["/trace"], [5, 6])}
        rig.workers[2].answers = {Capture: lambda asked: Captured(2, asked.capture, error="busy")}

        async with rig.client() as client:
            answers = await client.capture([0, 2], 2, wait_s=10)

        assert [(one.rank, one.error) for one in answers.results] == [(0, ""), (2, "busy")]
        assert answers.pending == [] and begun == [(answers.id, [0, 2])]
        asked = [message for message in rig.workers[0].received if isinstance(message, Capture)]
        assert asked[0].steps == 2 and asked[0].first_step > 0
        assert not any(isinstance(message, Capture) for message in rig.workers[1].received)

    run_rig(scenario, monkeypatch)


def test_a_rank_that_restarts_fails_what_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        old = rig.start_worker(0, retry_s=60)
        await rig.ranks(0)
        name = await rig.manager.check([0], ["gemm"])
        await until(lambda: any(isinstance(message, Check) for message in old.received))

        rig.start_worker(0, pid=old.pid + 1)

        request = await rig.manager.results(name, 10)
        assert request.answers[0].error == "its process was restarted"

    run_rig(scenario, monkeypatch)


def test_a_switch_no_longer_waits_for_a_rank_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(2)
        rig.workers[1].ignores = 1000

        async with rig.client() as client:
            waiting = asyncio.create_task(client.switch({"communication": "on"}, wait_s=60))
            await until(lambda: rig.manager.board.pending() == [1])
            rig.stop_worker(1)
            switched = await asyncio.wait_for(waiting, 20)

        assert (switched.applied, switched.pending) == ([0], [])

    run_rig(scenario, monkeypatch)


def test_nobody_waits_for_stacks_from_a_node_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(1)
        await rig.stop_node()
        await until(lambda: not rig.manager.nodes)

        found = await asyncio.wait_for(rig.manager.stacks([0]), 20)

        assert found == {0: ("", "its node is away")}

    run_rig(scenario, monkeypatch, Bounds(retry_s=0.1, lost_after_s=60))


def test_stacks_come_from_the_proxies_of_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def take(pid: int) -> str:
        if pid == 0:
            raise StepscopeError("no")
        return f"stack of {pid}"

    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node("a", take_stacks=take)
        await rig.start_node("b")
        rig.start_worker(0, "a")
        rig.start_worker(1, "b")
        await rig.ranks(0, 1)
        async with rig.client() as client:
            found = await client.stacks()

        assert found[0][0].startswith("stack of ")
        assert found[1] == ("", "this node takes no stacks")

    run_rig(scenario, monkeypatch)


def test_the_detector_gets_what_ranks_say_once_and_its_verdicts_reach_listeners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: Rig) -> None:
        detector = FakeDetector()
        await rig.start_manager(detector=detector)
        await rig.start_node()
        heard: list[object] = []

        def broken(_event: object) -> None:
            raise RuntimeError("a mistake in a listener")

        rig.manager.listen(broken)
        rig.manager.listen(heard.append)
        rig.start_worker(0)
        rig.start_worker(1)
        await until(lambda: any(isinstance(one, Verdict) for one in heard))
        await until(lambda: any(isinstance(one, Digest) for one in detector.told))
        await until(lambda: any(isinstance(one, Digest) and one.rank == 1 for one in heard))

        node = next(iter(rig.nodes.values())).proxy
        again = next(one for one in detector.told if isinstance(one, Digest))
        before = detector.told.count(again)
        node._outbox.digests(0, line_of(Digests([again])))
        await asyncio.sleep(1.5)

        assert detector.told.count(again) == before == 1
        assert rig.manager.wants_communication
        assert list(rig.manager.verdicts) == ["slow_compute:0"]

    run_rig(scenario, monkeypatch)


def test_a_verdict_that_cannot_be_passed_on_does_not_end_the_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Verdict] = []

    def fails(verdict: Verdict) -> Verdict:
        calls.append(verdict)
        raise RuntimeError("a mistake")

    async def scenario(rig: Rig) -> None:
        manager = await rig.start_manager(detector=FakeDetector())
        manager.amend = fails

        await until(lambda: len(calls) > 1)

    run_rig(scenario, monkeypatch)


HANG = Verdict("hang", Cause.HANG, [], 7, 1, None, None, 0.9)


class FindsOnce(FakeDetector):
    """Finds a hang, once."""

    def look(self, now_ns: int) -> list[Verdict]:
        found = [HANG] if any(isinstance(one, Hello) for one in self.told) and "found" not in self.told else []
        self.told += ["found"] * len(found)
        return found


def test_no_verdict_lasts_and_no_capture_runs_when_all_ranks_have_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        manager = await rig.start_manager(detector=FindsOnce())
        view = view_of(manager)
        await rig.start_node()
        processes = [
            subprocess.Popen([sys.executable, "-c", WORKER.replace('"rank": 3', f'"rank": {rank}'), str(rig.socket())])
            for rank in (3, 4)
        ]
        await rig.ranks(3, 4)
        await until(lambda: "hang" in manager.verdicts)
        await manager.capture([3, 4], 8)

        processes[0].kill()
        processes[0].wait()
        await until(lambda: not manager.ranks[3].alive, timeout_s=5)
        assert not manager.verdicts["hang"].is_over
        assert view.status().captures[0].state == "running"
        processes[1].kill()
        processes[1].wait()
        await until(lambda: not manager.ranks[4].alive, timeout_s=5)

        status = view.status()
        assert status.open == [] and [one.verdict.key for one in status.over] == ["hang"]
        (capture,) = status.captures
        assert (capture.state, capture.error) == ("failed", "rank 4: it has left")
        manager.explain(msgspec.structs.replace(HANG, ranks=[4], explanation="late"))
        assert (manager.verdicts["hang"].is_over, manager.verdicts["hang"].explanation) == (True, "late")

    run_rig(scenario, monkeypatch, Bounds(retry_s=0.1, lost_after_s=60))


def test_a_verdict_lasts_again_when_lost_ranks_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        manager = await rig.start_manager(detector=FindsOnce())
        await rig.start_node()
        rig.start_worker(0)
        await until(lambda: "hang" in manager.verdicts)
        await rig.stop_node()
        await until(lambda: not manager.ranks[0].alive)
        assert manager.verdicts["hang"].is_over

        await rig.start_node()
        await until(lambda: manager.ranks[0].alive)

        assert manager.verdicts["hang"] == HANG

    run_rig(scenario, monkeypatch)


def test_clients_see_the_status_and_events(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope.live.show.event_types import RankJoined, SwitchRequested, from_json
    from stepscope.live.show.status import from_json as status_from_json

    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        await rig.start_node()
        async with rig.client() as client:
            events = client.events(["rank_joined", "switch_requested"])
            first = asyncio.create_task(anext(events))
            await asyncio.sleep(0.2)
            rig.start_worker(0)
            joined = from_json((await asyncio.wait_for(first, 10))[0])
            await client.switch({"step": "off"}, by="me")
            requested = from_json((await asyncio.wait_for(anext(events), 10))[0])
            status = status_from_json(await client.status())

        assert isinstance(joined, RankJoined) and joined.rank == 0
        assert isinstance(requested, SwitchRequested) and requested.by == "me"
        assert [rank.rank for rank in status.ranks] == [0]

    run_rig(scenario, monkeypatch)
