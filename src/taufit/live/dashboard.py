"""Web application of the live page: page, stream of readings, record button."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from taufit.core.errors import RecordingError
from taufit.live.batch_hub import MAX_LISTENERS
from taufit.live.page_data import SAMPLE_FIELDS, kinematic_chain
from taufit.live.server import Endpoint, application, render_page

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from taufit.live.session import Session
    from taufit.robot import Robot


def dashboard(session: Session, robot: Robot, endpoint: Endpoint, *, about: str) -> ASGIApp:
    """Create the application; serve it behind a `RequestGuard`.

    Args:
        session: Monitoring session.
        robot: Monitored robot.
        endpoint: Address and token of the server.
        about: Description of the source.
    """
    from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, StreamingResponse

    settings = json.dumps(
        {
            "token": endpoint.token,
            "fields": SAMPLE_FIELDS,
            "joints": robot.joint_names,
            "prismatic": [link.is_prismatic for link in robot.links],
            "chain": kinematic_chain(robot),
            "playback": session.playback,
        }
    )
    body = _page_body(robot, about, session.playback)

    async def index(request: Request) -> Response:
        text, headers = render_page("dashboard", f"taufit live: {robot.name}", settings, body)
        return HTMLResponse(text, headers=headers)

    async def stream(request: Request) -> Response:
        if session.hub.listeners >= MAX_LISTENERS:
            return PlainTextResponse("too many pages are open\n", 503)
        last = request.headers.get("last-event-id", "")
        number = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
        return StreamingResponse(session.hub.listen(number), media_type="text/event-stream")

    async def record(request: Request) -> Response:
        recording_on = _parse_record_request(await request.body())
        if recording_on is None:
            return PlainTextResponse('expected {"on": true} or {"on": false}\n', 400)
        if session.playback or session.is_finished.is_set():
            return PlainTextResponse("there is no running robot to record\n", 409)
        try:
            (session.recorder.start if recording_on else session.recorder.stop)()
        except RecordingError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return JSONResponse(session.recorder.state())

    return application(
        {"/": ("GET", index), "/stream": ("GET", stream), "/record": ("POST", record)}
    )


def _parse_record_request(body: bytes) -> bool | None:
    """Value of the record button; None for anything else."""
    try:
        request: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    value = request.get("on") if isinstance(request, dict) and len(request) == 1 else None
    return value if isinstance(value, bool) else None


def _page_body(robot: Robot, about: str, playback: bool) -> str:
    """HTML of the page without values."""
    record = '<button type="button" id="record" aria-pressed="false">Record</button>'
    joints = "".join(
        f'<figure class="joint"><figcaption><b>{escape(name)}</b> <span id="now-{j}"></span>'
        f'</figcaption><canvas id="joint-{j}" role="img" aria-label="Torque of {escape(name)}: '
        f"measured, predicted with its 95 % interval, and external torque. Values are in the "
        f'table of joints."></canvas></figure>'
        for j, name in enumerate(robot.joint_names)
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "<td>–</td>" * 6 + "</tr>"
        for name in robot.joint_names
    )
    heads = ("position", "measured", "predicted", "external", "temperature", "friction")
    units = ("", "[N m]", "[N m]", "[N m]", "[°C]", "index")
    columns = "".join(
        f'<th scope="col">{head} <small>{unit}</small></th>'
        for head, unit in zip(heads, units, strict=True)
    )
    return f"""<header><h1>{escape(robot.name)}</h1>
<p class="sub" id="about">{escape(about)}</p>
<p id="state" role="status">connecting</p>
<div class="buttons"><button type="button" id="pause" aria-pressed="false">Pause</button>
{"" if playback else record}</div></header>
<main><section id="side" aria-label="Arm, payload and contact">
<canvas id="arm" tabindex="0" role="img" aria-label="The arm as it stands now. Drag it, or use the
arrow keys, to turn the view."></canvas>
<div class="pair"><section class="card" aria-labelledby="payload-title">
<h2 id="payload-title">Payload</h2><b id="mass">–</b><span id="centre">no estimate yet</span>
<canvas id="mass-chart" role="img" aria-label="Payload mass over the last two minutes with its 95 %
interval."></canvas></section>
<section class="card" aria-labelledby="contact-title"><h2 id="contact-title">Contact</h2>
<b id="contact">–</b><span id="contact-detail"></span>
<h3 id="events-title">Events</h3>
<ol id="events" aria-labelledby="events-title" aria-live="polite" tabindex="0"></ol></section></div>
</section><section id="joints" aria-label="Torque of every joint">
<p class="legend"><i class="raw"></i>measured <i class="filtered"></i>low-passed
<i class="predicted"></i>predicted with 95 % interval <i class="external"></i>external, with the
threshold of a contact</p><div id="charts">{joints}</div></section>
<section id="values" aria-label="Values of every joint"><div class="scroll" tabindex="0"
role="region" aria-label="Table of joints"><table>
<thead><tr><th scope="col">joint</th>{columns}</tr></thead>
<tbody id="table">{rows}</tbody></table></div>
<p class="sub"><span id="counts"></span> Keys: space pauses, R records.</p></section></main>"""
