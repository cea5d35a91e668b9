"""Who may ask: wrong hosts, origins, tokens, sizes and garbage are refused, and nothing stops."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import socket
import time

import pytest

from taufit.live.server import (
    AUTHENTICATION_S,
    BODY_LIMIT,
    Endpoint,
    ServerError,
    open_server_socket,
)

# `make fuzz` sets this to 1; the ordinary run takes a small share of it.
REQUESTS = max(300, int(10_000 * float(os.environ.get("TAUFIT_FUZZ", "0.02"))))


def ask(place, path="/", method="GET", body=None, token=True, **heads):
    """(status, headers, body) of one request."""
    line = http.client.HTTPConnection(place.host, place.port, timeout=30)
    try:
        if token and method == "GET":
            path += ("&" if "?" in path else "?") + f"token={place.token}"
        elif token:
            heads["X-Taufit-Token"] = place.token
        line.request(method, path, body, {k.replace("_", "-"): v for k, v in heads.items()})
        answer = line.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        line.close()


def test_the_page_is_served_to_who_has_the_token(dashboard_page):
    status, heads, body = ask(dashboard_page.place)
    assert status == 200 and b"<canvas" in body
    policy = heads["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert heads["Cache-Control"] == "no-store" and heads["Referrer-Policy"] == "no-referrer"


def test_every_page_has_a_nonce_of_its_own(dashboard_page):
    policies = {ask(dashboard_page.place)[1]["Content-Security-Policy"] for _ in range(3)}
    assert len(policies) == 3


@pytest.mark.parametrize("path", ["/", "/stream", "/record", "/nothing", "/static/x"])
@pytest.mark.parametrize("token", ["", "?token=", "?token=wrong", "?token=a&token=b"])
def test_a_wrong_token_is_refused_everywhere(dashboard_page, path, token):
    assert ask(dashboard_page.place, path + token, token=False)[0] == 401


def test_the_right_token_twice_is_refused(dashboard_page):
    token = dashboard_page.place.token
    query = f"/?token={token}&token={token}"
    assert ask(dashboard_page.place, query, token=False)[0] == 401


def test_a_token_in_the_address_presses_no_button(dashboard_page):
    place = dashboard_page.place
    path = f"/record?token={place.token}"
    assert ask(place, path, "POST", b'{"on": true}', token=False)[0] == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost"])
def test_a_foreign_host_is_refused(dashboard_page, host):
    assert ask(dashboard_page.place, Host=host)[0] in (400, 421)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_this_computer_has_these_names(dashboard_page, name):
    place = dashboard_page.place
    assert ask(place, Host=f"{name}:{place.port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", ""]
)
def test_a_foreign_origin_is_refused(dashboard_page, origin):
    assert ask(dashboard_page.place, Origin=origin)[0] == 403
    assert ask(dashboard_page.place, "/stream", Origin=origin)[0] == 403
    assert ask(dashboard_page.place, "/record", "POST", b"{}", Origin=origin)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "other"])
def test_requests_that_browsers_mark_as_foreign_are_refused(dashboard_page, site):
    assert ask(dashboard_page.place, Sec_Fetch_Site=site)[0] == 403


def test_its_own_origin_is_let_in(dashboard_page):
    place = dashboard_page.place
    assert ask(place, Origin=place.address)[0] == 200


def refused(place, *request, **heads):
    """Status of a request that is too large; 413 too where the server hung up before its end."""
    try:
        return ask(place, *request, **heads)[0]
    except ConnectionError:
        # Who is still sending when the server closes the line cannot read its answer.
        return 413


def test_large_requests_are_refused(dashboard_page):
    place = dashboard_page.place
    chunks = iter([b" " * 4000] * 20)
    assert refused(place, "/record", "POST", b" " * (BODY_LIMIT + 1)) == 413
    assert refused(place, "/record", "POST", chunks, Transfer_Encoding="chunked") in (400, 413)
    assert refused(place, "/?x=" + "y" * 40_000) in (400, 413, 414, 431)
    assert refused(place, X_Long="y" * 40_000) in (400, 413, 414, 431)
    assert ask(place)[0] == 200


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"on": 1}', b'{"on": "yes"}', b'{"on": true, "file": "/x"}', b"[" * 9],
)
def test_malformed_orders_are_refused(dashboard_page, body):
    assert ask(dashboard_page.place, "/record", "POST", body)[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_do_nothing(dashboard_page, method):
    assert ask(dashboard_page.place, "/record", method)[0] in (401, 405)


def test_idle_and_slow_strangers_lock_nobody_out(dashboard_page):
    """300 idle and 300 that send their head a byte at a time: each has seconds for the token."""
    place = dashboard_page.place
    lines = []
    try:
        for k in range(600):
            lines.append(socket.create_connection((place.host, place.port), timeout=30))
            if k % 2:
                lines[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")
        for _ in range(3):
            for line in lines[1::2]:
                with contextlib.suppress(OSError):
                    line.sendall(b"x")
            began = time.monotonic()
            assert ask(place)[0] == 200
            assert time.monotonic() - began < 1.0
        time.sleep(AUTHENTICATION_S + 0.5)
        # Those that were not pushed out have been closed by now.
        lines[-2].settimeout(2.0)
        with contextlib.suppress(ConnectionError):
            assert lines[-2].recv(10) == b""
    finally:
        for line in lines:
            line.close()


def test_a_reload_without_the_token_in_the_address_asks_the_tab(dashboard_page):
    status, heads, body = ask(dashboard_page.place, token=False, Accept="text/html")
    assert status == 401 and b"sessionStorage" in body and b"token=" in body
    assert dashboard_page.place.token.encode() not in body
    nonce = re.search(rb'nonce="([^"]+)"', body)[1].decode()
    assert f"script-src 'nonce-{nonce}'" in heads["Content-Security-Policy"]
    assert (
        b"script" not in ask(dashboard_page.place, "/?token=x", token=False, Accept="text/html")[2]
    )


def test_every_address_at_once_is_refused():
    for host in ("0.0.0.0", "::", ""):
        with pytest.raises(ServerError, match="every address"):
            open_server_socket(host)


def test_a_port_that_is_taken_is_told():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(ServerError, match="--port"):
            open_server_socket("127.0.0.1", other.getsockname()[1])


def test_the_token_is_not_in_the_words_for_a_place():
    place = Endpoint("127.0.0.1", 80)
    assert place.token not in repr(place) and place.token in place.url


def seeds(place):
    host, token = f"127.0.0.1:{place.port}", place.token
    tail = f"Host: {host}\r\nConnection: close\r\n"
    order = json.dumps({"on": False})
    return [
        f"GET /?token={token} HTTP/1.1\r\n{tail}\r\n",
        f"GET /record?token={token} HTTP/1.1\r\n{tail}Origin: http://{host}\r\n\r\n",
        f"POST /record HTTP/1.1\r\n{tail}X-Taufit-Token: {token}\r\nContent-Length: {len(order)}"
        f"\r\n\r\n{order}",
        f"POST /record HTTP/1.1\r\n{tail}X-Taufit-Token: {token}\r\nTransfer-Encoding: chunked"
        f"\r\n\r\n{len(order):x}\r\n{order}\r\n0\r\n\r\n",
        f"GET / HTTP/1.1\r\n{tail}\r\n",
    ]


WORDS = [
    b"\r\n", b"\0", b"Host: evil.example\r\n", b"Origin: null\r\n", b"%", b"../", b"//", b"token=",
    b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"\xff\xfe", b"HTTP/9.9",
    b"Sec-Fetch-Site: cross-site\r\n", b"GET http://evil.example/ HTTP/1.1\r\n", b"A" * 20_000,
    b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"Expect: 100-continue\r\n", b"{",
    b"[" * 5000,
]  # fmt: skip


def damaged(draw, data):
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at, how = draw.randrange(len(data) + 1), draw.randrange(5)
        if how == 0 and data:
            data[at % len(data)] = draw.randrange(256)
        elif how == 1:
            del data[at : at + draw.randint(1, 20)]
        elif how == 2:
            data[at:at] = draw.choice(WORDS)
        elif how == 3:
            line_end = data.find(b"\r\n", at)
            data[max(0, line_end) : max(0, line_end)] = b"\r\n" + draw.choice(WORDS).strip()
        else:
            data[at:] = draw.randbytes(draw.randint(0, 60))
    return bytes(data)


def answer_to(place, data):
    with socket.create_connection((place.host, place.port), timeout=30) as line:
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            parts = []
            while part := line.recv(65536):
                parts.append(part)
                if b"text/event-stream" in part:
                    break
        except ConnectionError:
            return b""
        return b"".join(parts)


def test_garbage_is_refused_and_nothing_stops(dashboard_page):
    place, draw = dashboard_page.place, random.Random(19)
    whole = [text.encode() for text in seeds(place)]
    statuses = {}
    for _ in range(REQUESTS):
        data = damaged(draw, draw.choice(whole))
        answer = answer_to(place, data)
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, (data, answer)
        if status == 200:
            # Only what still says the token and one of this computer's names may pass.
            assert place.token.encode() in data, data
            assert f":{place.port}".encode() in data, data
            assert b"evil" not in answer
    assert statuses.get(200, 0) < REQUESTS / 2 and len(statuses) > 4
    assert ask(place)[0] == 200
    assert not dashboard_page.session.is_finished.is_set()
    assert not dashboard_page.session.recorder.files
