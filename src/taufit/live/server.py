"""Web server for one user of this computer: request checks, responses, ASGI server.

Every request is checked before the application, in this order:

    Host      one of the addresses the server listens on, else 421 (against DNS rebinding)
    Origin    absent or the server's own, else 403 (against other pages in the same browser)
    token     in the query or in the header X-Taufit-Token, for POST only in the header, else 401
    size      of head and body below the limits, else 431 or 413

so no page of another site can read a stream or press a button, even if it guesses the port.
Connections without token are closed after seconds, and the oldest of too many are closed first:
users with the token are always served. Responses forbid foreign scripts, frames and requests.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from taufit.core.dataclasses import dataclass
from taufit.core.errors import TaufitError
from taufit.core.extras import missing_extra

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn import Server

BODY_LIMIT = 64_000
HEAD_LIMIT = 16_384
# Limits of connections with and without token; time to authenticate [s].
MAX_CONNECTIONS = 64
MAX_UNAUTHENTICATED = 256
AUTHENTICATION_S = 5.0
_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
_EMPTY_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class ServerError(TaufitError):
    """A page cannot be served: the port is in use, or the address is not of this computer."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address and token of a server.

    Attributes:
        host: Address of this computer.
        port: Port.
        token: Secret required with every request.
    """

    host: str
    port: int
    token: str = field(repr=False, default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def address(self) -> str:
        """Address shown by a browser: scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def url(self) -> str:
        """Address of the page including the token."""
        return f"{self.address}/?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """Valid values of the Host header."""
        host_and_port = self.address.removeprefix("http://")
        if self.host in ("127.0.0.1", "::1", "localhost"):
            return frozenset({host_and_port, *(f"{name}:{self.port}" for name in _LOCAL)})
        return frozenset({host_and_port})


def open_server_socket(host: str = "127.0.0.1", port: int = 0) -> tuple[socket.socket, Endpoint]:
    """Open a listening socket and its endpoint; port 0 takes a free port."""
    require_server()
    if host in ("0.0.0.0", "::", ""):
        raise ServerError(
            f"{host or 'an empty address'} is every address of this computer: name the one that "
            "the page is to be reached at."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server_socket = socket.socket(family, socket.SOCK_STREAM)
    server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server_socket.bind((host, port))
    except (OSError, OverflowError) as error:
        server_socket.close()
        reason = getattr(error, "strerror", None) or error
        raise ServerError(
            f"cannot listen on {host}:{port}: {reason}. Give another --port (0: any free one)."
        ) from None
    server_socket.listen(MAX_UNAUTHENTICATED)
    return server_socket, Endpoint(host, server_socket.getsockname()[1])


_NO_TOKEN = "the token is missing or wrong: use the address that taufit printed"
_RELOAD = """const token = sessionStorage.getItem("taufit-token");
if (token) location.replace(`/?token=${encodeURIComponent(token)}`);"""


class ConnectionTable:
    """Connections of a server, with and without token.

    Connections are identified by their remote address.
    """

    def __init__(self) -> None:
        self._unauthenticated: dict[Any, Any] = {}
        self._authenticated: dict[Any, Any] = {}

    def add(self, client: Any, transport: Any) -> None:
        """Add a connection; close the oldest of too many without token."""
        self._unauthenticated[client] = transport
        while len(self._unauthenticated) > MAX_UNAUTHENTICATED:
            oldest = next(iter(self._unauthenticated))
            self._unauthenticated.pop(oldest).abort()

    def authenticate(self, client: Any) -> bool:
        """Mark a connection as authenticated; False if there are too many."""
        client = None if client is None else tuple(client)
        if client not in self._authenticated and len(self._authenticated) >= MAX_CONNECTIONS:
            return False
        transport = self._unauthenticated.pop(client, None)
        if transport is not None:
            self._authenticated[client] = transport
        return True

    def close_unauthenticated(self, client: Any, transport: Any) -> None:
        """Close a connection that has not shown the token in time."""
        if client in self._unauthenticated and self._unauthenticated[client] is transport:
            transport.abort()

    def remove(self, client: Any) -> None:
        """Remove a closed connection."""
        self._unauthenticated.pop(client, None)
        self._authenticated.pop(client, None)


def _protocol(connections: ConnectionTable) -> type:
    """uvicorn protocol that registers connections and limits their time to authenticate."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Noted(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connections.add(self.client, transport)
            self.loop.call_later(
                AUTHENTICATION_S, connections.close_unauthenticated, self.client, transport
            )

        def connection_lost(self, exc: Exception | None) -> None:
            connections.remove(self.client)
            super().connection_lost(exc)

    return Noted


