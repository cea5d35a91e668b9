"""Web application of the column mapper: page and actions."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from taufit.core.errors import TaufitError
from taufit.core.plain_data import to_plain_data
from taufit.live.mapper.column_roles import ROLES, Role
from taufit.live.mapper.mapping_session import ROBOT_SUFFIXES, MappingSession
from taufit.live.server import Endpoint, application, render_page
from taufit.recording.quantity import QUANTITIES
from taufit.report.page import LOGO

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

# Size limit of a robot description [bytes].
LIMITS = {"/robot": 8_000_000}
# Largest sampling rate of a recording [Hz].
_MAX_RATE = 1e6
_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class InvalidRequestError(ValueError):
    """A request that the page never sends."""


def mapper(session: MappingSession, endpoint: Endpoint) -> ASGIApp:
    """Create the application; serve it behind a `RequestGuard` with LIMITS.

    Args:
        session: Mapping session.
        endpoint: Address and token of the server.
    """
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse

    static = {
        "token": endpoint.token,
        "columns": session.columns(),
        "roles": ROLES,
        "single": [name for name in ROLES if name and not QUANTITIES[name].per_joint],
        "units": {name: list(QUANTITIES[name].units) for name in ROLES if name},
    }

    async def index(request: Request) -> Response:
        robots = await run_in_threadpool(session.likely_robots)
        settings = json.dumps(to_plain_data({**static, "robots": robots}), allow_nan=False)
        text, headers = render_page(
            "mapper", f"taufit open: {session.path.name}", settings, _page_body(session)
        )
        return HTMLResponse(text, headers=headers)

    async def state(request: Request) -> Response:
        return JSONResponse(to_plain_data(session.state()))

    async def report(request: Request) -> Response:
        if not session.fit.report:
            return PlainTextResponse("there is no report yet\n", 404)
        return HTMLResponse(session.fit.report, headers={"content-security-policy": _SANDBOX})

    buttons = {
        path: ("POST", _action_endpoint(session, act)) for path, act in _actions(session).items()
    }
    pages = {"/": ("GET", index), "/state": ("GET", state), "/report": ("GET", report)}
    return application(pages | buttons)


Action = Callable[[dict[str, Any]], dict[str, Any] | None]


def _actions(session: MappingSession) -> dict[str, Action]:
    """Actions of the buttons on the JSON object they send."""
    columns = 0 if session.table is None else len(session.table.names)

    def robot(request: dict[str, Any]) -> None:
        name = _request_text(request, "name", 200)
        if request.get("text") is None:
            session.select_bundled_robot(name)
        else:
            session.load_robot(name, _request_text(request, "text", LIMITS["/robot"]))

    def set_columns(request: dict[str, Any]) -> None:
        session.set_columns(
            _request_roles(request.get("roles"), columns), _request_units(request.get("units"))
        )

    def set_rate(request: dict[str, Any]) -> None:
        session.set_rate(_request_rate(request.get("rate_hz")))

    def save(request: dict[str, Any]) -> dict[str, Any]:
        return {"saved": str(session.save())}

    def fit(request: dict[str, Any]) -> None:
        session.start_fit()

    return {"/robot": robot, "/map": set_columns, "/rate": set_rate, "/save": save, "/fit": fit}


def _action_endpoint(session: MappingSession, act: Action) -> Callable[..., Any]:
    """Endpoint of an action: JSON object in, new state out; errors as text."""
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, PlainTextResponse

    async def endpoint(request: Request) -> Response:
        try:
            data = json.loads(await request.body())
            if not isinstance(data, dict):
                raise InvalidRequestError("a JSON object was expected")
            extra_data = await run_in_threadpool(act, data)
        except TaufitError as error:
            return PlainTextResponse(f"{error}\n", 409)
        except (ValueError, RecursionError) as error:
            return PlainTextResponse(f"not understood: {error}\n", 400)
        except OSError as error:
            return PlainTextResponse(f"{error.strerror or error}\n", 409)
        return JSONResponse(to_plain_data({**session.state(), **(extra_data or {})}))

    return endpoint


def _request_text(request: dict[str, Any], key: str, max_length: int) -> str:
    value = request.get(key)
    if not isinstance(value, str) or len(value) > max_length:
        raise InvalidRequestError(f"{key} must be text")
    return value


def _request_roles(data: Any, columns: int) -> dict[int, Role]:
    """{column: (quantity, joint)} from JSON."""
    if not isinstance(data, dict) or len(data) > columns:
        raise InvalidRequestError("roles must be an object of columns")
    out: dict[int, Role] = {}
    for key, value in data.items():
        if not key.isascii() or not key.isdigit() or len(key) > 6 or int(key) >= columns:
            raise InvalidRequestError(f"there is no column {key[:20]!r}")
        if not isinstance(value, list) or len(value) != 2:
            raise InvalidRequestError("a role is a quantity and a joint")
        quantity, joint = value
        if quantity not in ROLES[1:] or type(joint) is not int or not 0 <= joint <= 64:
            raise InvalidRequestError("a role is a quantity and a joint")
        out[int(key)] = (quantity, joint if QUANTITIES[quantity].per_joint else 0)
    return out


def _request_rate(data: Any) -> float:
    if isinstance(data, bool) or not isinstance(data, (int, float)) or not 0.0 < data <= _MAX_RATE:
        raise InvalidRequestError(f"a rate is a number of Hz, at most {_MAX_RATE:g}")
    return float(data)


def _request_units(data: Any) -> dict[str, str]:
    if not isinstance(data, dict):
        raise InvalidRequestError("units must be an object")
    for name, unit in data.items():
        if name not in QUANTITIES or unit not in QUANTITIES[name].units:
            raise InvalidRequestError("there is no such unit")
    return dict(data)


def _page_body(session: MappingSession) -> str:
    """HTML of the page without values."""
    endings = ", ".join(ROBOT_SUFFIXES)
    name = escape(session.path.name)
    no_map_note = (
        "" if session.table is not None else "<p>The columns of this file are recognised.</p>"
    )
    return f"""<main><header class="top">{LOGO}<h1>{name}</h1><p class="sub">What are its columns?
