"""The column mapper as an application: one page, what it asks, what its buttons do."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from taufit.core.errors import TaufitError
from taufit.core.plain_data import to_plain_data
from taufit.live.mapper.mapping_session import DESCRIPTIONS, MappingSession
from taufit.live.mapper.roles import ROLES, Role
from taufit.live.server import Endpoint, application, page
from taufit.recording.quantity import QUANTITIES

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

# A robot's description, in bytes.
LIMITS = {"/robot": 8_000_000}
_SANDBOX = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class WrongOrderError(ValueError):
    """A request that this page never makes."""


def mapper(desk: MappingSession, place: Endpoint) -> ASGIApp:
    """The application; it goes behind a `Guard` with LIMITS.

    Args:
        desk: The file and what is known of it.
        place: Where it is served.
    """
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse

    static = {
        "token": place.token,
        "columns": desk.columns(),
        "roles": ROLES,
        "single": [name for name in ROLES if name and not QUANTITIES[name].per_joint],
        "units": {name: list(QUANTITIES[name].units) for name in ROLES if name},
    }

    async def index(request: Request) -> Response:
        robots = await run_in_threadpool(desk.likely_robots)
        settings = json.dumps(to_plain_data({**static, "robots": robots}), allow_nan=False)
        text, heads = page("mapper", f"taufit open: {desk.path.name}", settings, _body(desk))
        return HTMLResponse(text, headers=heads)

    async def state(request: Request) -> Response:
        return JSONResponse(to_plain_data(desk.state()))

    async def report(request: Request) -> Response:
        if not desk.fit.report:
            return PlainTextResponse("there is no report yet\n", 404)
        return HTMLResponse(desk.fit.report, headers={"content-security-policy": _SANDBOX})

    buttons = {path: ("POST", _button(desk, act)) for path, act in _orders(desk).items()}
    pages = {"/": ("GET", index), "/state": ("GET", state), "/report": ("GET", report)}
    return application(pages | buttons)


Order = Callable[[dict[str, Any]], dict[str, Any] | None]


def _orders(desk: MappingSession) -> dict[str, Order]:
    """What each button does with the JSON object it sends."""
    columns = 0 if desk.table is None else len(desk.table.names)

    def robot(asked: dict[str, Any]) -> None:
        name = _text(asked, "name", 200)
        if asked.get("text") is None:
            desk.choose_robot(name)
        else:
            desk.drop_robot(name, _text(asked, "text", LIMITS["/robot"]))

    def say(asked: dict[str, Any]) -> None:
        desk.say(_roles(asked.get("roles"), columns), _units(asked.get("units")))

    def save(asked: dict[str, Any]) -> dict[str, Any]:
        return {"saved": str(desk.save())}

    def fit(asked: dict[str, Any]) -> None:
        desk.start_fit()

    return {"/robot": robot, "/map": say, "/save": save, "/fit": fit}


def _button(desk: MappingSession, act: Order) -> Callable[..., Any]:
    """A JSON object in, the new state out; what is wrong as text."""
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, PlainTextResponse

    async def endpoint(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            if not isinstance(asked, dict):
                raise WrongOrderError("a JSON object was expected")
            more = await run_in_threadpool(act, asked)
        except TaufitError as error:
            return PlainTextResponse(f"{error}\n", 409)
        except (ValueError, RecursionError) as error:
            return PlainTextResponse(f"not understood: {error}\n", 400)
        except OSError as error:
            return PlainTextResponse(f"{error.strerror or error}\n", 409)
        return JSONResponse(to_plain_data({**desk.state(), **(more or {})}))

    return endpoint


def _text(asked: dict[str, Any], key: str, longest: int) -> str:
    value = asked.get(key)
    if not isinstance(value, str) or len(value) > longest:
        raise WrongOrderError(f"{key} must be text")
    return value


def _roles(given: Any, columns: int) -> dict[int, Role]:
    """{column: (quantity, joint)} from JSON."""
    if not isinstance(given, dict) or len(given) > columns:
        raise WrongOrderError("roles must be an object of columns")
    out: dict[int, Role] = {}
    for key, value in given.items():
        if not key.isascii() or not key.isdigit() or len(key) > 6 or int(key) >= columns:
            raise WrongOrderError(f"there is no column {key[:20]!r}")
        if not isinstance(value, list) or len(value) != 2:
            raise WrongOrderError("a role is a quantity and a joint")
        quantity, joint = value
        if quantity not in ROLES[1:] or type(joint) is not int or not 0 <= joint <= 64:
            raise WrongOrderError("a role is a quantity and a joint")
        out[int(key)] = (quantity, joint if QUANTITIES[quantity].per_joint else 0)
    return out


def _units(given: Any) -> dict[str, str]:
    if not isinstance(given, dict):
        raise WrongOrderError("units must be an object")
    for name, unit in given.items():
        if name not in QUANTITIES or unit not in QUANTITIES[name].units:
            raise WrongOrderError("there is no such unit")
    return dict(given)


def _body(desk: MappingSession) -> str:
    """The page without its numbers."""
    endings = ", ".join(DESCRIPTIONS)
    name = escape(desk.path.name)
    own = "" if desk.table is not None else "<p>This file says itself what its columns are.</p>"
    return f"""<main><h1>{name}</h1><p class="sub">What are its columns? Three steps: the robot,
the columns, the fit.</p>
<section aria-labelledby="robot-title"><h2 id="robot-title">1. The robot</h2>
<div class="row"><label for="robot">Bundled</label><select id="robot"><option value="">choose
</option></select><label class="drop" id="drop">or drop a description here, or click ({endings})
<input type="file" id="file" accept="{endings}" class="unseen"></label></div>
<p id="check" role="status">No robot is chosen yet.</p>
<div id="joints" class="bars"></div></section>
<section aria-labelledby="columns-title"><h2 id="columns-title">2. The columns</h2>{own}
<p id="read" role="status"></p><p id="problem" class="bad" role="alert"></p>
<details id="why"><summary>Why these guesses</summary><ul id="reasons"></ul></details>
<div id="quantities" class="row"></div>
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