class RequestGuard:
    """ASGI middleware: checks requests, then calls the application."""

    def __init__(
        self,
        app: ASGIApp,
        endpoint: Endpoint,
        limits: Mapping[str, int] | None = None,
        connections: ConnectionTable | None = None,
    ) -> None:
        self.app, self.endpoint, self.limits = app, endpoint, dict(limits or {})
        self.connections = connections or ConnectionTable()
        self.token = endpoint.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        refusal = self._refusal(scope, headers)
        if refusal is None:
            body = await _body(receive, self.limits.get(scope["path"], BODY_LIMIT))
            if body is None:
                refusal = (413, "the request is too large")
            else:
                await self.app(scope, _replay_body(body, receive), _with_headers(send))
        if refusal is not None:
            await _send_refusal(send, *refusal, page=_is_page(scope, headers))

    def _refusal(self, scope: Scope, headers: dict[str, list[str]]) -> tuple[int, str] | None:
        head = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if head + sum(len(name) + len(value) for name, value in scope["headers"]) > HEAD_LIMIT:
            return 431, "the request's head is too large"
        if (
            len(headers.get("host", [])) != 1
            or headers["host"][0].lower() not in self.endpoint.hosts
        ):
            return 421, "this server does not answer for that host"
        origins = {f"http://{host}" for host in self.endpoint.hosts}
        if any(origin.lower() not in origins for origin in headers.get("origin", [])):
            return 403, "this page may only be asked by itself"
        if any(site not in ("same-origin", "none") for site in headers.get("sec-fetch-site", [])):
            return 403, "this page may only be asked by itself"
        if not self._has_token(scope, headers):
            return 401, _NO_TOKEN
        if not self.connections.authenticate(scope.get("client")):
            return 503, "too many pages are open: close one"
        length = headers.get("content-length", ["0"])
        limit = self.limits.get(scope["path"], BODY_LIMIT)
        if len(length) != 1 or not length[0].isdigit() or int(length[0]) > limit:
            return 413, "the request is too large"
        return None

    def _has_token(self, scope: Scope, headers: dict[str, list[str]]) -> bool:
        tokens = headers.get("x-taufit-token", [])
        if not tokens and scope["method"] in ("GET", "HEAD"):
            query = scope["query_string"].decode("latin-1")
            try:
                tokens = parse_qs(query, max_num_fields=20).get("token", [])
            except ValueError:
                tokens = []
        token = tokens[0].encode("utf-8", "surrogatepass") if len(tokens) == 1 else b""
        return hmac.compare_digest(token, self.token)


async def _body(receive: Receive, limit: int) -> bytes | None:
    """Body of the request, or None if it is too long."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            return None
        if not message.get("more_body", False):
            return b"".join(parts)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Receiver that returns a body already read, then further messages."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again


def _with_headers(send: Send) -> Send:
    """Sender that adds common headers; a policy of the page is kept."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            present = {name.lower() for name, _ in message.get("headers", [])}
            common = {**_HEADERS, "content-security-policy": _EMPTY_POLICY}
            missing = [
                (k.encode(), v.encode()) for k, v in common.items() if k.encode() not in present
            ]
            message = {**message, "headers": [*message.get("headers", []), *missing]}
        await send(message)

    return send_with_headers


