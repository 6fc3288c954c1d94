"""The ConfigMap of a job: edits switch it, and what was requested elsewhere is written back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("kubernetes")

from fake_cluster import KEY, FakeCluster

from stepscope.live.control.board import Board
from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, DEFAULT, NONE, Switches
from stepscope.live.switching import config_map, config_map_following
from stepscope.live.switching.config_map import KubernetesProblem, connect, name_of
from stepscope.live.switching.config_map_following import follow_config_map

NAME = "data-trace-pretrain"
STEP = NONE.with_changes({Kind.STEP: True})


def text(state: Switches) -> str:
    return json.dumps(state.as_guide())


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    yield fake
    fake.close()


@asynccontextmanager
async def following(board: Board, cluster: FakeCluster, *, writes: bool = False) -> AsyncIterator[None]:
    task = asyncio.ensure_future(
        follow_config_map(board, cluster.cluster(), "pretrain", writes=writes, first_wait_s=0.02)
    )
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not within 20 s")


def run(function: Callable[[], Awaitable[None]]) -> None:
    async def awaited() -> None:
        await asyncio.wait_for(function(), 40)

    asyncio.run(awaited())


def test_the_config_map_acts_at_the_start_and_at_each_edit(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            cluster.put("data-trace-other", {KEY: text(STEP)})
            cluster.put(NAME, {KEY: text(NONE)})
            await until(lambda: board.requested.switches == NONE)

    run(act)

    assert board.requested.by == "ConfigMap default/data-trace-pretrain"
    assert set(cluster.requests) == {"list", "watch"}


def test_the_last_change_wins_whichever_way_it_came(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            await board.request({Kind.STEP: False}, "cli")
            before = cluster.watching()
            cluster.cut()
            await until(lambda: cluster.watching() > before)
            assert board.requested.by == "cli", "seeing the same again is no change"
            cluster.put(NAME, {KEY: text(STEP)})
            await until(lambda: board.requested.switches == STEP)

    run(act)


def test_an_edit_while_the_connection_is_away_is_seen_afterwards(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            await until(lambda: cluster.watching() == 1)
            cluster.broken = True
            cluster.cut()
            await until(lambda: "500" in caplog.text)
            cluster.put(NAME, {KEY: text(STEP)})
            cluster.broken = False
            await until(lambda: board.requested.switches == STEP)

    run(act)

    assert len([each for each in caplog.records if "500" in each.getMessage()]) == 1


@pytest.mark.parametrize("forget", ["expire", "cut"])
def test_a_version_that_is_too_old_is_listed_again(forget: str, cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            await until(lambda: cluster.watching() == 1)
            cluster.expire()
            if forget == "cut":
                cluster.cut()
            await until(lambda: cluster.requests.count("list") > 1)
            cluster.put(NAME, {KEY: text(STEP)})
            await until(lambda: board.requested.switches == STEP)

    run(act)


def test_a_watch_that_ends_in_time_goes_on_from_the_version_that_it_reached(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_map, "WATCH_S", 1)
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: cluster.watching() == 3)
            cluster.put(NAME, {KEY: text(STEP)})
            await until(lambda: board.requested.switches == STEP)

    run(act)

    assert cluster.requests.count("list") == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({KEY: '{"Step":"On"}'}, "'Step' is 'On'; it must be on or off"),
        ({KEY: "{"}, "not valid JSON"),
        ({"other": "x"}, "it has no key profilingSwitch"),
        (None, "it has no key profilingSwitch"),
    ],
)
def test_bad_content_is_reported_by_name_and_the_state_stays(
    data: dict[str, str] | None, words: str, cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            cluster.put(NAME, data)
            await until(lambda: words in caplog.text)

    run(act)

    assert board.requested.switches == ALL
    assert "ConfigMap default/data-trace-pretrain: " in caplog.text


def test_a_deleted_config_map_leaves_the_state_and_acts_again_when_it_says_something_else(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            await until(lambda: cluster.watching() == 1)
            cluster.delete(NAME)
            await until(lambda: "there is no such ConfigMap. The switches stay as they are" in caplog.text)
            assert board.requested.switches == ALL
            cluster.put(NAME, {KEY: text(STEP)})
            await until(lambda: board.requested.switches == STEP)

    run(act)


def test_a_label_other_than_true_sets_it_aside_and_a_missing_one_is_reported(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(STEP)}, {"reset": "false"})

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await until(lambda: "its label reset is 'false'" in caplog.text)
            assert board.requested.revision == 0
            await board.request({Kind.STEP: False}, "cli")
            cluster.put(NAME, {KEY: text(ALL)}, {})
            await until(lambda: "it lacks the label reset" in caplog.text)
            await until(lambda: cluster.maps[NAME]["metadata"]["labels"] == {"reset": "true"})

    run(act)

    assert board.requested.switches == DEFAULT.with_changes({Kind.STEP: False})
    assert json.loads(cluster.text(NAME)) == board.requested.switches.as_guide()


def test_denied_access_names_the_rule_that_is_missing_and_works_once_it_is_there(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(STEP)})
    cluster.denied = {"list"}

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: cluster.requests.count("list") > 2)
            cluster.denied = set()
            await until(lambda: board.requested.switches == STEP)

    run(act)

    (message,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert message == (
        "ConfigMap default/data-trace-pretrain: it may not be watched (403 Forbidden). Add to the Role of the "
        "manager's service account in namespace default: "
        '{apiGroups: [""], resources: [configmaps], resourceNames: '
        "[data-trace-pretrain], verbs: [get, list, watch]}"
    )


def test_a_request_from_elsewhere_is_written_only_if_asked(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})

    async def act() -> None:
        async with following(board, cluster):
            await until(lambda: board.requested.switches == ALL)
            await board.request({Kind.STEP: False}, "cli")
            await asyncio.sleep(0.1)

    run(act)

    assert not {"get", "patch", "create"} & set(cluster.requests)


def test_the_config_map_is_created_with_its_label_and_the_owner_of_the_pod(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("POD_NAME", "pretrain-0")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "pretrain", "uid": "u-1", "controller": True}
    cluster.pods["pretrain-0"] = {"metadata": {"name": "pretrain-0", "uid": "u-2", "ownerReferences": [owner]}}
    board = Board()

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await asyncio.sleep(0.1)
            assert NAME not in cluster.maps, "nobody has switched yet"
            await board.request({Kind.STEP: False}, "cli")
            await until(lambda: NAME in cluster.maps)

    run(act)

    created = cluster.maps[NAME]
    assert json.loads(created["data"][KEY]) == DEFAULT.with_changes({Kind.STEP: False}).as_guide()
    assert created["metadata"]["labels"] == {"reset": "true"}
    assert created["metadata"]["ownerReferences"] == [
        {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
    ]
    assert not caplog.records


@pytest.mark.parametrize("refused", [True, False])
def test_without_an_owner_the_pod_owns_it_or_nobody_if_the_pod_may_not_be_read(
    refused: bool, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAME", "pretrain-0")
    cluster.pods["pretrain-0"] = {"metadata": {"name": "pretrain-0", "uid": "u-2"}}
    cluster.denied = {"get pods"} if refused else set()
    board = Board()

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await board.request({Kind.STEP: False}, "cli")
            await until(lambda: NAME in cluster.maps)

    run(act)

    owners = cluster.maps[NAME]["metadata"].get("ownerReferences")
    assert owners == (None if refused else [{"apiVersion": "v1", "kind": "Pod", "name": "pretrain-0", "uid": "u-2"}])


def test_an_update_keeps_what_else_is_in_the_config_map(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: '{"Future":"on","step":"on","FP":"on"}', "note": "by hand"}, {"reset": "true", "team": "a"})

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await board.request(dict.fromkeys(Kind, False), "cli")
            await until(lambda: "patch" in cluster.requests)
            await until(lambda: cluster.maps[NAME]["metadata"]["resourceVersion"] == "102")

    run(act)

    assert json.loads(cluster.text(NAME)) == {"Future": "on", **NONE.as_guide()}
    assert cluster.maps[NAME]["data"]["note"] == "by hand"
    assert cluster.maps[NAME]["metadata"]["labels"] == {"reset": "true", "team": "a"}


def test_fast_requests_are_not_undone_by_what_was_written_for_earlier_ones(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(DEFAULT)})
    cluster.answers_after_s = 0.05

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await until(lambda: board.requested.revision == 1)
            for number in range(21):
                await board.request({Kind.STEP: bool(number % 2)}, f"cli {number}")
                await asyncio.sleep(0.02)
                assert board.requested.by == f"cli {number}"
            await board.request({Kind.STEP: True}, "cli")
            while json.loads(cluster.text(NAME))["Step"] == "off":
                await asyncio.sleep(0.001)
            await board.request({Kind.STEP: False}, "cli at last")
            await until(lambda: json.loads(cluster.text(NAME)) == board.requested.switches.as_guide())
            await asyncio.sleep(0.3)

    run(act)

    assert board.requested.by == "cli at last"
    assert board.requested.switches == DEFAULT.with_changes({Kind.STEP: False})
    assert json.loads(cluster.text(NAME)) == board.requested.switches.as_guide()


def test_an_edit_at_the_same_time_as_a_request_leaves_both_sides_with_one_state(cluster: FakeCluster) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(DEFAULT)})
    cluster.before_patch = lambda: cluster.put(NAME, {KEY: text(STEP)})

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await until(lambda: board.requested.revision == 1)
            await board.request({Kind.CHECKPOINT: False}, "cli")
            await until(lambda: board.requested.switches == STEP)
            await asyncio.sleep(0.2)

    run(act)

    assert board.requested.switches == STEP
    assert json.loads(cluster.text(NAME)) == STEP.as_guide()


def test_a_config_map_that_may_not_be_written_names_the_rule_and_is_written_later(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    board = Board()
    cluster.put(NAME, {KEY: text(ALL)})
    cluster.denied = {"patch"}

    async def act() -> None:
        async with following(board, cluster, writes=True):
            await until(lambda: board.requested.switches == ALL)
            await board.request({Kind.STEP: False}, "cli")
            await until(lambda: cluster.requests.count("patch") > 2)
            cluster.denied = set()
            await until(lambda: json.loads(cluster.text(NAME))["Step"] == "off")

    run(act)

    (message,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "it may not be written (403 Forbidden)" in message
    assert "verbs: [get, list, watch, patch]}" in message
    assert "verbs: [create]}" in message
    assert board.requested.by == "cli"


def test_a_restarted_manager_writes_what_was_requested_unless_the_config_map_was_edited_since(
    cluster: FakeCluster, tmp_path: Path
) -> None:
    cluster.put(NAME, {KEY: text(ALL)})

    def board() -> Board:
        return Board(tmp_path / "switches.json")

    async def act() -> None:
        first = board()
        async with following(first, cluster):  # does not write
            await until(lambda: first.requested.switches == ALL)
            await first.request({Kind.STEP: False}, "cli")
        second = board()
        async with following(second, cluster, writes=True):
            await until(lambda: json.loads(cluster.text(NAME))["Step"] == "off")
        cluster.put(NAME, {KEY: text(STEP)})
        third = board()
        async with following(third, cluster, writes=True):
            await until(lambda: third.requested.switches == STEP)

    run(act)

    assert json.loads(cluster.text(NAME)) == STEP.as_guide()


@pytest.mark.parametrize("job", ["Pretrain", "", "a/b", "-a", "x" * 250, "a b"])
def test_names_that_kubernetes_does_not_allow_are_refused(job: str) -> None:
    with pytest.raises(KubernetesProblem, match="cannot be the name of a job"):
        name_of(job)
    assert name_of("default-test-pytorch-fault-mixtral") == "data-trace-default-test-pytorch-fault-mixtral"


def test_without_a_cluster_the_reason_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "config"))

    with pytest.raises(KubernetesProblem, match="no access to a Kubernetes cluster"):
        connect()


def test_the_users_context_names_cluster_and_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {}}],
            }
        )
    )
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(config))

    assert connect().namespace == "team"
    assert connect("other").namespace == "other"
    assert connect().api.api_client.configuration.host == "http://127.0.0.1:1"


def test_a_problem_is_reported_again_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = SimpleNamespace(now_s=5.0)
    reports: Any = config_map_following._Reports("ConfigMap", "rule")
    reports._once.now_s = lambda: clock.now_s

    for _ in range(3):
        reports.problem("a")
    clock.now_s += config_map_following.QUIET_S
    reports.problem("a")

    assert len(caplog.records) == 2
