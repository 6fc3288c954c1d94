"""`stepscope live manager --kubernetes`, with an API server that a kubeconfig names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc")
pytest.importorskip("grpc_tools")
pytest.importorskip("kubernetes")

from fake_cluster import KEY, FakeCluster

from ports import free_port
from stepscope.cli import main
from stepscope.live.kinds import Kind
from stepscope.live.switches import ALL, NONE

NAME = "data-trace-pretrain"


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    fake = FakeCluster()
    yield fake
    fake.close()


@pytest.fixture
def manager(cluster: FakeCluster, tmp_path: Path) -> Iterator[str]:
    """Address of a manager that follows the ConfigMap, and writes it."""
    config = tmp_path / "kubeconfig"
    server = cluster.cluster().api.api_client.configuration.host
    config.write_text(
        json.dumps(
            {
                "current-context": "here",
                "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": server}}],
                "users": [{"name": "u", "user": {}}],
            }
        )
    )
    address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="stepscope-") as room:  # paths of sockets must be short
        places = {"STEPSCOPE_LIVE_SOCKET": f"{room}/live.sock", "STEPSCOPE_LIVE_STATE": f"{room}/state"}
        environment = {**os.environ, **places, "KUBECONFIG": str(config)}
        environment.pop("KUBERNETES_SERVICE_HOST", None)
        port = address.rpartition(":")[2]
        options = ["--job", "job-1", "--port", port, "--no-proxy", "--kubernetes", "pretrain", "--kubernetes-writes"]
        process = subprocess.Popen(
            [sys.executable, "-m", "stepscope", "live", "manager", *options],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert process.stderr
        while "listens on" not in process.stderr.readline():
            assert process.poll() is None
        yield address
        process.kill()
        process.communicate()


def until(holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("not within 20 s")


def test_an_edit_switches_the_job_and_a_command_changes_the_config_map(
    manager: str, cluster: FakeCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    def on() -> list[str]:
        main(["live", "switch", "--manager", manager, "--json"])
        return list(json.loads(capsys.readouterr().out)["on"])

    cluster.put(NAME, {KEY: json.dumps(NONE.as_guide())})
    until(lambda: on() == [])
    cluster.put(NAME, {KEY: json.dumps(ALL.as_guide())})
    until(lambda: on() == ALL.as_names())

    main(["live", "switch", "communication=off", "--manager", manager, "--no-wait"])
    until(lambda: json.loads(cluster.text(NAME))["CommunicationOperator"] == "off")

    assert json.loads(cluster.text(NAME)) == ALL.with_changes({Kind.COMMUNICATION: False}).as_guide()
    capsys.readouterr()
    assert "communication" not in on()