def _is_page(scope: Scope, headers: dict[str, list[str]]) -> bool:
    """Whether a browser requests the page without token in the address, as on a reload."""
    return (
        scope["method"] == "GET"
        and scope["path"] == "/"
        and b"token" not in scope["query_string"]
        and "text/html" in "".join(headers.get("accept", []))
    )


async def _send_refusal(send: Send, status: int, text: str, *, page: bool = False) -> None:
    body, kind, policy = (text + "\n").encode(), "plain", _EMPTY_POLICY
    if page and status == 401:
        # The page has removed the token from the address and stored it for this tab.
        nonce = secrets.token_urlsafe(16)
        kind, policy = "html", f"{_EMPTY_POLICY}; script-src 'nonce-{nonce}'"
        body = (
            f'<!doctype html><meta charset="utf-8"><p>{escape(text)}</p><script nonce="{nonce}">'
            f"{_RELOAD}</script>\n"
        ).encode()
    headers = {
        "content-type": f"text/{kind}; charset=utf-8",
        "content-security-policy": policy,
        "content-length": str(len(body)),
        "connection": "close",
    }
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    send_response = _with_headers(send)
    await send_response({"type": "http.response.start", "status": status, "headers": encoded})
    await send_response({"type": "http.response.body", "body": body})


def render_page(name: str, title: str, settings: str, body: str) -> tuple[str, dict[str, str]]:
    """Page as text with its headers; style and script are inline, allowed by a nonce.

    Args:
        name: Name of style and script among the static files.
        title: Title in the browser.
        settings: JSON for the script.
        body: HTML.
    """
    from taufit.report.page import page_style, static_text

    nonce = secrets.token_urlsafe(16)
    static = files("taufit.live") / "static"
    style = page_style() + (static / "pages.css").read_text(encoding="utf-8")
    style += (static / f"{name}.css").read_text(encoding="utf-8")
    script = static_text("charts.js") + (static / f"{name}.js").read_text(encoding="utf-8")
    # In a script element only "</" could end it.
    data = settings.replace("<", "\\u003c")
    text = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f'<style nonce="{nonce}">{style}</style></head><body>{body}'
        f'<script type="application/json" id="settings" nonce="{nonce}">{data}</script>'
        f'<script nonce="{nonce}">{script}</script></body></html>\n'
    )
    policy = (
        f"{_EMPTY_POLICY}; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src "
        f"'self'; "
        "img-src data:"
    )
    return text, {"content-security-policy": policy}


@contextmanager
def run_server(
    app: ASGIApp,
    server_socket: socket.socket,
    endpoint: Endpoint,
    limits: Mapping[str, int] | None = None,
) -> Iterator[Server]:
    """Serve an application behind a `RequestGuard` in its own thread while the block runs.

    Args:
        app: Application.
        server_socket: Socket of `open_server_socket`; closed at the end.
        endpoint: Endpoint of `open_server_socket`.
        limits: {path: largest body in bytes}, if not BODY_LIMIT.
    """
    import uvicorn

    connections = ConnectionTable()
    config = uvicorn.Config(
        RequestGuard(app, endpoint, limits, connections),
        http=_protocol(connections),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=MAX_UNAUTHENTICATED,
        h11_max_incomplete_event_size=HEAD_LIMIT,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())
    logging.getLogger("uvicorn").propagate = False
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, kwargs={"sockets": [server_socket]}, name="taufit page", daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(10.0)
        server_socket.close()


def application(routes: Mapping[str, tuple[str, Callable[..., Any]]]) -> ASGIApp:
    """Application from {path: (method, endpoint)}."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    return Starlette(
        routes=[Route(path, endpoint, methods=[m]) for path, (m, endpoint) in routes.items()]
    )


def require_server() -> None:
    """Raise if the libraries of the server are not installed."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise missing_extra("live", "serving a page")
