"""Hosts files, rank tables as lists of hosts, and accounts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepscope.cluster.hosts import read_hosts, with_accounts
from stepscope.cluster.secrets import Account, Secret, read_accounts
from stepscope.errors import StepscopeError

YAML = """
defaults: {user: train, port: 2222, jump: me@bastion}
hosts:
  - 10.0.0.1
  - {address: 10.0.0.2, user: root, port: 22, source: [/a/*, /b]}
  - {name: share, path: mnt/three}
  - {name: pod-0, command: [kubectl, cp, "{host}:{source}", "{target}"]}
"""


def test_a_hosts_file_in_yaml(tmp_path: Path) -> None:
    pytest.importorskip("yaml", reason="PyYAML is not installed (extra `cluster`)")
    (tmp_path / "hosts.yaml").write_text(YAML)

    first, second, share, pod = read_hosts(tmp_path / "hosts.yaml").hosts

    assert (first.address, first.user, first.port, first.jump, first.label) == (
        *("10.0.0.1", "train", 2222, "me@bastion"),
        "10.0.0.1:2222",
    )
    assert (second.user, second.port, second.sources, second.label) == ("root", 22, ("/a/*", "/b"), "10.0.0.2")
    assert (share.path, share.address) == (tmp_path / "mnt/three", "")
    assert pod.command == ("kubectl", "cp", "{host}:{source}", "{target}")


def test_a_hosts_file_in_toml(tmp_path: Path) -> None:
    (tmp_path / "hosts.toml").write_text('hosts = ["a"]\n[defaults]\nuser = "train"\n')

    (host,) = read_hosts(tmp_path / "hosts.toml").hosts

    assert (host.address, host.user) == ("a", "train")


def test_the_servers_of_a_rank_table_are_hosts(tmp_path: Path) -> None:
    table = {"server_list": [{"server_id": "10.0.0.2", "device": []}, {"server_id": "10.0.0.1", "device": []}]}
    (tmp_path / "hccl.json").write_text(json.dumps(table))

    found = read_hosts(tmp_path / "hccl.json")

    assert [host.address for host in found.hosts] == ["10.0.0.2", "10.0.0.1"]
    assert found.rank_table == tmp_path / "hccl.json"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"hosts": [{"address": "a", "password": "swordfish"}]}, "a hosts file has no passwords"),
        ({"hosts": [{"address": "a", "pasword": "swordfish"}]}, "unknown field `pasword`"),
        ({"hosts": ["a", "a"]}, "a is listed twice"),
        ({"hosts": []}, "lists no host"),
        ({"hosts": [{}]}, "has neither address, name nor path"),
        ({"hosts": ["-oProxyCommand=id"]}, "does not begin with '-'"),
        ({"hosts": ["a b"]}, "may not have spaces"),
        ({"hosts": [{"address": "a", "port": 70000}]}, "port 70000"),
        ({"nodes": ["a"]}, "has neither `hosts`"),
    ],
)
def test_mistakes_in_a_hosts_file_are_named(tmp_path: Path, content: object, problem: str) -> None:
    (tmp_path / "hosts.json").write_text(json.dumps(content))

    with pytest.raises(StepscopeError, match=problem) as error:
        read_hosts(tmp_path / "hosts.json")

    assert "swordfish" not in str(error.value)


def accounts(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "accounts.json"
    file.write_text(text)
    file.chmod(mode)
    return file


GUIDE = '{"rank_size": 16, "cluster": {"10.0.0.1": {"user": "root", "passwd": "swordfish"}}}'


def test_the_accounts_of_the_cluster_guide(tmp_path: Path) -> None:
    found = read_accounts(accounts(tmp_path, GUIDE))

    assert found["10.0.0.1"].user == "root"
    assert found["10.0.0.1"].password is not None
    assert found["10.0.0.1"].password.revealed() == "swordfish"
    assert "swordfish" not in f"{found} {found['10.0.0.1'].password}"


def test_an_accounts_file_lists_hosts_too(tmp_path: Path) -> None:
    (host,) = read_hosts(accounts(tmp_path, GUIDE)).hosts

    assert (host.address, host.account.user) == ("10.0.0.1", "root")
    assert "swordfish" not in repr(host)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_accounts_that_others_can_read_are_refused(tmp_path: Path, mode: int) -> None:
    file = accounts(tmp_path, GUIDE, mode)

    for read in (read_accounts, read_hosts):
        with pytest.raises(StepscopeError, match="chmod 600") as error:
            read(file)
        assert "swordfish" not in str(error.value)


@pytest.mark.parametrize(
    "text", ['{"cluster": {"a": {"passwd": ["swordfish"]}}}', '{"cluster": "swordfish', "swordfish"]
)
def test_a_damaged_accounts_file_is_not_quoted(tmp_path: Path, text: str) -> None:
    with pytest.raises(StepscopeError, match="is not an accounts file") as error:
        read_accounts(accounts(tmp_path, text))

    assert "swordfish" not in str(error.value)


def test_accounts_belong_to_hosts_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "hosts.json").write_text(json.dumps({"hosts": [{"address": "10.0.0.1", "port": 2222}, "b"]}))

    one, other = with_accounts(
        read_hosts(tmp_path / "hosts.json").hosts, {"10.0.0.1": Account("root", Secret("swordfish"))}
    )

    assert (one.user, other.account.password) == ("root", None)
