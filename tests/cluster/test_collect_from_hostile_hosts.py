"""A host that sends any names, kinds and sizes cannot write outside the directory or fill the disk."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import main
from tests.cluster.profiles import content

asyncssh = pytest.importorskip("asyncssh", reason="asyncssh is not installed (extra `cluster`)")

FILE, FOLDER, LINK, DEVICE = (kind | 0o644 for kind in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFCHR))

LISTED: list[tuple[bytes, int, int]] = [
    (b"../outside.json", FILE, 5),
    (b"..", FOLDER, 0),
    (b"/tmp/absolute.json", FILE, 5),
    (b"sub/../../outside.json", FILE, 5),
    (b"back\\slash", FILE, 5),
    (b"nul\0.json", FILE, 5),
    (b"line\n.json", FILE, 5),
    (b"\xff\xfe.json", FILE, 5),
    (b"x" * 300, FILE, 5),
    (b"good.json", FILE, 5),
    (b"good.json", FILE, 5),
    (b"link", LINK, 5),
    (b"device", DEVICE, 0),
    (b"huge.json", FILE, 1 << 60),
    (b"endless.json", FILE, 5),
    (b"growing.json", FILE, 4),
]
"""What the host lists in its one directory: name, mode and size."""


class Hostile(asyncssh.SFTPServer):  # type: ignore[misc, valid-type]
    """Lists whatever `LISTED` says, and sends more than was asked for."""

    def stat(self, path: bytes) -> Any:
        if path.endswith(b"/evil"):
            return asyncssh.SFTPAttrs(permissions=FOLDER, size=0, mtime=1)
        return self._attributes(path)

    lstat = stat

    def _attributes(self, path: bytes) -> Any:
        mode, size = next(((mode, size) for name, mode, size in LISTED if path.endswith(b"/" + name)), (FILE, 5))
        size += 7 if path.endswith(b"growing.json") else 0
        return asyncssh.SFTPAttrs(permissions=mode, size=size, mtime=1)

    async def scandir(self, path: bytes) -> AsyncIterator[Any]:
        for name, mode, size in LISTED:
            yield asyncssh.SFTPName(name, attrs=asyncssh.SFTPAttrs(permissions=mode, size=size, mtime=1))

    def open(self, path: bytes, pflags: int, attrs: Any) -> Any:
        return path

    def read(self, file_obj: Any, offset: int, size: int) -> bytes:
        return b"x" * size if file_obj.endswith(b"endless.json") else b"12345"[offset : offset + size]

    def fstat(self, file_obj: Any) -> Any:
        return self._attributes(file_obj)

    def close(self, file_obj: Any) -> None:
        """Nothing is open."""


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A hosts file with the hostile host."""
    key, host_key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key.write_private_key(str(tmp_path / "id"))
    monkeypatch.setattr(asyncssh.SSHServer, "begin_auth", lambda self, username: False)
    started, loop, port = threading.Event(), asyncio.new_event_loop(), list[int]()

    async def serve() -> None:
        server = await asyncssh.listen("127.0.0.1", 0, server_host_keys=[host_key], sftp_factory=Hostile)
        port.append(server.get_port())
        started.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert started.wait(10)
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{port[0]} {host_key.export_public_key().decode()}")
    file = tmp_path / "hosts.json"
    host = {"address": "127.0.0.1", "port": port[0], "key": str(tmp_path / "id"), "known_hosts": str(known)}
    file.write_text(json.dumps({"hosts": [{**host, "user": "any", "source": "/data/evil"}]}))
    yield file
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def test_a_hostile_host_writes_nothing_outside(hosts: Path, tmp_path: Path, capfd) -> None:
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    words = ["collect", "--hosts", hosts, "-o", tmp_path / "out" / "run", "--keep-gb", 0, "--json"]

    assert main([*map(str, words)]) == 3

    found = json.loads(capfd.readouterr().out)["hosts"][0]
    there = content(tmp_path / "out" / "run")
    assert there.pop("host_ips_mapping.txt")
    assert there == {"1/evil/good.json": b"12345", "1/evil/endless.json": b"xxxxx"}
    outside = {
        path for path in tmp_path.rglob("*") if path.is_file() and (tmp_path / "out" / "run") not in path.parents
    }
    assert outside == before
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))
    assert not Path("/tmp/absolute.json").exists()
    reasons = {Path(one["file"]).name: one["reason"] for one in found["not_copied"]}
    assert "beyond the 200.00 GB" in reasons["huge.json"]
    assert "changes while it is copied" in reasons["growing.json"]
    assert found["missing"] == len(LISTED) - 2 - found["skipped"] - 1  # every directory lists ".."
    assert {Path(one["file"]).name for one in found["not_taken"]} == {"link", "device"}


