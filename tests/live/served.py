"""A live page of a pretended robot, and a browser that looks at it."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace


@contextmanager
def watched(source=None, robot="ur10e", **more):
    """A dashboard of a pretended robot, served on a free port."""
    from pretended import Pretended, Ticking

    from taufit.live.dashboard import dashboard
    from taufit.live.hub import Hub
    from taufit.live.server import listen, serving
    from taufit.live.session import Session
    from taufit.robot import read_robot

    arm = read_robot(robot)
    hub = Hub()
    source = Ticking(arm.joints) if source is None else source
    session = Session(Pretended(), source, hub, limits=lambda _: [4.0] * arm.joints, **more)
    line, place = listen()
    app = dashboard(session, arm, place, about="a pretended robot")
    with serving(app, line, place):
        session.start()
        try:
            yield SimpleNamespace(place=place, session=session, hub=hub, source=source, robot=arm)
        finally:
            session.stop()


@contextmanager
def opened(browser, url, **options):
    """A page of its own, with everything it complains about and asks for."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.trouble, page.asked = [], []
    page.on("console", lambda message: page.trouble.append(message.text))
    page.on("pageerror", lambda error: page.trouble.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(url)
    try:
        yield page
    finally:
        context.close()


def until(page, expression, seconds=60.0):
    """Wait until an expression holds; the page's policy lets no text be evaluated in it."""
    for _ in range(int(seconds / 0.05)):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"{expression} did not come true within {seconds} s")
