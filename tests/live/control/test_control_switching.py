"""Switching a job whose parts come, go and come back."""

from __future__ import annotations

import asyncio
import shutil
from typing import Any, ClassVar

import pytest
from control_rig import Rig, run_rig, until

from stepscope.errors import StepscopeError
from stepscope.live.control.bounds import BOUNDS, Bounds
from stepscope.live.control.security import Insecure, Security
from stepscope.live.messages import Apply

COMMUNICATION = {"communication": "on"}
ALL = ["step", "fp", "dataloader", "checkpoint", "communication"]


def test_a_switch_reaches_every_rank_and_each_acknowledges_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        for node in ("a", "b"):
            await rig.start_node(node)
        for rank in range(4):
            rig.start_worker(rank, "ab"[rank // 2])
        await rig.ranks(0, 1, 2, 3)

        async with rig.client() as client:
            switched = await client.switch(COMMUNICATION, wait_s=10)

        assert (switched.revision, switched.on, switched.applied, switched.pending) == (1, ALL, [0, 1, 2, 3], [])
        assert all(worker.switches == ALL for worker in rig.workers.values())

    run_rig(scenario, monkeypatch)


def test_a_switch_that_does_not_exist_is_refused_by_name_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        async with rig.client() as client:
            for changes, words in (
                ({"stap": "on"}, "'stap' is not a switch"),
                ({"step": "On"}, "'step' is 'On'; it must be on or off"),
            ):
                with pytest.raises(StepscopeError, match=words):
                    await client.switch(changes)
        assert rig.manager.board.requested.revision == 0

    run_rig(scenario, monkeypatch)


def test_a_late_rank_gets_the_state_at_once_and_nobody_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        rig.start_worker(0, world_size=2)
        await rig.ranks(0)
        async with rig.client() as client:
            assert (await client.switch(COMMUNICATION, wait_s=10)).applied == [0]

        late = rig.start_worker(1, world_size=2)

        await until(lambda: late.switches == ALL)
        await until(lambda: rig.manager.board.acknowledged[1].revision == 1)

    run_rig(scenario, monkeypatch)


def test_a_restarted_rank_gets_the_state_and_the_old_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        changes: list[str] = []
        rig.manager.listen(lambda event: changes.append(getattr(event, "change", "")))
        old = rig.start_worker(0, retry_s=60)
        await rig.ranks(0)
        async with rig.client() as client:
            await client.switch(COMMUNICATION, wait_s=10)

        new = rig.start_worker(0, pid=old.pid + 1)

        await until(lambda: new.switches == ALL and rig.manager.board.acknowledged[0].revision == 1)
        assert old.refused == [f"another process ({new.pid}) is rank 0 now"]
        assert [change for change in changes if change] == ["joined", "restarted"]

    run_rig(scenario, monkeypatch)


def test_an_older_process_does_not_replace_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        await rig.start_node("b")
        rig.start_worker(0, pid=7)
        await rig.ranks(0)

        old = rig.start_worker(0, pid=6, started_at_ns=1, retry_s=60)
        elsewhere = rig.start_worker(0, "b", pid=6, started_at_ns=1, retry_s=60)

        await until(lambda: bool(old.refused and elsewhere.refused))
        assert old.refused == ["a newer process (7) is rank 0"]
        assert elsewhere.refused == ["a newer process (7 on host) is rank 0 of this job"]

    run_rig(scenario, monkeypatch)


def test_a_switch_survives_the_death_of_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(2)
        rig.stop_worker(1)
        async with rig.client() as client:
            await client.switch(COMMUNICATION)

        await rig.stop_manager()
        late = rig.start_worker(1)
        await until(lambda: late.switches == ALL)  # from the proxy, while there is no manager
        await rig.start_manager()
        await rig.ranks(0, 1)

        assert rig.manager.board.requested.revision == 1
        await until(lambda: rig.manager.board.pending() == [])
        async with rig.client() as client:
            assert (await client.switch({"all": "off"}, wait_s=10)).applied == [0, 1]

    run_rig(scenario, monkeypatch)


def test_a_manager_that_has_lost_its_disk_learns_the_state_from_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        (worker,) = await rig.start(1)
        async with rig.client() as client:
            for state in ("on", "off", "on"):
                await client.switch({"communication": state}, wait_s=10)
        await rig.stop_manager()
        shutil.rmtree(rig.room / "state")

        await rig.start_manager()
        await rig.ranks(0)

        assert rig.manager.board.requested.revision == 3
        assert rig.manager.board.requested.switches.as_names() == ALL == worker.switches

    run_rig(scenario, monkeypatch)


def test_a_switch_made_while_a_proxy_is_dead_reaches_its_workers_when_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: Rig) -> None:
        (worker,) = await rig.start(1)
        await rig.stop_node()
        async with rig.client() as client:
            switched = await client.switch(COMMUNICATION)
        assert switched.pending == [0]

        await rig.start_node()

        await until(lambda: worker.switches == ALL and rig.manager.board.pending() == [])

    run_rig(scenario, monkeypatch)


def test_proxy_and_manager_that_both_died_learn_the_state_from_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(1)
        async with rig.client() as client:
            await client.switch(COMMUNICATION, wait_s=10)
        await rig.stop_node()
        await rig.stop_manager()
        shutil.rmtree(rig.room / "state")

        proxy = await rig.start_node()
        fresh = rig.start_worker(1)
        await until(lambda: fresh.switches == ALL)
        await rig.start_manager()
        await rig.ranks(0, 1)

        assert proxy.known == Apply(1, ALL)
        assert rig.manager.board.requested.revision == 1

    run_rig(scenario, monkeypatch)


def test_a_rank_that_has_missed_the_switch_is_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        (worker,) = await rig.start(1)
        worker.ignores = 2
        async with rig.client() as client:
            switched = await client.switch(COMMUNICATION, wait_s=10)

        assert switched.applied == [0]
        assert rig.manager.counts["sent_again"] >= 1

    run_rig(scenario, monkeypatch)


def test_a_rank_that_cannot_apply_the_switches_is_named_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start(2)
        rig.workers[1].error = "no hooks"
        async with rig.client() as client:
            switched = await client.switch(COMMUNICATION, wait_s=1)

        assert (switched.applied, switched.failed) == ([0], {1: "no hooks"})

    run_rig(scenario, monkeypatch)


def test_a_worker_of_another_job_is_refused_and_its_rank_stays_free(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        await rig.start_node("b")
        stranger = rig.start_worker(1, "b", job="other", retry_s=60)
        await until(lambda: rig.manager.job == "other")  # the first one decides
        right = rig.start_worker(0, job="job", retry_s=60)

        await until(lambda: bool(right.refused))

        assert "job other" in right.refused[0]
        assert list(rig.manager.ranks) == [1] and not stranger.refused

    run_rig(scenario, monkeypatch)


def test_a_manager_that_was_given_a_job_refuses_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("mine")
        await rig.start_node()
        worker = rig.start_worker(0, job="theirs", retry_s=60)
        await until(lambda: bool(worker.refused))
        assert "job mine" in worker.refused[0] and "theirs" in worker.refused[0]

        async with rig.client(job="theirs") as client:
            with pytest.raises(StepscopeError, match="serves job mine, not theirs"):
                await client.switch(COMMUNICATION)

    run_rig(scenario, monkeypatch)


def test_no_switch_is_acknowledged_before_it_is_known_where_to_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match="does not know its job"):
                await client.switch(COMMUNICATION)
        async with rig.client(job="job") as client:
            assert (await client.switch(COMMUNICATION)).revision == 1
        assert (rig.room / "state" / "job" / "switches.json").is_file()

    run_rig(scenario, monkeypatch)


def test_a_switch_that_cannot_be_kept_is_an_error_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        (rig.room / "state").write_text("a file where a directory should be")
        (worker,) = await rig.start(1)
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match="cannot be written"):
                await client.switch(COMMUNICATION)
        await asyncio.sleep(0.1)
        assert worker.revision == 0

    run_rig(scenario, monkeypatch)


