"""Existing clients of the service `TrainingDataTrace` switch a job, and see what is wrong when they cannot."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("grpc_tools")

from published_client import Client, generate
from served import Served

from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, DEFAULT, NONE
from stepscope.live.switching import data_trace

JOB = "default/pretrain"
ON, OFF = ALL.as_guide(), NONE.as_guide()


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clients with and without a package."""
    directory = tmp_path_factory.mktemp("clients")
    generate(directory / "published")
    generate(directory / "packaged", "profiling")
    return directory


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with Served("pretrain", "task-1") as running:
        yield running


@pytest.fixture
def served(running: Served) -> Served:
    """The same server for all tests, with the state of a new job."""
    running.board.requested = type(running.board.requested)()
    return running


@pytest.fixture(scope="module")
def running_client(generated: Path, running: Served) -> Iterator[Client]:
    client = Client(generated / "published", running.address)
    yield client
    client.kill()


@pytest.fixture
def client(served: Served, running_client: Client) -> Client:
    return running_client


def subscribers(served: Served, wanted: int) -> None:
    """Wait until there are so many."""
    for _ in range(1000):
        service = served_service(served)
        if service._subscribers == wanted:
            return
        time.sleep(0.02)
    raise AssertionError(f"{service._subscribers} subscribers instead of {wanted}")


def served_service(served: Served) -> Any:
    return SERVICES[id(served.board)]


SERVICES: dict[int, Any] = {}


@pytest.fixture(autouse=True, scope="module")
def remembered() -> Iterator[None]:
    """Keep the services that are made, to see how many subscribers they have."""
    with pytest.MonkeyPatch.context() as patch:
        original = data_trace._Service.__init__

        def remember(self: Any, board: Any, serves_job: Any) -> None:
            original(self, board, serves_job)
            SERVICES[id(board)] = self

        patch.setattr(data_trace._Service, "__init__", remember)
        yield


def test_a_client_sets_the_switches_and_gets_them_back(client: Client, served: Served) -> None:
    before = client.call("get", job=JOB)
    answer = client.call("modify", job=JOB, switch=ON)

    assert before["on"] == DEFAULT.as_guide()
    assert "nobody has switched yet" in before["message"]
    assert (answer["code"], answer["on"]) == (200, None)
    assert client.call("get", job=JOB) == {"code": 200, "message": "", "on": ON}
    assert served.board.requested.switches == ALL
    assert served.board.requested.by.startswith("grpc ipv4:127.0.0.1:")


@pytest.mark.parametrize("kind", list(Kind))
def test_any_combination_can_be_set(kind: Kind, client: Client, served: Served) -> None:
    alone = NONE.with_changes({kind: True})

    assert client.call("modify", job=JOB, switch=alone.as_guide())["code"] == 200
    assert served.board.requested.switches == alone
    assert client.call("get", job=JOB)["on"] == alone.as_guide()


@pytest.mark.parametrize("value", ["On", "1", "", "true", "off ", "\0", "x" * 100_000])
def test_other_values_are_refused_by_name_and_the_state_stays(value: str, client: Client, served: Served) -> None:
    client.call("modify", job=JOB, switch=ON)

    answer = client.call("modify", job=JOB, switch={**OFF, "SaveCheckpoint": value})

    assert answer["code"] == 300
    assert answer["message"].startswith("'SaveCheckpoint' is ")
    assert answer["message"].endswith("it must be on or off. The switches stay as they are")
    assert len(answer["message"]) < 200
    assert served.board.requested.switches == ALL


def test_a_switch_that_is_left_out_is_refused_by_name(client: Client, served: Served) -> None:
    without = {name: state for name, state in ON.items() if name != "FP"}

    assert client.call("modify", job=JOB, switch=without)["message"].startswith("'FP' is ''")
    assert client.call("modify", job=JOB, switch=None)["code"] == 300
    assert served.board.requested.revision == 0


@pytest.mark.parametrize("job", ["pretrain", "", "/", "default/", "/pretrain", "a/b/pretrain", "x" * 10_000 + "/y"])
def test_a_job_that_is_not_namespace_and_name_is_a_bad_parameter(job: str, client: Client, served: Served) -> None:
    for answer in (client.call("modify", job=job, switch=ON), client.call("get", job=job)):
        assert answer["code"] == 300
        assert "it must be namespace/job" in answer["message"]
        assert len(answer["message"]) < 200
    assert served.board.requested.revision == 0


