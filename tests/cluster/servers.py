"""SSH servers on loopback for tests: Debian's sshd, each with keys and a configuration of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from ports import free_port

SSHD = shutil.which("sshd") or next((p for p in ("/usr/sbin/sshd",) if os.access(p, os.X_OK)), None)


def needs_sshd() -> None:
    """Skip a test where there is no sshd, or no library to speak with it."""
    pytest.importorskip("asyncssh", reason="asyncssh is not installed (extra `cluster`)")
    if SSHD is None or shutil.which("ssh-keygen") is None:
        pytest.skip("there is no sshd here (Debian: apt-get install openssh-server)")


@dataclass
class Server:
    """A running sshd."""

    port: int
    directory: Path
    process: subprocess.Popen[bytes]

    def cut(self) -> None:
        """End it and the processes that serve its connections."""
        subprocess.run(["pkill", "-KILL", "-P", str(self.process.pid)], check=False)
        self.process.kill()
        self.process.wait()


@dataclass
class Site:
    """A directory with a client's key and the keys of its servers."""

    root: Path

    def __post_init__(self) -> None:
        self.key = self.root / "id"
        self.known = self.root / "known_hosts"
        self.known.touch()
        self.servers: list[Server] = []
        make_key(self.key)

    def start(self, name: str, *, known: bool = True, lines: str = "", allowed: bool = True, port: int = 0) -> Server:
        """Start a server, and know its key."""
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        directory = self.root / f"sshd-{name}"
        directory.mkdir(mode=0o700)
        host_key = directory / "host_key"
        make_key(host_key)
        keys = directory / "authorized_keys"
        keys.write_text(Path(f"{self.key}.pub").read_text() if allowed else "")
        port = port or free_port()
        config = directory / "config"
        config.write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nAuthorizedKeysFile {keys}\nPidFile none\n"
            "UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"PermitRootLogin yes\nSubsystem sftp internal-sftp\n{lines}"
        )
        server = Server(port, directory, self._run(directory))
        self.servers.append(server)
        if known:
            self.know(server)
        wait_for(server)
        return server

    def restart(self, server: Server) -> None:
        """Start a server that was cut, with the same key and port."""
        server.process = self._run(server.directory)
        wait_for(server)

    @staticmethod
    def _run(directory: Path) -> subprocess.Popen[bytes]:
        assert SSHD is not None
        with (directory / "log").open("wb") as log:
            words = [SSHD, "-D", "-e", "-f", str(directory / "config")]
            return subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=log)

    def know(self, server: Server, key: Path | None = None) -> None:
        """Write the key of a server to the known hosts."""
        public = Path(f"{key or server.directory / 'host_key'}.pub").read_text()
        with self.known.open("a") as out:
            out.write(f"[127.0.0.1]:{server.port} {public}")

    def stop(self) -> None:
        """End all servers."""
        for server in self.servers:
            server.cut()


def make_key(file: Path) -> None:
    """Make a pair of keys."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(file)], check=True)


def wait_for(server: Server) -> None:
    """Wait until a server listens."""
    log = server.directory / "log"
    for _ in range(100):
        assert server.process.poll() is None, log.read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(log.read_text())