def test_a_proxy_does_not_carry_the_switches_of_one_job_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        proxy = await rig.start_node()
        rig.start_worker(0, job="first", retry_s=60)
        await rig.ranks(0)
        async with rig.client() as client:
            await client.switch({"all": "off"}, wait_s=10)
        rig.stop_worker(0)
        await rig.stop_manager()

        await rig.start_manager("second")
        await until(lambda: proxy.job == "second")
        worker = rig.start_worker(0, job="second")
        await rig.ranks(0)

        assert rig.manager.board.requested.revision == 0 == proxy.known.revision
        assert worker.switches == ALL[:-1]

    run_rig(scenario, monkeypatch)


def test_a_manager_without_disk_learns_from_a_proxy_what_no_worker_has_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        proxy = await rig.start_node()
        worker = rig.start_worker(0)
        await rig.ranks(0)
        worker.ignores = 1000
        async with rig.client() as client:
            await client.switch(COMMUNICATION)
        await until(lambda: proxy.known.revision == 1)
        await rig.stop_manager()
        shutil.rmtree(rig.room / "state")

        await rig.start_manager()
        await rig.ranks(0)

        assert rig.manager.board.requested.revision == 1
        worker.ignores = 0
        await until(lambda: worker.switches == ALL)

    run_rig(scenario, monkeypatch)


def test_a_manager_can_forget_what_an_earlier_one_has_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        async with rig.client() as client:
            await client.switch(COMMUNICATION)
        await rig.stop_manager()
        await rig.start_manager("job", forgets=True)

        assert rig.manager.board.requested.revision == 0

    run_rig(scenario, monkeypatch)


class Interrupted(Security):
    """Its files cannot be read the first time, e.g. since a certificate is being replaced."""

    tries: ClassVar[list[str]] = []

    def channel(self, target: str, bounds: Bounds = BOUNDS) -> Any:
        self.tries.append(target)
        if len(self.tries) == 1:
            raise Insecure("ca.pem: cannot be read")
        return super().channel(target, bounds)


def test_a_proxy_tries_again_whatever_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node(security=Interrupted())
        rig.start_worker(0)

        await rig.ranks(0)

    run_rig(scenario, monkeypatch)