def test_another_job_is_not_found(client: Client, served: Served) -> None:
    for answer in (client.call("modify", job="default/other", switch=OFF), client.call("get", job="default/other")):
        assert answer["code"] == 404
        assert answer["message"] == "this manager serves no job 'default/other'"
    assert served.board.requested.revision == 0


def test_a_state_that_cannot_be_written_is_a_fault_of_the_server(generated: Path, tmp_path: Path) -> None:
    (tmp_path / "room").write_text("in the way of the directory")
    with Served("pretrain", file=tmp_path / "room" / "switches.json") as served:
        client = Client(generated / "published", served.address)
        answer = client.call("modify", job=JOB, switch=ON)
        client.kill()

        assert answer["code"] == 500
        assert "cannot be written" in answer["message"]
        assert served.board.requested.revision == 0


def test_a_client_that_was_generated_with_a_package_is_served_as_well(generated: Path, served: Served) -> None:
    client = Client(generated / "packaged", served.address)
    try:
        assert client.call("modify", job=JOB, switch=ON)["code"] == 200
        assert client.call("get", job=JOB)["on"] == ON
    finally:
        client.kill()


def test_several_subscribers_see_the_present_state_and_each_change_and_may_go_away(
    generated: Path, client: Client, served: Served
) -> None:
    followers = [Client(generated / "published", served.address) for _ in range(3)]
    for follower, job in zip(followers, ("task-1", JOB, "pretrain"), strict=True):
        follower.send("subscribe", job=job)
    assert [follower.answer()["on"] for follower in followers] == [DEFAULT.as_guide()] * 3

    client.call("modify", job=JOB, switch=OFF)
    assert [follower.answer()["on"] for follower in followers] == [OFF] * 3
    followers.pop().kill()
    subscribers(served, 2)
    client.call("modify", job=JOB, switch=ON)

    assert [follower.answer() for follower in followers] == [{"code": 200, "message": "", "on": ON}] * 2
    for follower in followers:
        follower.kill()
    subscribers(served, 0)


def test_a_subscriber_that_reads_nothing_holds_up_nobody(generated: Path, client: Client, served: Served) -> None:
    slow = Client(generated / "published", served.address)
    slow.send("subscribe", job=JOB)
    slow.answer()
    slow.stop()
    stuck = socket.create_connection(("127.0.0.1", int(served.address.rpartition(":")[2])))
    stuck.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    quick = Client(generated / "published", served.address)
    quick.send("subscribe", job=JOB)
    quick.answer()

    for state in [ON, OFF] * 100:
        assert client.call("modify", job=JOB, switch=state)["code"] == 200
        while quick.answer()["on"] != state:
            pass

    quick.kill()
    slow.kill()
    stuck.close()
    subscribers(served, 0)


def test_an_unknown_job_cannot_be_followed(generated: Path, served: Served) -> None:
    client = Client(generated / "published", served.address)
    client.send("subscribe", job="task-2")

    assert client.answer() == {
        "code": 404,
        "message": "this manager serves no job 'task-2'",
        "on": dict.fromkeys(ON, ""),
    }
    assert client.call("get", job=JOB)["code"] == 200, "the stream ended without an error"
    client.kill()


def test_more_subscribers_than_there_may_be_are_told_so(
    generated: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_service(served), "_subscribers", data_trace.BOUNDS.most_subscribers)
    client = Client(generated / "published", served.address)
    client.send("subscribe", job=JOB)
    answer = client.answer()
    client.kill()

    assert answer["code"] == 500
    assert "64 subscribers" in answer["message"]


@pytest.mark.parametrize(
    ("names", "asked", "served"),
    [
        (("pretrain",), "default/pretrain", True),
        (("pretrain",), "pretrain", True),
        (("pretrain",), "default/pretrain2", False),
        (("pretrain", ""), "default/", False),
        (("pretrain", ""), "", False),
        (("uid-1", "team/pretrain"), "team/pretrain", True),
        (("uid-1", "team/pretrain"), "default/pretrain", False),
        (("uid-1", "team/pretrain"), "default/uid-1", True),
        ((), "default/pretrain", False),
    ],
)
def test_a_job_is_served_by_its_task_id_or_its_name(names: tuple[str, ...], asked: str, served: bool) -> None:
    assert data_trace.serves(*names)(asked) is served