def test_a_host_that_lists_without_end_is_cut_off(hosts: Path, tmp_path: Path, capfd, monkeypatch) -> None:
    async def scandir(self: Any, path: bytes) -> AsyncIterator[Any]:
        number = 0
        while True:
            number += 1
            attributes = asyncssh.SFTPAttrs(permissions=FILE, size=5, mtime=1)
            yield asyncssh.SFTPName(b"good-%d.json" % number, attrs=attributes)

    monkeypatch.setattr(Hostile, "scandir", scandir)
    words = ["collect", "--hosts", hosts, "-o", tmp_path / "run", "--keep-gb", 0, "--max-files", 5, "--json"]

    assert main([*map(str, words)]) == 3

    found = json.loads(capfd.readouterr().out)["hosts"][0]
    assert found["files"] == 5
    assert found["not_copied"][0]["reason"] == "has more entries than are looked at (see --max-files)"


def test_a_password_of_an_accounts_file_logs_in(hosts: Path, tmp_path: Path, capfd, monkeypatch) -> None:
    given: list[str] = []

    def asks(self: Any, username: str) -> bool:
        return True

    def takes(self: Any, username: str, password: str) -> bool:
        given.append(f"{username} {password}")
        return password == "swordfish"

    monkeypatch.setattr(asyncssh.SSHServer, "begin_auth", asks)
    monkeypatch.setattr(asyncssh.SSHServer, "password_auth_supported", lambda self: True)
    monkeypatch.setattr(asyncssh.SSHServer, "validate_password", takes)
    accounts = tmp_path / "accounts.json"
    accounts.write_text(json.dumps({"cluster": {"127.0.0.1": {"user": "root", "passwd": "swordfish"}}}))
    accounts.chmod(0o600)
    words = ["collect", "--hosts", hosts, "-o", tmp_path / "run", "--keep-gb", 0, "--json", "--accounts", accounts]

    assert main([*map(str, words)]) == 3

    out, err = capfd.readouterr()
    assert given == ["root swordfish"]
    assert json.loads(out)["hosts"][0]["files"] == 2
    assert "swordfish" not in out + err
    assert not any(b"swordfish" in file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())


def test_answers_that_are_no_protocol_cost_only_that_host(hosts: Path, tmp_path: Path, capfd, monkeypatch) -> None:
    def scandir(self: Any, path: bytes) -> Any:
        raise asyncssh.SFTPError(99999, "\x1b[2J what is that")

    monkeypatch.setattr(Hostile, "scandir", scandir)
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "a.json").write_text("{}")
    both = json.loads(hosts.read_text())
    both["hosts"].append({"path": str(tmp_path / "share"), "source": "*"})
    hosts.write_text(json.dumps(both))
    words = ["collect", "--hosts", hosts, "-o", tmp_path / "run", "--keep-gb", 0]

    assert main([*map(str, words)]) == 3

    out, err = capfd.readouterr()
    assert "\x1b" not in out + err
    assert content(tmp_path / "run")["2/a.json"] == b"{}"


def test_a_link_on_a_share_fetches_no_file_of_this_machine(tmp_path: Path, capfd) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key.json").write_text("mine")
    (tmp_path / "share").mkdir()
    (tmp_path / "share" / "run1").symlink_to(tmp_path / "private")
    (tmp_path / "share" / "run2").mkdir()
    (tmp_path / "share" / "run2" / "a.json").write_text("{}")
    file = tmp_path / "hosts.json"
    file.write_text(
        json.dumps({"hosts": [{"path": str(tmp_path / "share"), "source": ["run*", "run1/*", "../private"]}]})
    )

    assert main(["collect", "--hosts", str(file), "-o", str(tmp_path / "run"), "--keep-gb", "0"]) == 3

    assert set(content(tmp_path / "run")) == {"1/run2/a.json", "host_ips_mapping.txt"}