Three steps: the robot, the columns, the fit.</p></header>
<section aria-labelledby="robot-title"><h2 id="robot-title">1. The robot</h2>
<div class="row"><label for="robot">Bundled</label><select id="robot"><option value="">choose
</option></select><label class="drop" id="drop">or drop a description here, or click ({endings})
<input type="file" id="file" accept="{endings}" class="unseen"></label></div>
<p id="check" role="status">No robot is chosen yet.</p>
<div id="joints" class="bars"></div></section>
<section aria-labelledby="columns-title"><h2 id="columns-title">2. The columns</h2>{no_map_note}
<p id="read" role="status"></p><p id="problem" class="bad" role="alert"></p>
<details id="why"><summary>Why these guesses</summary><ul id="reasons"></ul></details>
<div class="row"><span id="quantities" class="row"></span><label id="rate-label"
class="unit hidden">rate [Hz]<input type="number" id="rate" min="0" step="any"></label></div>
<div class="scroll" tabindex="0" role="region" aria-label="Columns of the file"><table id="columns">
<thead><tr><th scope="col" class="text">column</th><th scope="col" class="text">it looks like</th>
<th scope="col">smallest</th><th scope="col">largest</th><th scope="col" class="text">it is</th>
<th scope="col" class="text">joint</th></tr></thead><tbody></tbody></table></div>
<details><summary>The map</summary><pre id="map" tabindex="0"></pre></details>
<div class="row"><button type="button" id="save" class="main" disabled>Write the map</button>
<span id="saved" role="status"></span></div></section>
<section aria-labelledby="fit-title"><h2 id="fit-title">3. The fit</h2>
<p>On the first 70 % of the recording; the rest judges it.</p>
<div class="row"><button type="button" id="fit" disabled>Fit</button>
<progress id="progress" class="hidden" aria-label="The fit is running"></progress>
<span id="fitted" role="status"></span> <a id="report" class="hidden" target="_blank"
rel="noopener">Open the report</a></div></section></main>"""
