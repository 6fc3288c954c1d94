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
    ("text", "host", "user", "port", "label"),
    [
        ("10.0.0.1:2222", "10.0.0.1", None, 2222, "10.0.0.1:2222"),
        ("me@node-a", "node-a", "me", None, "node-a"),
        ("fd00::1", "fd00::1", None, None, "fd00::1"),
        ("[fd00::1]", "fd00::1", None, None, "fd00::1"),
        ("me@[fd00::1]:2222", "fd00::1", "me", 2222, "[fd00::1]:2222"),
        ("node-a:22", "node-a", None, 22, "node-a"),
    ],
)
def test_an_address_may_have_a_user_and_a_port(
    tmp_path: Path, text: str, host: str, user: str | None, port: int | None, label: str
) -> None:
    for entry in (text, {"address": text}):
        (tmp_path / "hosts.json").write_text(json.dumps({"hosts": [entry]}))
        (found,) = read_hosts(tmp_path / "hosts.json").hosts
        assert (found.address, found.user, found.port, found.label) == (host, user, port, label)


def test_an_accounts_file_as_hosts_states_the_users(tmp_path: Path) -> None:
    file = tmp_path / "accounts.json"
    file.write_text(json.dumps({"cluster": {"10.0.0.1": {"user": "train", "passwd": "swordfish"}}}))
    file.chmod(0o600)

    (host,) = read_hosts(file).hosts

    assert host.user == "train"
    assert host.account.password is not None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"hosts": [{"address": "a", "password": "swordfish"}]}, "a hosts file has no passwords"),
        ({"hosts": [{"address": "a", "pasword": "swordfish"}]}, "host 1 \\(a\\): there is no field `pasword`"),
        ({"hosts": ["a", "a"]}, "a is listed twice"),
        ({"hosts": []}, "lists no host"),
        ({"hosts": [{}]}, "has neither address, name nor path"),
        ({"hosts": ["-oProxyCommand=id"]}, "is no address"),
        ({"hosts": ["a b"]}, "is no address"),
        ({"hosts": [{"address": "a", "port": 70000}]}, "`port` is the number 70000, expected a number from 1 to 65535"),
        ({"nodes": ["a"]}, "has neither `hosts`"),
        ({"hosts": ["a", {"address": 5}]}, "host 2: `address` is the number 5, expected an address, e.g"),
        ({"hosts": [{"name": "b", "port": "22"}]}, "host 1 \\(b\\): `port` is the text '22', expected a number from 1"),
        (
            {"hosts": [{"address": "a", "command": "cp a b"}]},
            "`command` is the text 'cp a b', expected a list of words",
        ),
        ({"hosts": [{"address": "a", "timeout_s": -1}]}, "`timeout_s` is the number -1, expected a number of seconds"),
        ({"hosts": [{"adress": "a"}]}, "there is no field `adress`. Did you mean `address`\\?"),
        ({"hosts": "a"}, "`hosts` is the text 'a', expected a list"),
        ({"hosts": [["a"]]}, "host 1 is a list, expected an address"),
        ({"hosts": ["a"], "defaults": {"user": 3}}, "defaults: `user` is the number 3, expected a text"),
        ({"hosts": ["a"], "default": {}}, "has 'default' beside `hosts`"),
        ({"hosts": [{"address": "a:22", "port": 23}]}, "`port` is 23, but the address has 22"),
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
