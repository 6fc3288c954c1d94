"""Who may talk to manager and proxy."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from control_rig import Rig, run_rig, until

from stepscope.errors import StepscopeError
from stepscope.live.composing import views_of
from stepscope.live.control.bounds import Bounds
from stepscope.live.control.client import target_of
from stepscope.live.control.manager import Manager
from stepscope.live.control.rates import Bucket
from stepscope.live.control.security import Insecure, Security, is_loopback
from stepscope.live.control.serving import ManagerServer

TOKEN = "0123456789abcdef-token"
ON = {"communication": "on"}


def server_of(manager: Manager, **more: Any) -> ManagerServer:
    return ManagerServer(manager, *views_of(manager), **more)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("host7", False), ("", False)),
    ],
)
def test_loopback_is_known_by_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_beyond_loopback_a_server_needs_a_token_or_mutual_tls(caplog: pytest.LogCaptureFixture) -> None:
    some = Path("some.pem")
    for security in (Security(), Security(cert=some, key=some)):
        with pytest.raises(Insecure, match=r"0\.0\.0\.0 can be reached from other machines.*--token-file"):
            security.check_server("0.0.0.0")
    Security(cert=some, key=some, ca=some).check_server("0.0.0.0")
    assert caplog.text == ""
    Security(TOKEN).check_server("0.0.0.0")
    assert "unencrypted" in caplog.text


def test_a_manager_does_not_start_where_strangers_could_get_in() -> None:
    async def run() -> None:
        with pytest.raises(Insecure):
            await server_of(Manager(), host="0.0.0.0", port=0).start()

    asyncio.run(run())


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o600)
    assert Security.stated().token is None
    assert Security.stated(file).token == TOKEN
    monkeypatch.setenv("STEPSCOPE_LIVE_TOKEN", "another-token-0123456789")
    assert Security.stated().token == "another-token-0123456789"
    monkeypatch.setenv("STEPSCOPE_LIVE_TOKEN_FILE", str(file))
    assert Security.stated().token == TOKEN


def test_tokens_and_certificates_that_cannot_be_used_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Insecure, match="the token cannot be read"):
        Security.stated(tmp_path / "none")
    with pytest.raises(Insecure, match="a certificate needs its private key"):
        Security.stated(cert=tmp_path / "cert")
    monkeypatch.setenv("STEPSCOPE_LIVE_TOKEN", "short")
    with pytest.raises(Insecure, match="at least 16"):
        Security.stated()
    file = tmp_path / "open"
    file.write_text(TOKEN)
    file.chmod(0o644)
    Security.stated(file)
    assert "all users of this machine can read the token" in caplog.text


def test_a_call_without_the_right_token_is_refused_except_over_the_unix_socket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        for wrong in (Security(), Security("x" * 20), Security(TOKEN + "x")):
            async with rig.client(wrong) as client:
                with pytest.raises(StepscopeError, match="the token is missing or wrong"):
                    await client.switch(ON)
                with pytest.raises(StepscopeError, match="the token is missing or wrong"):
                    await anext(client.events())
        await rig.start_node("stranger", security=Security("x" * 20))
        await rig.start_node("friend")
        await until(lambda: "friend" in rig.manager.nodes)
        assert list(rig.manager.nodes) == ["friend"]
        async with rig.client() as client:
            assert (await client.switch(ON)).revision == 1

        from stepscope.live.control.client import connected

        assert rig.server is not None
        async with connected(rig.server.local_target, security=Security()) as client:
            assert (await client.switch({"step": "off"})).revision == 2

    run_rig(scenario, monkeypatch, security=Security(TOKEN))


def _certificates(room: Path) -> None:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=room, check=True, capture_output=True)

    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    for authority in ("ca", "other"):
        openssl(
            *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={authority}"),
            *("-keyout", f"{authority}.key", "-out", f"{authority}.pem"),
        )
        openssl(
            *("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", names),
            *("-keyout", f"{authority}-node.key", "-out", f"{authority}-node.csr"),
        )
        (room / "names").write_text(names)
        openssl(
            *("x509", "-req", "-in", f"{authority}-node.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key"),
            *("-CAcreateserial", "-days", "2", "-extfile", "names", "-out", f"{authority}-node.pem"),
        )


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make certificates")
def test_with_mutual_tls_only_peers_with_a_certificate_of_the_authority_get_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _certificates(tmp_path)
    ca = tmp_path / "ca.pem"
    friend = Security(cert=tmp_path / "ca-node.pem", key=tmp_path / "ca-node.key", ca=ca)

    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.start_node()
        worker = rig.start_worker(0)
        await rig.ranks(0)
        async with rig.client() as client:
            assert (await client.switch(ON, wait_s=10)).applied == [0]
        stranger = Security(cert=tmp_path / "other-node.pem", key=tmp_path / "other-node.key", ca=ca)
        for wrong in (Security(), Security(ca=ca), stranger):
            async with rig.client(wrong) as client:
                with pytest.raises(StepscopeError):
                    await client.switch({"step": "off"})
        assert worker.revision == 1

    run_rig(scenario, monkeypatch, security=friend)

    for file, content, told in (
        ("cert", b"\x30\x82", "cert: holds no certificate in PEM format"),
        (
            "cert",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "cert: its certificate cannot be used",
        ),
        ("key", b"none", "key: holds no private key in PEM format"),
        (
            "key",
            b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "key: its private key cannot be used",
        ),
        ("key", b"-----BEGIN ENCRYPTED PRIVATE KEY-----", "key: the private key is encrypted"),
        ("key", (tmp_path / "other-node.key").read_bytes(), "key: is not the private key of"),
        ("ca", b"", "ca: holds no certificate in PEM format"),
    ):
        bad = tmp_path / file
        bad.write_bytes(content)
        damaged = replace(friend, **{file: bad})
        with pytest.raises(StepscopeError, match=told):
            damaged.channel("host7:9601")
        with pytest.raises(StepscopeError, match=told):
            damaged.add_port(None, "127.0.0.1", 0)


def test_a_missing_certificate_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepscopeError, match=r"none\.pem: cannot be read \(No such file"):
        Security(ca=tmp_path / "none.pem").channel("host7:9601")


def test_an_address_that_calls_too_often_is_refused_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match="too many calls"):
                for _ in range(50):
                    await client.switch(ON)
            await asyncio.sleep(0.3)
            await client.switch(ON)

    run_rig(scenario, monkeypatch, Bounds(calls_a_second=5, burst=2, retry_s=0.1))


def test_a_bucket_lets_bursts_through_and_then_the_rate() -> None:
    now = [0.0]
    bucket = Bucket(2.0, 4.0, lambda: now[0])
    assert [bucket.take() for _ in range(5)] == [True] * 4 + [False]
    now[0] = 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]


def test_a_port_in_use_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        with pytest.raises(StepscopeError, match=rf"127\.0\.0\.1:{rig.port}: cannot listen there.*another port"):
            await server_of(Manager(), port=rig.port).start()

    run_rig(scenario, monkeypatch)


def test_a_manager_that_does_not_answer_is_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager()
        await rig.stop_manager()
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match=rf"127\.0\.0\.1:{rig.port}: no manager answers.*stepscope live"):
                await client.status()

    run_rig(scenario, monkeypatch)


def test_addresses_are_hosts_with_or_without_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_LIVE_SOCKET", str(tmp_path / "live.sock"))
    assert target_of("") == "127.0.0.1:9601"
    assert target_of("host7") == "host7:9601"
    assert target_of("host7:1") == "host7:1"
    assert target_of("::1") == target_of("[::1]") == "[::1]:9601"
    assert target_of("[::1]:7") == "[::1]:7"
    for wrong in ("host:x", ":1", "host:99999"):
        with pytest.raises(StepscopeError, match="is not HOST or HOST:PORT"):
            target_of(wrong)


def test_garbage_on_the_port_and_messages_that_are_too_long_cost_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.start_manager("job")
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(1000), bytes(100_000)):
            _, writer = await asyncio.open_connection("127.0.0.1", rig.port)
            writer.write(garbage)
            await asyncio.sleep(0.05)
            writer.close()
        async with rig.client() as client:
            with pytest.raises(StepscopeError, match=r"larger than max"):
                await client.switch({"x" * 10_000_000: "on"})
            with pytest.raises(StepscopeError, match="is not a switch"):
                await client.switch({"x" * 1_000_000: "on"})
            assert (await client.switch(ON)).revision == 1

    run_rig(scenario, monkeypatch)
