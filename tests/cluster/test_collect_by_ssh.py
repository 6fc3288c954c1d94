"""Collecting from real SSH servers on loopback: all, some, one that dies, one with another key."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ports import free_port
from stepscope import open_run
from stepscope.cli import main
from tests.cli.calling import EXAMPLE
from tests.cluster.profiles import content, write_devices
from tests.cluster.servers import Site, make_key, needs_sshd

TABLE = {
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {
            "server_id": f"127.0.0.{host}",
            "device": [
                {"device_id": str(d), "device_ip": f"192.{d}.27.{host}", "rank_id": str(2 * host - 2 + d)}
                for d in range(2)
            ],
            "host_nic_ip": "reserve",
        }
        for host in (1, 2, 3, 4)
    ],
    "status": "completed",
}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    needs_sshd()
    (tmp_path / "site").mkdir()
    site = Site(tmp_path / "site")
    yield site
    site.stop()


def hosts_file(site: Site, hosts: list[dict[str, Any]]) -> Path:
    file = site.root / "hosts.json"
    defaults = {"key": str(site.key), "known_hosts": str(site.known), "address": "127.0.0.1"}
    listed = [{"address": "127.0.0.1", **host} for host in hosts]
    file.write_text(json.dumps({"defaults": {k: v for k, v in defaults.items() if k != "address"}, "hosts": listed}))
    return file


def collected(capture: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[Any, str]:
    assert main(["collect", *map(str, words), "--keep-gb", "0", "--json"]) == code
    out, err = capture.readouterr()
    return json.loads(out), err


def four(site: Site, tmp_path: Path) -> list[dict[str, Any]]:
    hosts = []
    for number in (1, 2, 3, 4):
        write_devices(tmp_path / f"host-{number}", 2, extra=number)
        server = site.start(str(number))
        source = str(tmp_path / f"host-{number}" / "device*" / "data")
        hosts.append({"port": server.port, "source": source, "server_id": f"127.0.0.{number}"})
    return hosts


def test_four_hosts_arrive_in_the_layout_of_the_guide(site: Site, tmp_path: Path, capfd) -> None:
    hosts, table = four(site, tmp_path), tmp_path / "table.json"
    table.write_text(json.dumps(TABLE))

    found, _ = collected(capfd, "--hosts", hosts_file(site, hosts), "-o", tmp_path / "run", "--rank-table", table)

    assert [host["state"] for host in found["hosts"]] == ["complete"] * 4
    assert [host["by_size"] for host in found["hosts"]] == [0] * 4
    there = content(tmp_path / "run")
    names = {
        f"cluster_profiler/{h}/profiler/{k}"
        for h in (1, 2, 3, 4)
        for k in ("framework_raw_0.csv", "framework_raw_1.csv")
    }
    assert names < set(there)
    assert there["host_ips_mapping.txt"] == b"127.0.0.1 1\n127.0.0.2 2\n127.0.0.3 3\n127.0.0.4 4\n"
    addresses = [name for name, text in there.items() if b"127.0." in text or b"192." in text]
    assert addresses == ["host_ips_mapping.txt"]
    origin = tmp_path / "host-3/device1/data/profiler/framework_raw_1.csv"
    assert there["cluster_profiler/3/profiler/framework_raw_1.csv"] == origin.read_bytes()
    arrived = tmp_path / "run/cluster_profiler/3/profiler/framework_raw_1.csv"
    assert int(arrived.stat().st_mtime) == int(origin.stat().st_mtime)


def test_ranks_of_a_collected_directory_come_from_its_rank_table(site: Site, tmp_path: Path, capfd) -> None:
    hosts, table = four(site, tmp_path), tmp_path / "table.json"
    table.write_text(json.dumps(TABLE))
    collected(capfd, "--hosts", hosts_file(site, hosts), "-o", tmp_path / "run", "--rank-table", table)

    ranks = open_run(tmp_path / "run").ranks

    assert [(rank.rank, rank.facts["host"], rank.facts["device"]) for rank in ranks] == [
        (rank, str(1 + rank // 2), rank % 2) for rank in range(8)
    ]


def test_hosts_that_refuse_are_named_and_the_rest_arrive(site: Site, tmp_path: Path, capfd) -> None:
    hosts = four(site, tmp_path)
    hosts[1]["port"] = free_port()
    denied = site.start("denied", allowed=False)
    hosts[2]["port"] = denied.port

    found, err = collected(capfd, "--hosts", hosts_file(site, hosts), "-o", tmp_path / "run", code=3)

    assert [host["state"] for host in found["hosts"]] == ["complete", "failed", "failed", "complete"]
    assert "refuses the connection" in found["hosts"][1]["reason"]
    assert "does not accept any key" in found["hosts"][2]["reason"]
    assert "127.0.0" not in json.dumps(found["hosts"])
    assert f"host 2 (127.0.0.1:{hosts[1]['port']})" in err
    assert sorted({name.split("/")[1] for name in content(tmp_path / "run") if "/" in name}) == ["1", "4"]


def test_a_changed_host_key_is_refused(site: Site, tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host-1", 1)
    server = site.start("1", known=False)
    make_key(tmp_path / "older")
    site.know(server, tmp_path / "older")
    file = hosts_file(site, [{"port": server.port, "source": str(tmp_path / "host-1")}])

    found, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", code=2)

    assert "its host key is not the one in known_hosts" in found["hosts"][0]["reason"]
    assert "ssh-keygen -R" in found["hosts"][0]["reason"]
    assert [name for name in content(tmp_path / "run") if name != "host_ips_mapping.txt"] == []


def test_an_unknown_host_key_is_refused(site: Site, tmp_path: Path, capfd) -> None:
    server = site.start("1", known=False)
    file = hosts_file(site, [{"port": server.port, "source": "/tmp"}])

    found, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", code=2)

    assert "its host key is not known" in found["hosts"][0]["reason"]
    assert site.known.read_text() == ""


def test_a_host_that_dies_in_mid_copy_is_gone_on_with(site: Site, tmp_path: Path, capfd, monkeypatch) -> None:
    from stepscope.cluster import landing

    hosts = four(site, tmp_path)
    big = tmp_path / "host-2/device0/data/profiler/output_timeline_data_0.txt"
    big.write_bytes(bytes(range(256)) * (64 << 12))
    dying, written, cut = site.servers[1], landing.GrowingPart.write, list[bool]()

    def write(part: landing.GrowingPart, piece: bytes) -> None:
        written(part, piece)
        if part.size > 8 << 20 and not cut:
            dying.cut()
            cut.append(True)

    monkeypatch.setattr(landing.GrowingPart, "write", write)
    file = hosts_file(site, hosts)
    first, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", code=3)
    assert [host["state"] for host in first["hosts"]][::2] == ["complete", "complete"]
    assert first["hosts"][1]["reason"] == "the connection broke off"
    assert not (tmp_path / "run/cluster_profiler/2/profiler/output_timeline_data_0.txt").exists()

    site.restart(dying)
    second, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", "--resume")

    assert [host["new_files"] for host in second["hosts"]][::2] == [0, 0]
    assert 0 < second["hosts"][1]["new_bytes"] < big.stat().st_size
    assert (tmp_path / "run/cluster_profiler/2/profiler/output_timeline_data_0.txt").read_bytes() == big.read_bytes()
    assert sorted(path.name for path in (tmp_path / "run/.stepscope-collect/parts").iterdir()) == []


def test_a_host_behind_a_jump_host(site: Site, tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host-1", 1)
    jump, target = site.start("jump"), site.start("1")
    file = hosts_file(site, [{"port": target.port, "source": str(tmp_path / "host-1")}])

    found, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", "--jump", f"127.0.0.1:{jump.port}")

    assert found["hosts"][0]["files"] == 2
    assert "Accepted publickey" in (jump.directory / "log").read_text()


def test_an_unknown_jump_host_is_refused(site: Site, tmp_path: Path, capfd) -> None:
    jump, target = site.start("jump", known=False), site.start("1")
    file = hosts_file(site, [{"port": target.port, "source": str(tmp_path)}])

    found, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run", "--jump", f"127.0.0.1:{jump.port}", code=2)

    assert found["hosts"][0]["reason"].startswith("the jump host: its host key is not known")


def test_a_host_without_checksums_is_told_and_its_parts_begin_anew(site: Site, tmp_path: Path, capfd) -> None:
    write_devices(tmp_path / "host-1", 1)
    server = site.start("1", lines="ForceCommand internal-sftp\n")
    file = hosts_file(site, [{"port": server.port, "source": str(tmp_path / "host-1")}])

    found, err = collected(capfd, "--hosts", file, "-o", tmp_path / "run")

    assert (found["hosts"][0]["files"], found["hosts"][0]["by_size"]) == (2, 2)
    assert "2 files checked by size only" in err


def test_a_wrong_password_is_in_no_message(site: Site, tmp_path: Path, capfd) -> None:
    server = site.start("1", allowed=False, lines="")
    accounts = tmp_path / "accounts.json"
    accounts.write_text(json.dumps({"cluster": {"127.0.0.1": {"user": "root", "passwd": "swordfish"}}}))
    accounts.chmod(0o600)
    file = hosts_file(site, [{"port": server.port, "source": "/tmp"}])

    found, err = collected(capfd, "--hosts", file, "-o", tmp_path / "run", "--accounts", accounts, code=2)

    assert "the password" in found["hosts"][0]["reason"]
    assert "swordfish" not in json.dumps(found) + err
    assert not any(b"swordfish" in file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())


def test_names_from_a_shell_s_point_of_view_are_only_names(site: Site, tmp_path: Path, capfd) -> None:
    folder = tmp_path / "host-1" / "a b; touch $HOME-x `id` 'q'"
    folder.mkdir(parents=True)
    (folder / "-rf $(id).json").write_text("{}")
    server = site.start("1")
    file = hosts_file(site, [{"port": server.port, "source": f"{tmp_path}/host-1/*"}])

    found, _ = collected(capfd, "--hosts", file, "-o", tmp_path / "run")

    assert (found["hosts"][0]["state"], found["hosts"][0]["by_size"]) == ("complete", 0)
    assert f"1/{folder.name}/-rf $(id).json" in content(tmp_path / "run")


def test_a_host_reads_its_recordings_and_sends_what_it_read(site: Site, tmp_path: Path, capfd) -> None:
    (tmp_path / "temporary").mkdir()
    server = site.start("1", lines=f"SetEnv TMPDIR={tmp_path / 'temporary'}\n")
    program = tmp_path / "step scope"
    path = os.pathsep.join(sys.path)
    program.write_text(
        "#!/bin/sh\n"
        f"PYTHONPATH='{path}' STEPSCOPE_CACHE='{tmp_path}/there' exec '{sys.executable}' -m stepscope \"$@\"\n"
    )
    program.chmod(0o700)
    host = {"port": server.port, "source": f"{Path(EXAMPLE).parent}/*slow_loader", "stepscope": str(program)}

    found, _ = collected(capfd, "--hosts", hosts_file(site, [host]), "-o", tmp_path / "run", "--summaries")

    assert (found["hosts"][0]["state"], found["hosts"][0]["files"]) == ("complete", 4)
    assert open_run(tmp_path / "run").analyse("breakdown").equals(open_run(EXAMPLE).analyse("breakdown"))
    assert "Accepted publickey" in (server.directory / "log").read_text()
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_host_without_stepscope_is_named(site: Site, tmp_path: Path, capfd) -> None:
    server = site.start("1")
    host = {"port": server.port, "source": EXAMPLE, "stepscope": "/nowhere/step scope; id"}

    found, _ = collected(capfd, "--hosts", hosts_file(site, [host]), "-o", tmp_path / "run", "--summaries", code=2)

    assert found["hosts"][0]["reason"].startswith(
        "there is no command `/nowhere/step scope; id` on it. Install stepscope"
    )


def test_a_revoked_host_key_and_a_missing_private_key_are_named(site: Site, tmp_path: Path, capfd) -> None:
    server = site.start("1", known=False)
    public = Path(f"{server.directory / 'host_key'}.pub").read_text()
    site.known.write_text(f"@revoked [127.0.0.1]:{server.port} {public}")
    hosts = [{"port": server.port}, {"port": server.port, "key": str(tmp_path / "none"), "name": "b", "server_id": "b"}]

    found, _ = collected(capfd, "--hosts", hosts_file(site, hosts), "-o", tmp_path / "run", "--source", "/x", code=2)

    revoked, missing = (host["reason"] for host in found["hosts"])
    assert revoked.startswith("its host key is marked as revoked in known_hosts")
    assert missing == f"there is no private key {tmp_path / 'none'}. Check `key` in the hosts file, or --key"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("""echo '{"packed": [{"fil'""", "its stepscope gave no answer, or one that was cut off. Run `stepscope pack`"),
        ("kill -9 $$", "a signal ended its stepscope"),
        ("echo boom >&2; exit 2", "its stepscope could not read the recordings (boom). Run `stepscope pack` there"),
        ("sleep 60", "its stepscope took longer than 2 s to read the recordings. State more as `timeout_s`"),
        ("""echo '{"packed": [1]}'""", "1 file not copied"),
    ],
)
def test_a_stepscope_that_gives_no_whole_answer_is_named(
    site: Site, tmp_path: Path, capfd, program: str, reason: str
) -> None:
    (tmp_path / "temporary").mkdir()
    server = site.start("1", lines=f"SetEnv TMPDIR={tmp_path / 'temporary'}\n")
    (tmp_path / "program").write_text(f"#!/bin/sh\n{program}\n")
    (tmp_path / "program").chmod(0o700)
    host = {"port": server.port, "source": EXAMPLE, "stepscope": str(tmp_path / "program"), "timeout_s": 2}

    found, _ = collected(capfd, "--hosts", hosts_file(site, [host]), "-o", tmp_path / "run", "--summaries", code=2)

    assert found["hosts"][0]["reason"].startswith(reason)
    assert list((tmp_path / "temporary").iterdir()) == []
