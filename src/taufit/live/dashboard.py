"""Web application of the live page: page, stream of readings, record button."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from taufit.core.errors import RecordingError
from taufit.live.batch_hub import MAX_LISTENERS
from taufit.live.page_data import SAMPLE_FIELDS, kinematic_chain
from taufit.live.server import Endpoint, application, render_page
from taufit.report.page import LOGO

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
            "prismatic": robot.is_prismatic.tolist(),
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


def _short_name(joint: str) -> str:
    return joint.replace("_", " ").removesuffix(" joint")


def _page_body(robot: Robot, about: str, playback: bool) -> str:
    """HTML of the page without values."""
    record = '<button type="button" id="record" aria-pressed="false">Record</button>'
    joints = "".join(
        f'<figure class="chart" id="figure-{j}" data-at="time"><figcaption><b>{j + 1} '
        f'{escape(_short_name(name))}</b><span class="note"></span></figcaption>'
        f'<canvas tabindex="0" role="img" aria-label="Torque of {escape(name)}: measured, and '
        f'predicted with its 95 % interval. Values are in the table of joints."></canvas>'
        f'<canvas class="strip" role="img" aria-label="External torque of {escape(name)} with the '
        f'threshold of a contact."></canvas></figure>'
        for j, name in enumerate(robot.joint_names)
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>' + "<td>–</td>" * 6 + "</tr>"
        for name in robot.joint_names
    )
    columns_of_charts = 3 if robot.joints <= 6 else 4
    rows_of_charts = -(-robot.joints // columns_of_charts)
    layout = f"charts joints rows-{rows_of_charts}{' four' if columns_of_charts == 4 else ''}"
    heads = ("position", "measured", "predicted", "external", "temperature", "friction")
    units = ("", "[N m]", "[N m]", "[N m]", "[°C]", "index")
    columns = "".join(
        f'<th scope="col">{head} <small>{unit}</small></th>'
        for head, unit in zip(heads, units, strict=True)
    )
    return f"""<header>{LOGO}<h1>{escape(robot.name)}, live</h1>
<p class="sub" id="about">{escape(about)}</p>
<p id="state" role="status">connecting</p>
<div class="buttons"><button type="button" id="pause" aria-pressed="false">Pause</button>
{"" if playback else record}</div></header>
<main><section id="side" aria-label="Arm, payload and contact">
<canvas id="arm" tabindex="0" role="img" aria-label="The arm as it stands now. Drag it, or use the
arrow keys, to turn the view."></canvas>
<section aria-labelledby="payload-title"><h2 id="payload-title">Payload</h2>
<b id="mass">–</b><span id="centre">no estimate yet</span>
<figure id="mass-figure" data-at="time"><canvas id="mass-chart" role="img" tabindex="0"
aria-label="Payload mass over the last two minutes with its 95 % interval."></canvas></figure>
</section>
<section aria-labelledby="contact-title"><h2 id="contact-title">Contact</h2>
<b id="contact">–</b><span id="contact-detail"></span></section>
<section aria-labelledby="events-title"><h2 id="events-title">Events</h2>
<ol id="events" aria-labelledby="events-title" aria-live="polite" tabindex="0"></ol></section>
</section><section aria-label="Torque of every joint"><div class="{layout}" id="charts">{joints}
</div><p class="sub">Time in s; the last 20 s until you zoom, Reset follows again.</p></section>
<section id="values" aria-label="Values of every joint"><div class="scroll" tabindex="0"
role="region" aria-label="Table of joints"><table>
<thead><tr><th scope="col">joint</th>{columns}</tr></thead>
<tbody id="table">{rows}</tbody></table></div>
<p class="sub"><span id="counts"></span> Keys: space pauses, R records.</p></section></main>"""
