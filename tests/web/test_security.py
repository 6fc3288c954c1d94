"""What is refused before anything is answered: strangers, other sites, what is too large, and who stands still."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("nicegui", reason="needs the extra `web`")

from stepscope.web.policies import page_policy, scripts_in
from stepscope.web.settings import Bounds
from stepscope.web.signing_in import next_address, without_token
from tests.web.answering import PAGE, TOKEN, Place, answering, until

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
SMALL = Bounds(head_s=1, body_s=1.5, unread_s=3, idle_s=1, linger_s=0.5, connections=20, sockets=2, guess_s=0.05)


@pytest.fixture(scope="module")
def cache() -> None:
    """Nothing here uses the store; a fixture of one test could not serve a whole module."""


@pytest.fixture(scope="module")
def strict() -> None:
    """Nor rules."""


@pytest.fixture(scope="module")
def open_place() -> Iterator[Place]:
    """A server without a token."""
    with answering() as place:
        yield place


@pytest.fixture(scope="module")
def closed_place() -> Iterator[Place]:
    """A server with a token."""
    with answering(token=TOKEN) as place:
        yield place


@pytest.fixture(scope="module")
def small_place() -> Iterator[Place]:
    """A server that waits for nobody."""
    with answering(bounds=SMALL) as place:
        yield place


def problem(body: bytes, status: int) -> str:
    """What a problem document says."""
    document = json.loads(body)
    assert document["status"] == status
    assert document["title"]
    return str(document["detail"])


# Tokens


def test_without_a_token_nothing_is_answered(closed_place: Place) -> None:
    closed_place.seen.clear()
    paths = (
        "/",
        "/api/v1/runs",
        "/api/v1/openapi.json",
        "/_nicegui/1/static/nicegui.js",
        "/favicon.ico",
        "/x.css",
    )
    for path in paths:
        for method in ("GET", "HEAD", "POST"):
            status, headers, body = closed_place.ask(method, path)
            assert status == 401, (method, path)
            assert headers["www-authenticate"].startswith("Bearer")
            assert headers["content-type"] == "application/problem+json"
            if method != "HEAD":
                assert "token is missing or wrong" in problem(body, 401)
    assert closed_place.seen == []


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"],
)
def test_a_wrong_token_is_refused(closed_place: Place, given: str) -> None:
    assert closed_place.ask(Authorization=given)[0] == 401


def test_a_program_gives_the_token_in_a_header(closed_place: Place) -> None:
    assert closed_place.ask(Authorization=f"Bearer {TOKEN}")[0] == 200
    assert closed_place.ask("POST", "/api/v1/x", b"{}", Authorization=f"bearer {TOKEN}")[0] == 200


def test_an_address_with_the_token_signs_in_once(closed_place: Place) -> None:
    closed_place.seen.clear()
    status, headers, _ = closed_place.ask("GET", f"/runs/a%20b?x=1&token={TOKEN}&y=%C3%A9")
    assert (status, headers["location"]) == (303, "/runs/a%20b?x=1&y=%C3%A9")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert hashlib.sha256(TOKEN.encode()).hexdigest() not in cookie
    assert closed_place.seen == []
    name_and_value = cookie.partition(";")[0]
    assert closed_place.ask(Cookie=f"a=b; {name_and_value}; c=d")[0] == 200


def test_a_cookie_that_was_changed_or_made_up_is_refused(closed_place: Place) -> None:
    _, headers, _ = closed_place.ask("GET", f"/?token={TOKEN}")
    name, _, value = headers["set-cookie"].partition(";")[0].partition("=")
    until_when, nonce, signature = value.split(".")
    for forged in (
        f"{int(until_when) + 1}.{nonce}.{signature}",
        f"{until_when}.{nonce}.{'0' * len(signature)}",
        f"{until_when}.{nonce}.",
        "..",
        "",
        TOKEN,
        "x" * 1000,
        hashlib.sha256(TOKEN.encode()).hexdigest(),
    ):
        assert closed_place.ask(Cookie=f"{name}={forged}")[0] == 401, forged


def test_a_cookie_ends(closed_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert closed_place.door is not None
    monkeypatch.setattr("stepscope.web.signing_in.GOOD_FOR_S", -1)
    cookie = closed_place.door.cookie(secure=True)[1].decode()
    assert "Secure" in cookie
    assert closed_place.ask(Cookie=cookie.partition(";")[0])[0] == 401


def test_a_cookie_of_another_token_or_port_is_refused(closed_place: Place) -> None:
    with answering(token="another-token-of-a-server") as other:
        assert other.door is not None
        cookie = other.door.cookie(secure=False)[1].decode().partition(";")[0]
        assert other.ask(Cookie=cookie)[0] == 200
    value = cookie.partition("=")[2]
    assert closed_place.ask(Cookie=f"stepscope_session_{closed_place.settings.port}={value}")[0] == 401
    assert closed_place.ask(Cookie=cookie)[0] == 401


def test_a_browser_is_asked_for_the_token(closed_place: Place) -> None:
    status, headers, body = closed_place.ask("GET", "/runs/x?step=1", **BROWSER)
    assert status == 401
    assert "default-src 'none'" in headers["content-security-policy"]
    form = body.decode()
    assert "<script" not in form
    action = re.search(r'action="([^"]+)"', form)
    assert action is not None
    address = action[1].replace("&amp;", "&")
    assert address.startswith("/sign-in?next=%2Fruns%2Fx%3Fstep%3D1")

    kind = "application/x-www-form-urlencoded"
    status, headers, body = closed_place.ask("POST", address, "token=wrong", Content_Type=kind, **BROWSER)
    assert status == 401
    assert b"This token is wrong" in body
    status, headers, _ = closed_place.ask("POST", address, urlencode({"token": f" {TOKEN}\n"}), Content_Type=kind)
    assert (status, headers["location"]) == (303, "/runs/x?step=1")
    assert closed_place.ask("GET", "/runs/x?step=1", Cookie=headers["set-cookie"].partition(";")[0])[0] == 200


def test_signing_in_speaks_chinese(closed_place: Place) -> None:
    for headers in ({"Accept_Language": "zh-CN,zh;q=0.9"}, {"Cookie": "stepscope_lang=zh"}):
        assert "登录".encode() in closed_place.ask("GET", "/", **BROWSER, **headers)[2]
    assert "登录".encode() in closed_place.ask("GET", "/?lang=zh", **BROWSER)[2]
    assert b"Sign in" in closed_place.ask("GET", "/?lang=zhx", **BROWSER)[2]


def test_after_signing_in_a_browser_stays_here() -> None:
    for address in ("//evil.example", "/\\evil.example", "https://evil.example", "evil", "/a\nSet-Cookie: x", "/é", ""):
        assert next_address(urlencode({"next": address}).encode()) == "/", address
    assert next_address(b"next=%2Fruns%2Fx%3Fa%3D1") == "/runs/x?a=1"
    assert without_token("/a b\n", b"token=x") == "/a%20b%0A"


def test_the_sign_in_page_shows_no_markup_of_an_address(closed_place: Place) -> None:
    address = "/" + quote('"><script>alert(1)</script>')
    for path in (address, f"/sign-in?{urlencode({'next': address})}", f"/?lang={quote(address)}"):
        assert b"<script" not in closed_place.ask("GET", path, **BROWSER)[2]


def test_wrong_tokens_are_slowed_down_and_the_right_one_is_not() -> None:
    with answering(token=TOKEN, bounds=Bounds(guess_s=4.0, guesses=4)) as place:
        statuses: list[int] = []
        began = time.monotonic()
        guesses = [
            threading.Thread(target=lambda: statuses.append(place.ask(Authorization="Bearer wrong-wrong-wrong")[0]))
            for _ in range(12)
        ]
        for each in guesses:
            each.start()
        assert until(lambda: len(statuses) >= 8)
        assert place.ask(Authorization=f"Bearer {TOKEN}")[0] == 200
        for each in guesses:
            each.join()
        assert time.monotonic() - began >= 4.0
        assert sorted(statuses) == [401] * 4 + [429] * 8


def test_a_page_that_is_opened_by_the_command_signs_in_once(closed_place: Place) -> None:
    assert closed_place.door is not None
    text = closed_place.door.one_time()
    assert closed_place.ask("GET", f"/?token={text}")[0] == 303
    assert closed_place.ask("GET", f"/?token={text}")[0] == 401


def test_a_link_on_another_site_opens_a_page_by_way_of_this_server(closed_place: Place) -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document", **BROWSER}
    status, _, body = closed_place.ask("GET", "/runs/x", **link)
    assert status == 200
    assert b'http-equiv="refresh"' in body
    again = {**link, "Sec_Fetch_Site": "same-origin"}
    status, _, body = closed_place.ask("GET", "/runs/x", **again)
    assert status == 401
    assert b"refresh" not in body


# Pages of other sites


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:9", "[::1]:80", "127.0.0.1:1234", "localhost."])
def test_names_of_this_machine_are_answered(open_place: Place, host: str) -> None:
    assert open_place.ask(Host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "192.168.1.9", "localhost.evil.example"]
)
def test_a_name_that_was_pointed_here_is_refused(open_place: Place, host: str) -> None:
    status, _, body = open_place.ask(Host=host)
    assert status == 421
    assert "--allow-host" in problem(body, 421)


@pytest.mark.parametrize("host", ["", "a b", "127.0.0.1@evil.example", "127.0.0.1:x", "<script>", "127.0.0.1/x"])
def test_a_host_that_is_none_is_refused(open_place: Place, host: str) -> None:
    assert open_place.ask(Host=host)[0] == 400


def test_two_hosts_or_none_are_refused(open_place: Place) -> None:
    for lines in (b"Host: localhost\r\nHost: evil.example\r\n", b""):
        with open_place.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\n" + lines + b"\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 400")
    with open_place.connect() as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b" 400 " in client.recv(4096)[:20]


def test_other_names_are_answered_if_they_are_allowed() -> None:
    with answering(names=("perf.example.com",)) as place:
        assert place.ask(Host="perf.example.com")[0] == 200
        assert place.ask(Host="other.example.com")[0] == 421


def test_a_server_for_other_machines_answers_to_addresses_and_not_to_names() -> None:
    with answering(host="0.0.0.0", token=TOKEN) as place:
        know = {"Authorization": f"Bearer {TOKEN}"}
        for host in ("192.168.1.9:8080", "[fe80::1]", "localhost", socket.gethostname()):
            assert place.ask(Host=host, **know)[0] == 200, host
        assert place.ask(Host="evil.example", **know)[0] == 421


def test_pages_of_other_sites_can_change_nothing(open_place: Place) -> None:
    own = f"127.0.0.1:{open_place.settings.port}"
    open_place.seen.clear()
    for origin in (
        "http://evil.example",
        f"http://{own}.evil.example",
        "null",
        "http://127.0.0.1:1",
        f"ftp://{own}",
        "[",
        "",
    ):
        status, headers, _ = open_place.ask("POST", "/api/v1/x", b"{}", Origin=origin)
        assert status == 403, origin
        assert "access-control-allow-origin" not in headers
    assert open_place.seen == []
    for origin in (f"http://{own}", f"https://{own}"):
        assert open_place.ask("POST", "/api/v1/x", b"{}", Origin=origin)[0] == 200
    assert open_place.ask("POST", "/x", b"", Origin="null", Sec_Fetch_Site="same-origin")[0] == 200
    assert open_place.ask("POST", "/api/v1/x", b"{}")[0] == 200  # a program


def test_pages_of_other_sites_can_load_nothing(open_place: Place) -> None:
    for site in ("cross-site", "same-site"):
        for mode, kind in (("no-cors", "image"), ("no-cors", "script"), ("cors", "empty"), ("navigate", "iframe")):
            given = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": mode, "Sec_Fetch_Dest": kind}
            assert open_place.ask("GET", "/data", **given)[0] == 403, given
        link = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
        assert open_place.ask("GET", "/", **link)[0] == 200
        assert open_place.ask("POST", "/", b"x", **link)[0] == 403
    assert open_place.ask("GET", "/", Sec_Fetch_Site="none")[0] == 200


def test_no_answer_lets_other_sites_read(open_place: Place) -> None:
    _, headers, _ = open_place.ask("GET", "/data", Origin="http://evil.example")
    assert not [name for name in headers if name.startswith("access-control")]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    status, headers, _ = open_place.ask("OPTIONS", "/data", Origin="http://x", Access_Control_Request_Method="POST")
    assert status == 405
    assert headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "X" * 50])
def test_other_methods_are_refused(open_place: Place, method: str) -> None:
    assert open_place.ask(method, "/data" if method != "CONNECT" else "a:1")[0] == 405


def test_head_is_answered_as_get_without_a_body(open_place: Place) -> None:
    open_place.seen.clear()
    status, headers, body = open_place.ask("HEAD", "/data")
    assert (status, body) == (200, b"")
    assert headers["content-type"] == "application/json"
    assert open_place.seen[0]["method"] == "GET"


def test_a_prefix_that_a_client_states_is_not_passed_on(open_place: Place) -> None:
    open_place.seen.clear()
    assert open_place.ask(X_Forwarded_Prefix="/evil", X_Forwarded_For="1.2.3.4", X_Forwarded_Proto="https")[0] == 200
    (scope,) = open_place.seen
    assert b"x-forwarded-prefix" not in dict(scope["headers"])
    assert scope["client"][0] == "127.0.0.1"
    assert scope["scheme"] == "http"


@pytest.mark.parametrize(
    "path", ["/../etc/passwd", "/a/../../b", "/%2e%2e/etc/passwd", "/..%2fetc%2fpasswd", "/a%00b", "/a%5c..%5cb", "/.."]
)
def test_paths_that_lead_out_are_refused(open_place: Place, path: str) -> None:
    open_place.seen.clear()
    assert open_place.ask("GET", path)[0] == 404
    assert open_place.seen == []


# Sockets


def upgrade(
    place: Place, path: str = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket", **headers: str
) -> socket.socket:
    """A connection that asks to become a WebSocket."""
    lines = {
        "Host": f"127.0.0.1:{place.settings.port}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode(),
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    client = place.connect()
    text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    client.sendall(f"GET {path} HTTP/1.1\r\n{text}\r\n".encode())
    return client


def status_of(client: socket.socket) -> int:
    """The status of the answer on a connection."""
    return int(client.recv(4096).split(b" ")[1])


def frame(text: bytes, kind: bytes = b"\x81") -> bytes:
    """A WebSocket message of a client; its mask is zero."""
    size = len(text)
    length = (
        bytes([0x80 | size])
        if size < 126
        else b"\xfe" + struct.pack(">H", size)
        if size < 65_536
        else (b"\xff" + struct.pack(">Q", size))
    )
    return kind + length + b"\0\0\0\0" + text


def test_sockets_need_the_token(closed_place: Place) -> None:
    assert closed_place.door is not None
    cookie = closed_place.door.cookie(secure=False)[1].decode().partition(";")[0]
    own = f"http://127.0.0.1:{closed_place.settings.port}"
    for headers, status in (
        ({"Origin": own}, 401),
        ({"Origin": own, "Cookie": "stepscope_session_1=x"}, 401),
        ({"Origin": own, "Cookie": cookie}, 101),
        ({"Authorization": f"Bearer {TOKEN}"}, 101),
        ({"Origin": "http://evil.example", "Cookie": cookie}, 403),
        ({"Origin": "null", "Cookie": cookie}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example", "Cookie": cookie}, 421),
    ):
        with upgrade(closed_place, **headers) as client:
            assert status_of(client) == status, headers


def test_sockets_are_at_one_place(open_place: Place) -> None:
    open_place.seen.clear()
    with upgrade(open_place, "/api/v1/runs") as client:
        assert status_of(client) == 404
    assert open_place.seen == []


def test_there_is_a_limit_to_sockets(small_place: Place) -> None:
    first, second = upgrade(small_place), upgrade(small_place)
    assert (status_of(first), status_of(second)) == (101, 101)
    with upgrade(small_place) as third:
        assert status_of(third) == 503
    first.close()
    assert until(lambda: _takes_socket(small_place))
    second.close()


def _takes_socket(place: Place) -> bool:
    with upgrade(place) as client:
        return status_of(client) == 101


def test_messages_are_bounded_in_size_and_number() -> None:
    with answering(bounds=Bounds(message_bytes=1000, messages_a_second=50)) as place:
        with upgrade(place) as client:
            assert status_of(client) == 101
            client.sendall(frame(b"x" * 900))
            assert b"got 900" in client.recv(100)
            client.sendall(frame(b"x" * 1001))
            assert client.recv(100)[:1] == b"\x88"  # closed
        with upgrade(place) as client:
            assert status_of(client) == 101
            began, answered = time.monotonic(), 0
            client.sendall(frame(b"x") * 125)
            while answered < 125:
                answered += client.recv(10_000).count(b"got 1")
            assert time.monotonic() - began > 1.2


@pytest.mark.parametrize(
    ("text", "kind"),
    [(b"x", b"\x82"), (b"451-['event']", b"\x81"), (b"469999999999-[]", b"\x81"), (b"bAAAA", b"\x81")],
)
def test_binary_data_which_no_page_sends_ends_a_socket(open_place: Place, text: bytes, kind: bytes) -> None:
    with upgrade(open_place) as client:
        assert status_of(client) == 101
        client.sendall(frame(text, kind))
        assert b"got" not in client.recv(100)
        assert _ends(client)


# What is too large


def test_a_hundred_megabytes_are_refused_unread(open_place: Place) -> None:
    size = 100_000_000
    open_place.seen.clear()
    with open_place.connect() as client:
        client.sendall(f"POST /api/v1/q HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode())
        answer = b""
        while b"at most 1000000 bytes" not in answer:  # what is refused is refused before it was sent
            part = client.recv(10_000)
            assert part
            answer += part
        assert answer.startswith(b"HTTP/1.1 413")
        assert _sent_until_closed(client, size) < size / 2
    assert open_place.seen == []


def test_a_body_of_unstated_length_is_refused_when_it_is_too_long(open_place: Place) -> None:
    open_place.seen.clear()
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with open_place.connect() as client:
        client.sendall(b"POST /api/v1/q HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(16):
            client.sendall(chunk)
        assert client.recv(10_000).startswith(b"HTTP/1.1 413")
        assert _sent_until_closed(client, 100_000_000, chunk) < 50_000_000
    assert open_place.seen == []


def _sent_until_closed(client: socket.socket, most: int, part: bytes = b"x" * 65_536) -> int:
    """How many bytes more a connection takes until it is closed; a pause between them makes that a matter of time."""
    sent = 0
    while sent < most:
        try:
            client.sendall(part)
        except OSError:
            break
        sent += len(part)
        time.sleep(0.005)
    return sent


def test_a_client_that_asks_first_sends_nothing(open_place: Place) -> None:
    with open_place.connect() as client:
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100000000\r\n\r\n"
        client.sendall(head)
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_form_for_the_token_is_small(closed_place: Place) -> None:
    assert closed_place.ask("POST", "/sign-in", b"token=" + b"x" * 5000)[0] == 413


def test_long_addresses_and_many_headers_are_refused(open_place: Place) -> None:
    assert open_place.ask("GET", "/?q=" + "x" * 17_000)[0] == 414
    assert open_place.ask("GET", "/?q=" + "x" * 12_000)[0] == 200
    assert open_place.ask(**{f"X_{number}": "x" for number in range(120)})[0] == 431
    with open_place.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 8000)
        assert client.recv(1000).split(b" ")[1] in (b"400", b"431")
    with open_place.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40_000 + b"\r\n\r\n")
        assert client.recv(1000).split(b" ")[1] in (b"400", b"431")


def test_an_endless_header_is_cut(open_place: Place) -> None:
    with open_place.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        assert _sent_until_closed(client, 10_000_000) < 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n bad: x\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(open_place: Place, text: bytes) -> None:
    with open_place.connect() as client:
        client.sendall(text)
        assert client.recv(1000).split(b" ")[1] in (b"400", b"501")
    assert open_place.ask()[0] == 200


# Clients that stand still


def test_headers_that_never_come_hold_nothing(small_place: Place) -> None:
    with small_place.connect() as silent, small_place.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        assert until(lambda: small_place.number_open() >= 2)
        for _ in range(6):  # a byte now and then does not help
            time.sleep(0.3)
            if not _sends(slow, b"x"):
                break
        assert _ends(silent)
        assert _ends(slow)
    assert until(lambda: small_place.number_open() == 0)


def test_a_body_that_trickles_is_given_up(small_place: Place) -> None:
    with small_place.connect() as slow:
        slow.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
        began = time.monotonic()
        while _sends(slow, b"x") and time.monotonic() - began < 40:
            time.sleep(0.1)
        assert 1 < time.monotonic() - began < 30


def test_a_connection_is_not_kept_for_long(small_place: Place) -> None:
    with small_place.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"hello" in client.recv(10_000) + client.recv(10_000)
        assert _ends(client)


def test_who_never_reads_is_dropped(small_place: Place) -> None:
    with small_place.connect(receive_buffer=4096) as deaf:
        deaf.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert until(lambda: small_place.number_open() == 1)
        assert small_place.ask()[0] == 200  # others are answered meanwhile
        assert until(lambda: small_place.number_open() == 0)


def test_who_reads_slowly_gets_everything(small_place: Place) -> None:
    with small_place.connect() as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        size = 0
        began = time.monotonic()
        while part := slow.recv(1 << 20):
            size += len(part)
            time.sleep(0.1)
        assert size > 50_000_000
        assert time.monotonic() - began > SMALL.unread_s


def test_the_idlest_connection_gives_way_to_a_new_one(small_place: Place) -> None:
    idle = [small_place.connect() for _ in range(SMALL.connections)]
    try:
        assert until(lambda: small_place.number_open() == SMALL.connections)
        assert small_place.ask()[0] == 200
        assert small_place.number_open() <= SMALL.connections
    finally:
        for each in idle:
            each.close()


def test_many_silent_connections_keep_nobody_out() -> None:
    with answering(bounds=Bounds(connections=100)) as place:
        silent = [place.connect() for _ in range(150)]
        try:
            assert until(lambda: place.number_open() >= 100)
            assert place.ask()[0] == 200
            assert place.number_open() <= 100
        finally:
            for each in silent:
                each.close()


def _sends(client: socket.socket, text: bytes) -> bool:
    try:
        client.sendall(text)
    except OSError:
        return False
    return True


def _ends(client: socket.socket) -> bool:
    """Whether the other side closes a connection."""
    client.settimeout(15)
    try:
        while client.recv(10_000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


# What an answer lets a browser do


def test_every_answer_says_what_a_browser_may_do_with_it(open_place: Place) -> None:
    for path in ("/", "/data", "/page", "/own-policy", "/fails", "/../x"):
        _, headers, _ = open_place.ask("GET", path)
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "no-referrer", path
        assert headers["cross-origin-opener-policy"] == "same-origin", path
        assert headers["content-security-policy"], path
        assert "server" not in headers, path
    assert open_place.ask("GET", "/own-policy")[1]["content-security-policy"] == "default-src 'self'"
    assert open_place.ask("GET", "/data")[1]["content-security-policy"].startswith("default-src 'none'")


def test_only_the_scripts_of_a_page_run_in_it(open_place: Place) -> None:
    _, headers, body = open_place.ask("GET", "/page")
    assert body == PAGE
    policy = headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(b"let a = 1").digest()).decode()
    assert f"script-src 'self' 'unsafe-eval' 'sha256-{digest}';" in policy
    assert "script-src-attr 'none'" in policy
    assert f"connect-src 'self' ws://127.0.0.1:{open_place.settings.port} " in policy
    assert "'unsafe-inline'" not in open_place.ask("GET", "/")[1]["content-security-policy"].partition("style-src")[0]


def test_no_policy_names_another_host() -> None:
    policy = page_policy("here:1", ["x"])
    assert not re.findall(r"https?:|\*", policy)
    assert "frame-ancestors 'none'" in policy
    assert "object-src 'none'" in policy


def test_scripts_are_found_as_a_browser_finds_them() -> None:
    def digest(text: bytes) -> str:
        return base64.b64encode(hashlib.sha256(text).digest()).decode()

    page = b"<SCRIPT type='module'>\r\na < b\r</script ><script src=x>y</script><script async defer>\n</script>"
    assert scripts_in(page) == [digest(b"\na < b\n"), digest(b"\n")]


def test_a_failure_is_reported_here_and_not_there(open_place: Place, caplog: pytest.LogCaptureFixture) -> None:
    status, _, body = open_place.ask("GET", "/fails")
    assert status == 500
    assert "secret" not in problem(body, 500)
    assert b"secret" not in open_place.ask("GET", "/fails", **BROWSER)[2]
    assert "GET /fails failed" in caplog.text
    assert "a secret of the server" in caplog.text
