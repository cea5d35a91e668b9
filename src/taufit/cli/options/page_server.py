"""Options of a page served in the browser, and its announcement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taufit.cli.common import print_json
from taufit.core.dataclasses import dataclass

if TYPE_CHECKING:
    import socket

    from taufit.live.server import Endpoint


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Address of the page, and whether a browser is opened."""

    port: Annotated[
        int, typer.Option(help="Port of the page; 0: any free port.", min=0, max=65535)
    ] = 0
    bind: Annotated[str, typer.Option(help="Address of this computer to serve the page on.")] = (
        "127.0.0.1"
    )
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the page in the default browser.")
    ] = False

    def listen(self) -> tuple[socket.socket, Endpoint]:
        """Open the socket; warn if other computers can reach it."""
        from taufit.live.server import open_server_socket

        server_socket, endpoint = open_server_socket(self.bind, self.port)
        if not self.bind.startswith("127.") and self.bind not in ("localhost", "::1"):
            print(
                f"{self.bind} can be reached from outside; the page and its token are not "
                "encrypted on the way.",
                file=sys.stderr,
            )
        return server_socket, endpoint

    def announce(
        self, endpoint: Endpoint, about: dict[str, Any], as_json: bool, stream: Any
    ) -> None:
        """Print the address of the page."""
        if as_json:
            print_json({"url": endpoint.url, "port": endpoint.port, **about})
            sys.stdout.flush()
        else:
            print(f"{endpoint.url}\nCtrl-C ends it.", file=stream, flush=True)
        if self.browser:
            import webbrowser

            webbrowser.open(endpoint.url)
